import pytest

from irtaudit.dimensionality.labels import label, short_label


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("item_means", "item means alone"),
        ("unidimensional_3pl", "one dimension, 3PL"),
        ("exploratory_10d_2pl", "10 free dimensions, 2PL"),
        ("confirmatory_repo_name_2pl", "one dimension per repo_name, 2PL"),
        ("my own", "my own"),
    ],
)
def test_label(model, words):
    assert label(model) == words


def test_short_label_leaves_the_family_out():
    assert short_label("exploratory_2d_2pl") == "2 free dimensions"
    assert short_label("item_means") == "item means alone"
