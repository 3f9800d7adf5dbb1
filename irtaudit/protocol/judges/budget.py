"""What asking may cost at most, over all candidates and threads."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from irtaudit.protocol.judges.case import NoAnswerError


@dataclass(frozen=True)
class Limit:
    """Most requests, tokens and money (in the currency of the prices); None: no limit.

    Prices are per million tokens; without them the cost is unknown.
    """

    requests: int | None = None
    tokens: int | None = None
    cost: float | None = None
    price_in: float | None = None
    price_out: float | None = None


class Budget:
    """A meter that several threads share; it refuses the next request once a limit is reached."""

    def __init__(self, limit: Limit | None = None) -> None:
        self._limit = limit or Limit()
        self._lock = threading.Lock()
        self._requests = 0
        self._tokens_in = 0
        self._tokens_out = 0

    def start(self) -> None:
        """Count one request.

        Raises
        ------
        NoAnswerError
            When a limit is reached.
        """
        with self._lock:
            reached = self._reached()
            if reached:
                raise NoAnswerError(f"the budget is spent ({reached})")
            self._requests += 1

    def add(self, tokens_in: int, tokens_out: int) -> None:
        """Count the tokens of one answer."""
        with self._lock:
            self._tokens_in += tokens_in
            self._tokens_out += tokens_out

    @property
    def cost(self) -> float | None:
        """Money spent, where both prices are known."""
        limit = self._limit
        if limit.price_in is None or limit.price_out is None:
            return None
        return (self._tokens_in * limit.price_in + self._tokens_out * limit.price_out) / 1e6

    def summary(self) -> dict[str, float | int | None]:
        """Requests, tokens and cost so far."""
        with self._lock:
            return {
                "requests": self._requests,
                "tokens_in": self._tokens_in,
                "tokens_out": self._tokens_out,
                "cost": self.cost,
            }

    def _reached(self) -> str:
        limit, cost = self._limit, self.cost
        if limit.requests is not None and self._requests >= limit.requests:
            return f"{self._requests} requests"
        if limit.tokens is not None and self._tokens_in + self._tokens_out >= limit.tokens:
            return f"{self._tokens_in + self._tokens_out} tokens"
        if limit.cost is not None and cost is not None and cost >= limit.cost:
            return f"cost {cost:.2f}"
        return ""
