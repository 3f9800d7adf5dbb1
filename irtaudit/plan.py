"""The plan of an audit: what is asked and by which rules, written down and hashed before anything runs.

A plan is a TOML file. Each audit owns its schema, a subclass of `Plan`; this module reads, checks and hashes
any of them. The hash is over the plan with its defaults filled in, so that two files that ask for the same
audit have the same hash, and a default that changes in a later version changes it.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from irtaudit.errors import PlanError, check_kind

P = TypeVar("P", bound="Plan")
LONGEST = 200
"""Characters of a value that a message shows."""
_REGISTRATION = re.compile(
    r"https?://[^\s/?#.]+\.[^\s/?#]+/+[^\s/?#]\S*|(doi:\s?)?10\.\d{4,9}(\.\d+)*/\S+", re.IGNORECASE
)


class Part(BaseModel):
    """A table of a plan: frozen, without keys that nobody reads, and without silent conversions."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Plan(Part):
    """What every plan says.

    Attributes
    ----------
    kind : str
        Which audit it is for.
    schema_version : int
        Of the audit's schema.
    title : str
        Heads the report.
    reading : str
        The reading under test, in the user's words.
    registration : str
        Where an independent registry holds this plan, if one does: its address (http or https, with a path)
        or DOI. Nobody looks there: see `standing`.
    seed : int
        Everything random derives from it.
    """

    kind: str
    schema_version: int
    title: str = ""
    reading: str = ""
    registration: str = ""
    seed: int = Field(default=2026, ge=0)

    @field_validator("reading")
    @classmethod
    def _in_words(cls, reading: str) -> str:
        if not reading.strip():
            raise ValueError("expected the reading under test in words, or no such key")
        return reading

    @field_validator("registration")
    @classmethod
    def _looked_up(cls, registration: str) -> str:
        if registration.strip() and not _REGISTRATION.fullmatch(registration.strip()):
            raise ValueError(
                "expected where a registry holds this plan, its address with a path (https://osf.io/...) or "
                'DOI (10.17605/...), or "" where none does'
            )
        return registration

    @property
    def status(self) -> str:
        """ "preregistered" where the plan names a registration, "pre-specified" elsewhere."""
        return "preregistered" if self.registration.strip() else "pre-specified"

    @property
    def standing(self) -> str:
        """The status, and what "preregistered" rests on, in words."""
        if self.status == "pre-specified":
            return self.status
        return f"{self.status} (the plan names the registration {self.registration.strip()}; not checked)"


def read_plan(path: str | Path, schema: type[P]) -> P:
    """The plan in a TOML file.

    Parameters
    ----------
    path : path
    schema : type
        The audit's subclass of `Plan`.

    Raises
    ------
    PlanError
        If there is no such file, it is not TOML, or a key is missing, unknown or not what is expected there;
        every such key is named with what was found and what was expected.
    """
    return make_plan(_toml(Path(path)), schema, where=str(path))


def make_plan(values: Mapping[str, Any], schema: type[P], *, where: str = "plan") -> P:
    """The plan with these values, lists and tables as TOML has them.

    Raises
    ------
    PlanError
        As :func:`read_plan`.
    """
    check_kind(where, values, Mapping, "a plan, a table of keys and values")
    _refuse_nul(values, where)
    try:
        return schema.model_validate(dict(values))
    except ValidationError as error:
        faults = [_fault(one, schema) for one in error.errors()]
        raise PlanError("\n  ".join([f"{where} is not {_kind_of(schema)} plan:", *faults])) from None


def _refuse_nul(values: Mapping[str, Any], where: str) -> None:
    """Refuse text with NUL characters, which no file, column or model is named by."""
    left: list[tuple[str, Any]] = list(values.items())
    while left:
        place, value = left.pop()
        if isinstance(value, Mapping):
            left += [(f"{place}.{key}", inside) for key, inside in value.items()]
        elif isinstance(value, list | tuple):
            left += [(f"{place}.{number}", inside) for number, inside in enumerate(value)]
        elif isinstance(value, str) and "\0" in value:
            raise PlanError(f"{where}: {place} holds a NUL character (\\u0000); leave it out")


def canonical_json(plan: Plan) -> str:
    """The plan as JSON: defaults filled in, keys sorted, no blanks."""
    return json.dumps(
        plan.model_dump(mode="json", by_alias=True),
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
        allow_nan=False,
    )


def plan_sha256(plan: Plan) -> str:
    """SHA-256 of :func:`canonical_json`, in hexadecimal."""
    return hashlib.sha256(canonical_json(plan).encode()).hexdigest()


def toml_text(text: str) -> str:
    """The text as a basic string of TOML, quotes included."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _toml(path: Path) -> dict[str, Any]:
    if "\0" in str(path):
        raise PlanError(f"{str(path)!r} holds a NUL character; no file has such a name")
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise PlanError(f"{path}: there is no such plan; `irtaudit plan init` writes one") from None
    except OSError as error:
        raise PlanError(f"{path} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise PlanError(f"{path} is not UTF-8 text; expected a plan in TOML") from None
    except RecursionError:
        raise PlanError(f"{path} nests lists or tables too deeply to be a plan") from None
    except ValueError as error:  # also a number of thousands of digits
        raise PlanError(f"{path} is not TOML: {error}") from None


def _kind_of(schema: type[Plan]) -> str:
    kind = " or ".join(map(str, get_args(schema.model_fields["kind"].annotation))) or "valid"
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


def _fault(error: Any, schema: type[Plan]) -> str:
    """One sentence about one key."""
    *above, key = error["loc"] or ("",)
    place = ".".join(map(str, error["loc"]))
    if error["type"] == "missing":
        return f"{place} is missing"
    if error["type"] == "extra_forbidden":
        known = _keys_at(schema, above)
        close = get_close_matches(str(key), known, n=1)
        meant = f"; did you mean {close[0]!r}?" if close else f"; known here: {', '.join(known)}"
        return f"{place} is not a known key{meant}"
    message = error["msg"].removeprefix("Value error, ").replace("Input should be", "expected")
    found = "" if isinstance(error["input"], Mapping | BaseModel) else f"found {_shown(error['input'])}, "
    return f"{place}: {found}{message}" if place else message


def _shown(value: Any) -> str:
    """A value for a message, cut off if it is long."""
    deep = isinstance(value, list) and any(isinstance(one, list | Mapping) for one in value)
    text = "a list of lists or tables" if deep else repr(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def _keys_at(schema: Any, place: list[Any]) -> list[str]:
    """Names of the keys of the table at `place`."""
    for key in place:
        model = _model_in(schema)
        if model is not None:
            schema = model.model_fields[key].annotation if key in model.model_fields else None
        else:
            schema = get_args(schema)[1] if get_origin(schema) is dict else None
    model = _model_in(schema)
    return [field.alias or name for name, field in model.model_fields.items()] if model is not None else []


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The model that an annotation asks for, None allowed beside it or not."""
    for one in (annotation, *(get_args(annotation) if get_origin(annotation) is not dict else ())):
        if isinstance(one, type) and issubclass(one, BaseModel):
            return one
    return None
