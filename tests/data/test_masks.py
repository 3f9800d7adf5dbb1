"""A caller's own held-out cells."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from irtaudit.data import ResponseMatrix, make_splits, read_test_masks, screen
from irtaudit.errors import DataError

MATRIX = ResponseMatrix.from_array(
    [[1.0, 0.0, 1.0], [0.0, np.nan, 1.0]], subjects=["m1", "m2"], items=["a", "b", "c"]
)


def masks(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "heldout.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_labels_of_splits_are_ordered_as_numbers_where_they_are(tmp_path: Path) -> None:
    text = "split,subject,item\n10,m1,a\n9,m2,a\n9,m1,c\n"
    splits = read_test_masks(masks(tmp_path, text), MATRIX)
    assert splits.seeds == (None, None)
    assert np.argwhere(splits.test).tolist() == [[0, 0, 2], [0, 1, 0], [1, 0, 0]]
    by_text = read_test_masks(masks(tmp_path, text.replace("10,", "b,").replace("9,", "c,")), MATRIX)
    assert np.argwhere(by_text.test).tolist() == [[0, 0, 0], [1, 0, 2], [1, 1, 0]]


def test_written_splits_come_back(tmp_path: Path) -> None:
    splits = make_splits(MATRIX, 3, 0.4)
    rows = [f"{s},{MATRIX.subjects.index[i]},{MATRIX.items.index[j]}" for s, i, j in np.argwhere(splits.test)]
    np.random.default_rng(0).shuffle(rows)
    found = read_test_masks(masks(tmp_path, "\n".join(["split,model,item", *rows])), MATRIX)
    np.testing.assert_array_equal(found.test, splits.test)


def test_masks_follow_the_screen_by_name(tmp_path: Path) -> None:
    splits = read_test_masks(masks(tmp_path, "split,subject,item\n0,m1,a\n0,m1,c\n"), MATRIX)
    screened = screen(MATRIX).matrix  # only item a varies
    assert splits.align(MATRIX, screened).test.tolist() == [[[True], [False]]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("split,subject,item\n0,m9,a\n", "holds out subject.s. that the responses do not have: 'm9'"),
        ("split,subject,item\n0,m1,z\n", "holds out item.s. that the responses do not have: 'z'"),
        ("split,subject,item\n0,m1,a\n1,m1,a\n0,m1,a\n", "line 4: the cell is named twice in its split"),
        ("split,subject,item\n0,m1,a\n0,m2,b\n", "line 3: the cell is not observed"),
        ("fold,subject,item\n0,m1,a\n", "no column named 'split'"),
        ("split,who,item\n0,m1,a\n", "no column is recognised as the subject"),
        ("split,subject,item\n,m1,a\n", "line 2: the split has no name"),
        ("split,subject,item\n", "no rows"),
    ],
)
def test_masks_that_do_not_fit_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_test_masks(masks(tmp_path, text), MATRIX)
