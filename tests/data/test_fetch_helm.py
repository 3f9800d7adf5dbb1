"""HELM releases come whole or not at all from a server that fails in every way, and only once."""

from __future__ import annotations

import hashlib
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from helm_bucket import (
    MODELS,
    RELEASE,
    Answer,
    Bucket,
    safety_files,
    send_bomb,
    send_cut_gzip,
    send_drops,
    send_gzip,
    send_plain,
    send_short,
    send_status,
    send_web_page,
    served,
)

from irtaudit.data.download import Patience
from irtaudit.data.fetch_helm import Fetched, fetch_helm
from irtaudit.data.helm import RUN_FILES, read_helm
from irtaudit.errors import DataError, IrtAuditError, PlanError, StorageError

QUICK = Patience(tries=3, pause=0.01, longest_pause=0.02, timeout=5, max_bytes=2**20)
FILES = safety_files()


@pytest.fixture
def bucket() -> Iterator[Bucket]:
    with served(Bucket(FILES)) as running:
        yield running


def fetched(bucket: Bucket, out: Path, **options: Any) -> Fetched:
    wanted: dict[str, Any] = {
        "base_url": bucket.url,
        "project": "safety",
        "release": RELEASE,
        "scenarios": ["harm_bench", "xstest"],
        "patience": QUICK,
    }
    return fetch_helm(out, **(wanted | options))


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def assert_whole(result: Fetched) -> None:
    """Every file as the server has it, and the manifest says so."""
    here = contents(result.folder)
    manifest = json.loads(here.pop("manifest.json"))
    assert {path: json.loads(text) for path, text in here.items()} == FILES
    listed = {entry["path"]: (entry["bytes"], entry["sha256"]) for entry in manifest["files"]}
    assert listed == {path: (len(text), hashlib.sha256(text).hexdigest()) for path, text in here.items()}
    assert manifest["missing_runs"] == manifest["unfinished_runs"] == []
    assert (manifest["project"], manifest["release"]) == ("safety", RELEASE)


def test_a_release_comes_whole_with_a_manifest(bucket: Bucket, tmp_path: Path) -> None:
    steps: list[tuple[int, int]] = []
    result = fetched(bucket, tmp_path, progress=lambda done, total: steps.append((done, total)))
    assert result.folder == tmp_path / "safety" / RELEASE
    assert_whole(result)
    assert len(result.runs) == 2 * len(MODELS)
    assert result.downloaded == len(RUN_FILES) * len(result.runs)
    assert result.n_bytes == sum(len(json.dumps(FILES[path])) for path in FILES if "/runs/" in path)
    assert steps == [(done, len(result.runs)) for done in range(1, len(result.runs) + 1)]
    assert set(bucket.requests.values()) == {1}


def test_a_second_call_asks_for_nothing_and_needs_no_network(bucket: Bucket, tmp_path: Path) -> None:
    first = fetched(bucket, tmp_path)
    before = contents(tmp_path)
    bucket.url = "http://127.0.0.1:1"
    again = fetched(bucket, tmp_path)
    assert replace(again, downloaded=first.downloaded) == first
    assert again.downloaded == 0
    changed = {name for name, text in contents(tmp_path).items() if before[name] != text}
    assert changed == {f"safety/{RELEASE}/manifest.json"}  # the address of the other server


def test_only_what_is_lacking_or_altered_is_downloaded_again(bucket: Bucket, tmp_path: Path) -> None:
    result = fetched(bucket, tmp_path)
    bucket.requests.clear()
    run = result.folder / "benchmark_output/runs/suite-xstest" / result.runs[-1]
    (run / "instances.json").unlink()
    (run / "run_spec.json").write_text("{}")
    assert fetched(bucket, tmp_path).downloaded == 2
    assert sorted(path.rpartition("/")[2] for path in bucket.requests) == ["instances.json", "run_spec.json"]
    assert_whole(fetched(bucket, tmp_path))


def test_scenarios_fetched_one_after_the_other_share_a_manifest(bucket: Bucket, tmp_path: Path) -> None:
    fetched(bucket, tmp_path, scenarios=["xstest"])
    result = fetched(bucket, tmp_path, scenarios=["harm_bench"])
    assert len(result.runs) == len(MODELS)
    assert_whole(result)


def test_releases_do_not_mix(bucket: Bucket, tmp_path: Path) -> None:
    fetched(bucket, tmp_path)
    old, new = f"releases/{RELEASE}", "releases/v10"
    bucket.bodies |= {path.replace(old, new): body for path, body in bucket.bodies.items() if old in path}
    assert fetched(bucket, tmp_path, release="v10").folder == tmp_path / "safety" / "v10"
    with pytest.raises(DataError, match="has two runs of harm_bench"):
        read_helm(tmp_path, scenario="harm_bench")


