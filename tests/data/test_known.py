"""The packaged tables of models and HarmBench say what their sources say, and can be replaced."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from irtaudit.data.known import describe_models, harmbench_items, model_table
from irtaudit.errors import DataError

REFERENCE = Path(__file__).parents[1] / "reference" / "harmful_refusal_models81.txt"


def test_harmbench_has_the_counts_that_its_paper_prints() -> None:
    items = harmbench_items()
    # Mazeika et al. (arXiv 2402.04249), section 4: 200 standard, 100 contextual, 100 copyright behaviours
    assert items["functional"].value_counts().to_dict() == {
        "standard": 200,
        "contextual": 100,
        "copyright": 100,
    }
    assert items["semantic"].nunique() == 7
    assert items.index.is_unique
    # the audit's paper: all 100 copyright items are copyright in both classifications
    assert (items["functional"] == "copyright").equals(items["semantic"] == "copyright")


def test_the_models_of_helm_safety_have_the_developers_that_the_paper_counts() -> None:
    names = [name.replace("_", "/", 1) for name in REFERENCE.read_text(encoding="utf-8").split()]
    described = describe_models(names)
    counts = described["developer"].value_counts()
    assert len(names) == 81
    assert (counts["OpenAI"], counts["Anthropic"]) == (
        21,
        11,
    )  # "OpenAI and Anthropic, with 21 and 11 models"
    assert "unknown" not in set(described["developer"]) | set(described["access"])
    open_openai = described[(described["developer"] == "OpenAI") & (described["access"] == "open_weight")]
    assert open_openai.index.tolist() == ["openai/gpt-oss-120b", "openai/gpt-oss-20b"]


def test_case_does_not_matter_and_the_first_row_counts() -> None:
    described = describe_models(["OpenAI/GPT-OSS-20B", "openai/gpt-5", "Qwen/Qwen3-8B", "nobody/x", "openai"])
    assert described["access"].tolist() == ["open_weight", "closed_api", "open_weight", "unknown", "unknown"]


def test_a_table_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(
        "model,developer,access,size\nmy/*,Me,open_weight,7\nmy.model,Not me,x,8\n", encoding="utf-8"
    )
    described = describe_models(["my/model", "mymodel", "my.model"], path)
    assert described.loc["my/model"].tolist() == ["Me", "open_weight", "7"]
    assert described.loc["mymodel"].tolist() == ["unknown"] * 3  # a dot is a dot
    assert described.loc["my.model", "size"] == "8"
    path.write_text("model,developer\nx,y\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"mine\.csv has no column 'access'"):
        describe_models(["x"], path)


def test_the_packaged_table_can_be_copied_and_edited() -> None:
    with model_table() as path:
        frame = pd.read_csv(path)
    assert frame.columns.tolist() == ["model", "developer", "access"]
    assert set(frame["access"]) == {"open_weight", "closed_api"}
    assert not frame["model"].duplicated().any()
