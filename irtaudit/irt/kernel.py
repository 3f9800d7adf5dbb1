"""The hot path: the negative ELBO of a tile and its gradient by hand.

The model is the table of :mod:`irtaudit.irt.sites`; only its derivatives are written here, in
:mod:`irtaudit.irt.likelihood` and :mod:`irtaudit.irt.prior`, and a test holds them, and the ELBO, equal to
Pyro's ``TraceMeanField_ELBO`` on the same noise. One reparameterised draw ``z = loc + scale * noise``
serves the likelihood; the divergence is exact.
"""

from __future__ import annotations

import torch
from torch import Tensor

from irtaudit.irt.layout import Layout
from irtaudit.irt.likelihood import LOG2_E, Cells, Likelihood
from irtaudit.irt.prior import Prior, State


class Kernel:
    """Negative ELBO of the fits of a tile, in buffers that every epoch reuses.

    Parameters
    ----------
    layout : Layout
    cells : Cells
    state : State
        Parameters, read anew at every call.

    Attributes
    ----------
    grad : State
        Gradient of the negative ELBO after the last call of :meth:`gradient`.
    flat_grad : Tensor
        The same numbers in one flat tensor, so that an optimiser takes one step for all.
    """

    def __init__(self, layout: Layout, cells: Cells, state: State) -> None:
        self._state = state
        self.flat_grad = torch.zeros_like(state.flat())
        self.grad = State.views(self.flat_grad, state)
        self._z, self._grad_z, self._scale = (torch.zeros_like(state.loc) for _ in range(3))
        self._likelihood = Likelihood(layout, cells, self._z, self._grad_z)
        self._prior = Prior(layout, state, self.grad, self._grad_z, self._scale)

    def gradient(self, noise: Tensor, sign: float = 1.0) -> State:
        """Gradient of the negative ELBO at one draw.

        Parameters
        ----------
        noise : (fit, width) Tensor
            Standard normal numbers, one per latent.
        sign : {1, -1}
            What the noise is multiplied by.

        Returns
        -------
        State
            The buffers of :attr:`grad`, overwritten by the next call.
        """
        self._draw(noise, sign)
        self._likelihood.gradient()
        self._prior.gradient()
        self.grad.log_scale.addcmul_(self._grad_z.mul_(noise), self._scale, value=sign)
        return self.grad

    def elbo(self, noise: Tensor, sign: float = 1.0) -> Tensor:
        """Evidence lower bound of each fit at one draw.

        Parameters
        ----------
        noise : (fit, width) Tensor
        sign : {1, -1}

        Returns
        -------
        (fit,) float64 Tensor, in nats
        """
        self._draw(noise, sign)
        return self._likelihood.value() - self._prior.value()

    def _draw(self, noise: Tensor, sign: float) -> None:
        # torch's exp2 takes a third of its exp's time on a CPU.
        torch.mul(self._state.log_scale, LOG2_E, out=self._scale).exp2_()
        torch.addcmul(self._state.loc, self._scale, noise, value=sign, out=self._z)
