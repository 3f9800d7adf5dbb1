"""What a retained bundle holds, as validated immutable models."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, JsonValue, StringConstraints, model_validator

from irtaudit.protocol.taxonomy import ProtocolKind

Actor = Literal["agent", "tool", "env", "user", "grader"]
Kind = Literal["message", "reasoning", "tool_call", "tool_result", "submit", "error"]
Role = Literal["specification", "trajectory", "artifact", "score", "log", "comparison"]
Sampling = Literal["census", "random", "suspicious_subset"]
ComparisonKind = Literal["targeted_repair", "ablation", "paired_baseline", "source_free"]
Name = Annotated[str, StringConstraints(min_length=1, max_length=300, pattern=r"^[^\x00-\x1f\x7f]+$")]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class Record(BaseModel):
    """Base of the models: immutable, and an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class FileRecord(Record):
    """One file of a bundle: what it is for, its digest, its size, and its lines when it is text."""

    role: Role
    sha256: Sha256
    bytes: Annotated[int, Field(ge=0)]
    lines: Annotated[int, Field(ge=0)] | None = None


class Header(Record):
    """Which run this is, and how it came into the cohort.

    Attributes
    ----------
    cohort_sampling : str
        "census" (every run), "random" (a random sample of them) or "suspicious_subset" (picked because they
        looked odd: rates of such a cohort estimate no prevalence).
    unfilled : tuple of str
        What the source of a converted bundle did not say.
    """

    run_id: Name
    benchmark: Name
    task_id: Name
    model: Name
    agent: Name | None = None
    protocol_kind: ProtocolKind
    cohort_sampling: Sampling
    unfilled: tuple[str, ...] = ()


class Manifest(Header):
    """``manifest.json``: the header, and every file of the bundle by path."""

    schema_version: Literal[1]
    files: dict[str, FileRecord]


class Withheld(Record):
    """Something the agent must not have: paths where it lies, strings that betray it."""

    model_config = ConfigDict(coerce_numbers_to_str=True)

    id: Name
    paths: tuple[str, ...] = ()
    strings: tuple[str, ...] = ()


class Spec(Record):
    """``B/spec.yaml``: what the benchmark means to measure, and the rules of the task.

    Attributes
    ----------
    no_credit_score : float or None
        Score of a submission that earns nothing; None: 0 where higher is better, unknown where lower is.
    notes : dict of str to str
        Remarks on environment (E), information flow (I), scoring (S) and verification (V).
    """

    model_config = ConfigDict(coerce_numbers_to_str=True)

    intended_capability: str | None = None
    intended_task: str | None = None
    allowed: tuple[str, ...] = ()
    withheld: tuple[Withheld, ...] = ()
    scoring_rule: str | None = None
    success_threshold: FiniteFloat | None = None
    direction: Literal["higher", "lower"] = "higher"
    no_credit_score: FiniteFloat | None = None
    notes: dict[Literal["E", "I", "S", "V"], str] = {}


class Event(Record):
    """One line of ``T/trajectory.jsonl``; `i` counts from 0 without gaps."""

    i: Annotated[int, Field(ge=0, lt=10**9)]
    actor: Actor
    kind: Kind
    tool: str | None = None
    args: dict[str, JsonValue] | None = None
    text: str = ""
    call_id: str | None = None
    path: str | None = None
    exit_code: int | None = None
    time: str | None = None


class ScoreRecord(Record):
    """``R/score.json``: what the grader recorded. A score of None means that none was recorded."""

    score: FiniteFloat | None
    max: FiniteFloat | None = None
    passed: bool | None = None
    validity_check: bool | None = None
    components: dict[str, JsonValue] = {}
    log: str | None = None


class Comparison(Record):
    """``C/comparison.json``: what the same task scores without the exposure.

    Attributes
    ----------
    s_intended : float
        Score without the exposure; a share of passes where `outcome` is "binary".
    n, n_exploit : int
        Runs behind `s_intended` and behind the audited score.
    pairs : tuple of (float, float)
        Scores with and without the exposure on the same units (seeds, rounds), where they were kept.
    """

    kind: ComparisonKind
    s_intended: FiniteFloat
    n: Annotated[int, Field(ge=1)] = 1
    n_exploit: Annotated[int, Field(ge=1)] = 1
    outcome: Literal["binary", "numeric"] = "numeric"
    same_task: bool
    same_scorer: bool
    same_scale: bool
    pairs: tuple[tuple[FiniteFloat, FiniteFloat], ...] = ()
    provenance: str

    @model_validator(mode="after")
    def _shares_are_shares(self) -> Comparison:
        if self.outcome == "binary" and not 0 <= self.s_intended <= 1:
            raise ValueError("s_intended of a binary outcome is a share between 0 and 1")
        return self


def plain(model: BaseModel) -> dict[str, Any]:
    """The model as JSON-ready values, without entries that say nothing."""
    return model.model_dump(mode="json", exclude_defaults=True)
