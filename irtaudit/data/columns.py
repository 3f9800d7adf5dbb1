"""Which column of a table is the subject, the item, the response."""

from __future__ import annotations

import re

from irtaudit.data.responses import listed
from irtaudit.data.tables import Table
from irtaudit.errors import DataError

SUBJECT, ITEM, RESPONSE = "subject", "item", "response"
PASSES, TRIALS = "passes", "trials"
"""Instead of a response: how many of the trials of a cell passed, and how many there were."""

RECOGNISED = {
    SUBJECT: frozenset(
        [
            "subject",
            "subject_id",
            "subject_name",
            "model",
            "model_id",
            "model_name",
            "agent",
            "agent_id",
            "agent_name",
            "respondent",
            "respondent_id",
            "participant",
            "participant_id",
            "llm",
        ]
    ),
    ITEM: frozenset(
        [
            "item",
            "item_id",
            "item_name",
            "question",
            "question_id",
            "task",
            "task_id",
            "instance",
            "instance_id",
            "problem",
            "problem_id",
            "prompt_id",
            "sample_id",
            "behavior",
            "behavior_id",
            "behaviour",
            "behaviour_id",
        ]
    ),
    RESPONSE: frozenset(
        [
            "response",
            "score",
            "correct",
            "is_correct",
            "passed",
            "pass",
            "resolved",
            "success",
            "outcome",
            "result",
            "value",
            "grade",
        ]
    ),
    PASSES: frozenset(["passes", "n_passes", "n_passed"]),
    TRIALS: frozenset(["trials", "n_trials"]),
}
"""Column names that are taken for a role, in lower case with underscores."""


def recognised(table: Table, role: str) -> list[int]:
    """Positions of the columns whose name says that they play `role`."""
    return [j for j, name in enumerate(table.names) if means(name, role)]


def means(name: str, role: str) -> bool:
    """Is this a column name that says `role`?"""
    return re.sub(r"[\s.-]+", "_", name.strip().casefold()) in RECOGNISED[role]


def counted(table: Table) -> tuple[int, int] | None:
    """Positions of the columns of passes and of trials, where these stand in place of a response."""
    if recognised(table, RESPONSE):
        return None
    passes, trials = recognised(table, PASSES), recognised(table, TRIALS)
    return (passes[0], trials[0]) if len(passes) == len(trials) == 1 else None


def find(table: Table, role: str, given: str | None) -> int:
    """Position of the column that plays `role`: the one given, or the only one recognised.

    Raises
    ------
    DataError
        If the given name does not occur exactly once, or the number of recognised columns is not one.
    """
    if given is not None:
        return _named(table, given)
    found = recognised(table, role)
    if len(found) == 1:
        return found[0]
    option = f"rename it, or name it ({role}_column=, --{role}-column)"
    if found:
        candidates = listed(table.names[j] for j in found)
        raise DataError(f"{table.path}: several columns could be the {role}: {candidates}; {option}")
    raise DataError(
        f"{table.path}: no column is recognised as the {role} among {listed(table.names, 10)}; {option}"
    )


def _named(table: Table, name: str) -> int:
    found = [j for j, other in enumerate(table.names) if other == name]
    if len(found) != 1:
        count = "no column" if not found else f"{len(found)} columns"
        raise DataError(f"{table.path} has {count} named {name!r}; its columns are {listed(table.names, 10)}")
    return found[0]
