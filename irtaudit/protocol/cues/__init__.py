"""Cues: one small, versioned rule each for what may betray an exposure, grouped by exposure.

A rule is a function in the module of its source. It is decorated with
:func:`~irtaudit.protocol.cues.rule.event_rule` when it is shown passages of one event, or with
:func:`~irtaudit.protocol.cues.rule.run_rule` when it is shown the run. `RULES` is what
:func:`irtaudit.protocol.candidates.find_candidates` applies.
"""

from __future__ import annotations

from irtaudit.protocol.cues import (
    answer_source,
    evaluation_pipeline,
    generation_mechanism,
    hidden_state,
    interaction_feedback,
)
from irtaudit.protocol.cues.rule import Rule

RULES: tuple[Rule, ...] = (
    *answer_source.RULES,
    *hidden_state.RULES,
    *generation_mechanism.RULES,
    *interaction_feedback.RULES,
    *evaluation_pipeline.RULES,
)
