"""What a judge says about a candidate: the schema of its answer, strict."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, StringConstraints, ValidationError, model_validator

from irtaudit.protocol.load import complaint
from irtaudit.protocol.models import Record
from irtaudit.protocol.pointers import Pointer
from irtaudit.protocol.taxonomy import Engagement, ExposureName, Mislead

Words = Annotated[str, StringConstraints(max_length=4_000)]
Pointers = Annotated[tuple[Pointer, ...], Field(max_length=16)]

_FENCE = re.compile(r"\A\s*```(?:json)?\s*\n(.*?)\n?\s*```\s*\Z", re.DOTALL)


class Drift(Record):
    """The capability the benchmark means to measure, and the one this run was credited for."""

    model_config = ConfigDict(strict=True)

    intended: Words
    measured: Words


class Evidence(Record):
    """The chain: what was exposed, how it was used, what of it was submitted, what was credited."""

    exposure: Pointers = ()
    use: Pointers = ()
    submission: Pointers = ()
    credit: Pointers = ()

    @property
    def links(self) -> Mapping[str, tuple[Pointer, ...]]:
        """Pointers by link, in the order of the chain."""
        return {
            "exposure": self.exposure,
            "use": self.use,
            "submission": self.submission,
            "credit": self.credit,
        }


class Answer(Record):
    """A judge's answer about one candidate.

    Attributes
    ----------
    exposure : str
        One of the seven exposure values, or "none".
    agent_engagement : str
        "none", "passive" (met it), "active" (went for it) or "engineered" (built a way to it).
    mislead : str
        Whether the score counts it as the intended capability: "no", "partial" or "yes".
    confidence : float
        Between 0 and 1.
    abstain, abstain_reason
        Whether the judge cannot tell, and why.
    """

    model_config = ConfigDict(strict=True)

    exposure: ExposureName | Literal["none"]
    agent_engagement: Engagement
    mislead: Mislead
    confidence: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
    capability_drift: Drift | None = None
    repair_target: Words | None = None
    evidence: Evidence = Evidence()
    rationale: Words
    abstain: bool = False
    abstain_reason: Words | None = None

    @model_validator(mode="after")
    def _says_why(self) -> Answer:
        if self.abstain and not (self.abstain_reason or "").strip():
            raise ValueError("who abstains gives an abstain_reason")
        return self


def parse_answer(said: str | Mapping[str, Any]) -> tuple[Answer | None, str]:
    """The answer in what a judge said, or None and what is wrong with it.

    Parameters
    ----------
    said : str or mapping
        JSON text, possibly inside one code fence, or the object itself.
    """
    try:
        if not isinstance(said, str):
            said = json.dumps(said)
        fenced = _FENCE.match(said)
        return Answer.model_validate_json(fenced[1] if fenced else said), ""
    except ValidationError as error:
        return None, complaint(error)
    except (TypeError, ValueError, RecursionError) as error:
        return None, f"not JSON: {error}"


def answer_schema() -> dict[str, Any]:
    """JSON schema of an answer, in the dialect that servers accept for structured output.

    Every property is required and nothing else allowed; what may be left out may be null.
    """
    schema = Answer.model_json_schema()
    definitions = schema.pop("$defs")
    return dict(_inlined(schema, definitions))


_KEPT = ("type", "enum", "items", "properties", "anyOf", "const")


def _inlined(node: Any, definitions: Mapping[str, Any]) -> Any:
    if isinstance(node, list):
        return [_inlined(one, definitions) for one in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _inlined(definitions[node["$ref"].rpartition("/")[2]], definitions)
    kept = {key: node[key] for key in _KEPT if key in node}
    if "properties" in kept:
        kept["properties"] = {
            name: _inlined(one, definitions) for name, one in kept["properties"].items() if name != "sha256"
        }
        return {**kept, "required": list(kept["properties"]), "additionalProperties": False}
    return {key: _inlined(value, definitions) for key, value in kept.items()}