@pytest.mark.parametrize(
    "fault",
    [
        send_status(503),
        send_status(429, Retry_After="1"),
        send_status(500),
        send_short,
        send_cut_gzip,
        send_web_page,
    ],
)
@pytest.mark.parametrize("file", ["run_specs.json", "display_predictions.json"])
def test_two_failures_are_survived(bucket: Bucket, tmp_path: Path, fault: Answer, file: str) -> None:
    bucket.fail(file, fault, fault)
    assert_whole(fetched(bucket, tmp_path))
    assert max(bucket.requests.values()) == 3


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (send_status(503), r"the server answers 503 \(3 tries\)"),
        (send_status(401), r"the server answers 401"),
        (send_short, r"the connection broke: .*\(3 tries\)"),
        (send_cut_gzip, r"broken or cut off: .*\(3 tries\)"),
        (send_web_page, r"not JSON .*is a login page in between\? \(3 tries\)"),
        (send_bomb, r"holds more than 1,048,576 bytes"),
    ],
)
@pytest.mark.parametrize("file", ["runs_to_run_suites.json", "instances.json"])
def test_a_lasting_failure_is_one_error_and_leaves_no_half_run(
    bucket: Bucket, tmp_path: Path, fault: Answer, message: str, file: str
) -> None:
    bucket.fail(file, *[fault] * 3)
    with pytest.raises(StorageError, match=message) as caught:
        fetched(bucket, tmp_path, workers=2)
    assert file in str(caught.value)
    assert not list(tmp_path.rglob("run_spec.json"))
    assert not list(tmp_path.rglob("*.tmp"))
    bucket.faults.clear()
    assert_whole(fetched(bucket, tmp_path))


def test_a_server_that_sends_drops_is_not_waited_for(bucket: Bucket, tmp_path: Path) -> None:
    bucket.fail("run_specs.json", send_drops, send_drops)
    with pytest.raises(StorageError, match=r"bytes in 0\.3 s and no end \(2 tries\)"):
        fetched(bucket, tmp_path, patience=replace(QUICK, tries=2, timeout=0.3))
    assert not list(tmp_path.iterdir())
    assert_whole(fetched(bucket, tmp_path))


def test_one_lasting_failure_does_not_stop_the_other_runs(bucket: Bucket, tmp_path: Path) -> None:
    bucket.fail("xstest:model=new_nobody-1/instances.json", *[send_status(503)] * 3)
    with pytest.raises(StorageError, match=r"1 of 8 runs could not be fetched.*the same command goes on"):
        fetched(bucket, tmp_path)
    manifest = json.loads((tmp_path / "safety" / RELEASE / "manifest.json").read_text())
    assert manifest["unfinished_runs"] == ["xstest:model=new_nobody-1"]
    assert len(list(tmp_path.rglob("run_spec.json"))) == 7
    bucket.requests.clear()
    assert_whole(fetched(bucket, tmp_path))
    assert sum(bucket.requests.values()) == len(RUN_FILES)


def test_a_run_without_its_files_is_reported_and_left_out(bucket: Bucket, tmp_path: Path) -> None:
    del bucket.bodies["safety/benchmark_output/runs/suite-xstest/xstest:model=new_nobody-1/instances.json"]
    bucket.fail("xstest:model=meta_llama-3-8b-chat/instances.json", send_status(403))
    result = fetched(bucket, tmp_path)
    assert result.missing == ("xstest:model=meta_llama-3-8b-chat", "xstest:model=new_nobody-1")
    assert len(result.runs) == 6
    assert json.loads((result.folder / "manifest.json").read_text())["missing_runs"] == list(result.missing)
    assert sorted(read_helm(result.folder, scenario="xstest").subjects.index) == sorted(MODELS[:2])


def test_a_server_without_compression_will_do(bucket: Bucket, tmp_path: Path) -> None:
    bucket.fail(".json", send_plain)
    assert_whole(fetched(bucket, tmp_path))


def test_no_network_is_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"127\.0\.0\.1 cannot be reached") as caught:
        fetched(Bucket({}), tmp_path, base_url="http://127.0.0.1:1")
    assert caught.value.exit_code == 3
    assert "\n" not in str(caught.value)
    assert "is there a network? Then the same command again" in str(caught.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ALL_PROXY", "socks5://127.0.0.1:1"),  # needs a package that we do not
        ("HTTPS_PROXY", "http://[::1"),
        ("SSL_CERT_FILE", "/no/such/file"),
    ],
)
def test_settings_of_the_machine_that_cannot_be_used_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(StorageError, match=rf"this machine's network settings.*{name}"):
        fetched(Bucket({}), tmp_path, base_url="https://127.0.0.1:1")
    assert not list(tmp_path.iterdir())


