import numpy as np
import pandas as pd
import pytest

from irtaudit.dif.groups import Groups, parse_groups
from irtaudit.errors import PlanError

SUBJECTS = pd.DataFrame(
    {"developer": ["A", "A", "B", "B", "B", None, "lone"], "year": [1, 1, 2, 2, 3, 3, 3]},
    index=[f"m{i}" for i in range(7)],
)


def test_text_names_column_reference_and_focal():
    assert parse_groups("developer:OpenAI,Anthropic") == Groups("developer", "OpenAI", "Anthropic")
    assert parse_groups('lab: "Acme, Inc.", B') == Groups("lab", "Acme, Inc.", "B")
    assert parse_groups("developer:OpenAI,Anthropic").name == "developer:OpenAI_vs_Anthropic"


@pytest.mark.parametrize(
    "text", ["developer", "developer:A", "developer:A,B,C", ":A,B", "developer:A,", "developer:"]
)
def test_other_texts_are_refused_with_the_form_that_is_expected(text):
    with pytest.raises(PlanError, match="expected COLUMN:REFERENCE,FOCAL"):
        parse_groups(text)


def test_sides_follow_the_column_and_missing_levels_are_on_neither():
    assert Groups("developer", "A", "B").sides(SUBJECTS).tolist() == [0.5, 0.5, -0.5, -0.5, -0.5, 0, 0]
    assert (
        Groups("developer", "B", "A").sides(SUBJECTS) == -Groups("developer", "A", "B").sides(SUBJECTS)
    ).all()


def test_levels_of_a_number_column_are_given_as_text():
    assert np.flatnonzero(Groups("year", "1", "2").sides(SUBJECTS)).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (("maker", "A", "B"), "no subject column 'maker'.*'developer', 'year'"),
        (("developer", "A", "C"), r"No model has developer 'C'; Levels .*'B' \(3\)"),
        (("developer", "A", "lone"), "'lone' has 1 model; a comparison needs at least 2"),
    ],
)
def test_what_cannot_be_compared_is_named_with_what_there_is(groups, message):
    with pytest.raises(PlanError, match=message):
        Groups(*groups).sides(SUBJECTS)


def test_a_level_is_not_compared_with_itself():
    with pytest.raises(PlanError, match="two different levels"):
        Groups("developer", "A", "A")
