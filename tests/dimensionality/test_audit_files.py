"""The list of an audit's files names what is there, and says something about each."""

from __future__ import annotations

from irtaudit.dimensionality.present_files import HOLDS, REST, present_files


def test_every_file_is_named_once_and_described() -> None:
    section = present_files(["pairwise", "dif_flags", "comparison"])
    rows = dict(section.table.itertuples(index=False))
    assert list(rows) == ["comparison.csv", "dif_flags.csv", "pairwise.csv", *REST]
    assert rows["pairwise.csv"] == HOLDS["pairwise"]
    assert rows["dif_flags.csv"] == "Groups compared: flags."
    assert section.claim.startswith("3 tables")