def test_killed_at_any_time_the_same_command_goes_on(bucket: Bucket, tmp_path: Path) -> None:
    """SIGKILL leaves no time to clean up: what is there must be whole, and what is lacking must come."""

    def slowly(handler: BaseHTTPRequestHandler, body: bytes) -> None:
        time.sleep(0.1)
        send_gzip(handler, body)

    bucket.fail("s.json", *[slowly] * 9)
    call = (
        "import sys; from irtaudit.data.fetch_helm import fetch_helm; "
        f"fetch_helm(sys.argv[1], project='safety', release='{RELEASE}', "
        f"scenarios=['harm_bench', 'xstest'], base_url='{bucket.url}', workers=2)"
    )
    for most in (1, 4):
        process = subprocess.Popen([sys.executable, "-c", call, str(tmp_path)])
        while len(runs := list(tmp_path.rglob("run_spec.json"))) < most and process.poll() is None:
            time.sleep(0.005)
        process.kill()
        assert process.wait() == -signal.SIGKILL
        assert most <= len(runs) < 8
        for run in (path.parent for path in tmp_path.rglob("run_spec.json")):
            for path in run.glob("*.json"):
                assert (
                    json.loads(path.read_text())
                    == FILES[path.relative_to(tmp_path / "safety" / RELEASE).as_posix()]
                )
            assert {path.name for path in run.glob("*.json")} == set(RUN_FILES)
    for left in tmp_path.rglob(".*.tmp"):
        left.unlink()
    asked = bucket.requests.total()
    result = fetched(bucket, tmp_path)
    assert_whole(result)
    assert bucket.requests.total() - asked == result.downloaded <= 12


def test_a_limit_on_everything_stops_in_time(bucket: Bucket, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="take more than 2,000 bytes"):
        fetched(bucket, tmp_path, max_total_bytes=2_000, workers=1)
    assert 1 <= len(list(tmp_path.rglob("run_spec.json"))) < 8


def test_an_interruption_keeps_whole_runs_only(bucket: Bucket, tmp_path: Path) -> None:
    def interrupt(done: int, total: int) -> None:
        assert (done, total) == (1, 8)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetched(bucket, tmp_path, workers=1, progress=interrupt)
    for run in (path.parent for path in tmp_path.rglob("run_spec.json")):
        assert {path.name for path in run.iterdir()} == set(RUN_FILES)
    assert_whole(fetched(bucket, tmp_path))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"release": "v0"}, StorageError, r"releases/v0/run_specs\.json does not exist; is there such a"),
        ({"scenarios": ["harmbench"]}, PlanError, "no scenario 'harmbench'; it has 'harm_bench', 'xstest'"),
        ({"scenarios": []}, PlanError, "no scenario is named"),
        ({"release": "../v1"}, PlanError, "release is '../v1'"),
        ({"project": "a/b"}, PlanError, "project is 'a/b'"),
        ({"base_url": "ftp://x"}, PlanError, "'ftp://x' is no address; expected one such as 'https://"),
        ({"base_url": "nonsense"}, PlanError, "'nonsense' is no address"),
        ({"base_url": "http://[::1"}, PlanError, r"'http://\[::1' is no address"),
        ({"base_url": "http:///x"}, PlanError, "'http:///x' is no address"),
    ],
)
def test_what_is_not_there_is_said(
    bucket: Bucket, tmp_path: Path, options: dict[str, Any], error: type[IrtAuditError], message: str
) -> None:
    with pytest.raises(error, match=message):
        fetched(bucket, tmp_path, **options)
    assert not list(tmp_path.rglob("run_spec.json"))


@pytest.mark.parametrize("name", ["../../evil", "a/b", "..", "", "a\0b", "a\\b"])
def test_a_name_that_would_leave_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    releases = f"benchmark_output/releases/{RELEASE}"
    files = {
        f"{releases}/run_specs.json": [{"name": name}],
        f"{releases}/runs_to_run_suites.json": {name: "s"},
    }
    with served(Bucket(files)) as bucket, pytest.raises(DataError, match="cannot be a folder"):
        fetched(bucket, tmp_path)


def test_a_strange_manifest_is_not_overwritten(bucket: Bucket, tmp_path: Path) -> None:
    manifest = tmp_path / "safety" / RELEASE / "manifest.json"
    manifest.parent.mkdir(parents=True)
    manifest.write_text('{"files": "mine"}')
    with pytest.raises(DataError, match=re.escape(f"{manifest} is no manifest")):
        fetched(bucket, tmp_path)
    assert manifest.read_text() == '{"files": "mine"}'


def test_a_folder_that_cannot_be_made_is_a_storage_error(bucket: Bucket, tmp_path: Path) -> None:
    (tmp_path / "safety").write_text("a file")
    with pytest.raises(StorageError, match="cannot be made"):
        fetched(bucket, tmp_path)
