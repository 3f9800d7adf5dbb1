"""The exposures a benchmark protocol can have, where they come from, and what mends or detects them.

Source: "Do Agent Benchmarks Measure Capability? Protocol Validity in the Age of Agentic AI" (HackDetect),
exposure taxonomy and recommendations per kind of protocol.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, get_args

ExposureName = Literal[
    "benchmark_overexposure",
    "held_out_readable",
    "setting_exposure",
    "generator_regularity",
    "feedback_inference",
    "harness_loophole",
    "invalid_scoring_path",
]
ProtocolKind = Literal["dataset", "emulator", "sandbox", "container", "live"]
Engagement = Literal["none", "passive", "active", "engineered"]
Mislead = Literal["no", "partial", "yes"]

EXPOSURE_NAMES: tuple[ExposureName, ...] = get_args(ExposureName)
ENGAGEMENTS: tuple[Engagement, ...] = get_args(Engagement)
MISLEADS: tuple[Mislead, ...] = get_args(Mislead)


@dataclass(frozen=True)
class Exposure:
    """One way in which a protocol stops the intended capability from being necessary.

    Attributes
    ----------
    name, source : str
        The exposure value and the part of the protocol it comes from.
    boundary : str
        What counts as this exposure.
    repairs : mapping of str to str
        Legal repair targets by identifier, with what they ask for.
    without_agent : bool
        Whether a score can mislead through it although the agent did nothing.
    """

    name: ExposureName
    source: str
    boundary: str
    repairs: Mapping[str, str]
    without_agent: bool = False


_EXPOSURES = (
    Exposure(
        "benchmark_overexposure",
        "answer source",
        "public provenance reveals the answer or a near-complete solution",
        {
            "remove_provenance": "take names, commits and links that lead to the source out of the task",
            "non_retrievable_reference": "score against a reference solution that cannot be retrieved",
        },
    ),
    Exposure(
        "held_out_readable",
        "hidden state",
        "a withheld file, label or test is readable and the agent read it",
        {"isolate_physically": "keep withheld files outside the machine the agent works on"},
    ),
    Exposure(
        "setting_exposure",
        "hidden state",
        "metadata, parameters or the interface leak the condition that was to be inferred",
        {"tighten_interface": "show the agent only what the task needs; hide regime-revealing settings"},
    ),
    Exposure(
        "generator_regularity",
        "generation mechanism",
        "order, shape, seed or template of the generated task can be predicted",
        {
            "hide_parameters": "keep seeds and generator parameters from the agent",
            "vary_parameters": "change parameters between instances",
            "randomise_generator": "draw order, shape and template at random",
        },
    ),
    Exposure(
        "feedback_inference",
        "interaction feedback",
        "the evaluator's responses serve as an oracle for what is hidden",
        {
            "limit_feedback": "allow few scored submissions",
            "delay_feedback": "show scores after the last submission",
            "isolate_feedback": "score on data other than what the feedback comes from",
        },
    ),
    Exposure(
        "harness_loophole",
        "evaluation pipeline",
        "a timing or control-flow gap lets something else stand in for the intended algorithm",
        {
            "reset_state": "start every round and measurement from fresh state",
            "vary_workload": "measure on inputs other than those of the warm-up",
        },
        without_agent=True,
    ),
    Exposure(
        "invalid_scoring_path",
        "evaluation pipeline",
        "the scorer can be changed or bypassed, or credits an invalid artifact",
        {
            "artifact_validation": "refuse empty and invalid artifacts before scoring",
            "scoring_gate": "give no credit where the validity check fails",
            "adversarial_scorer_tests": "test the scorer with submissions that deserve nothing",
        },
        without_agent=True,
    ),
)
EXPOSURES: Mapping[str, Exposure] = MappingProxyType({one.name: one for one in _EXPOSURES})

SOURCES: tuple[str, ...] = tuple(dict.fromkeys(one.source for one in _EXPOSURES))

#: What the paper recommends to run, by kind of protocol.
DETECTORS: Mapping[ProtocolKind, tuple[str, ...]] = MappingProxyType(
    {
        "dataset": ("contamination probe", "dynamic replacement of test items"),
        "emulator": ("judge robustness checks", "cross-simulator validation"),
        "sandbox": ("generator audit", "parameter hiding"),
        "container": ("artifact isolation", "hidden-state check", "post-hoc attribution"),
        "live": (
            "delayed scoring",
            "feedback isolation",
            "multi-metric cross-validation",
            "continuous community audit",
        ),
    }
)


def source_of(exposure: str) -> str | None:
    """The source an exposure value derives from; None for "none"."""
    return EXPOSURES[exposure].source if exposure in EXPOSURES else None
