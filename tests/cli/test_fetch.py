"""``irtaudit fetch helm`` against a local server: from nothing to a matrix, and every way to fail."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from helm_bucket import MODELS, RELEASE, Bucket, safety_files, send_status, served

from irtaudit.cli import fetch, main
from irtaudit.data import read_responses
from irtaudit.data.download import Patience
from irtaudit.data.fetch_helm import BUCKET, fetch_helm


@pytest.fixture(scope="module")
def bucket() -> Iterator[Bucket]:
    with served(Bucket(safety_files())) as running:
        yield running


def run(bucket: Bucket, out: Path, *more: str, scenarios: str = "harm_bench, xstest") -> Result:
    options = ["--project", "safety", "--release", RELEASE, "--scenarios", scenarios, "--tries", "1"]
    return CliRunner().invoke(
        main, ["fetch", "helm", *options, "--out", str(out), "--base-url", bucket.url, *more]
    )


def test_from_nothing_to_a_matrix(bucket: Bucket, tmp_path: Path) -> None:
    result = run(bucket, tmp_path / "helm")
    assert result.exit_code == 0, result.output
    folder = tmp_path / "helm" / "safety" / RELEASE
    assert f"{folder}: 8 runs" in result.output
    assert f"Next: irtaudit describe {folder}" in result.output
    matrix = read_responses(folder, task="harm_bench", metric="safety_score", pass_at=1.0)
    assert matrix.subjects.index.tolist() == sorted(MODELS)
    again = run(bucket, tmp_path / "helm")
    assert "0 files downloaded now" in again.output


def test_what_the_server_lacks_is_noted(bucket: Bucket, tmp_path: Path) -> None:
    bucket.fail("harm_bench:model=new_nobody-1/instances.json", send_status(404))
    result = run(bucket, tmp_path, scenarios="harm_bench")
    assert result.exit_code == 0, result.output
    assert "harm_bench:model=new_nobody-1 is listed, but the server lacks its files" in result.output
    assert "1 runs missing on the server" in result.output


@pytest.mark.parametrize(
    ("more", "exit_code", "message"),
    [
        (["--base-url", "http://127.0.0.1:1"], 3, "127.0.0.1 cannot be reached"),
        (["--release", "v0"], 3, "is there such a project and release?"),
        (["--scenarios", "mmlu"], 2, "has no scenario 'mmlu'; it has 'harm_bench', 'xstest'"),
        (["--scenarios", " , "], 2, "no scenario is named"),
        (["--max-bytes", "10"], 3, "holds more than 10 bytes"),
        (["--max-total-bytes", "10"], 3, "take more than 10 bytes"),
        (["--workers", "0"], 2, "Invalid value for '--workers'"),
    ],
)
def test_every_end_is_one_line_and_an_exit_code(
    bucket: Bucket, tmp_path: Path, more: list[str], exit_code: int, message: str
) -> None:
    result = run(bucket, tmp_path, *more)
    assert result.exit_code == exit_code, result.output
    assert message in result.output
    assert "Traceback" not in result.output


def test_the_defaults_told_are_those_of_the_library() -> None:
    defaults = inspect.signature(fetch_helm).parameters
    assert fetch.BUCKET == BUCKET == defaults["base_url"].default
    options = {parameter.name: parameter for parameter in fetch.helm.params}
    assert options["workers"].default == defaults["workers"].default
    assert options["tries"].default == Patience().tries
    assert Patience().max_bytes == 256 * 2**20
    assert defaults["max_total_bytes"].default == 32 * 2**30
