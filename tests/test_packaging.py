"""What is handed out: the wheel holds the package and works elsewhere; the pins satisfy what is asked for."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
USE_IT = (
    "import irtaudit; print(irtaudit.__file__); matrix = irtaudit.load_swebench_verified();"
    "print(matrix.n_subjects, matrix.n_items)"
)


def pins() -> dict[str, str]:
    """Return the version of each package in constraints.txt."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return dict(line.split("==") for line in lines if not line.startswith("#"))


def ran(*command: str | Path, cwd: Path, **env: str) -> str:
    """Run the command in the folder `cwd` and return what it printed."""
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, **env}, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the source archive, and the wheel from that; return the folder of both."""
    folder = tmp_path_factory.mktemp("dist")
    ran(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT, cwd=folder)
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (path,) = built.glob("irtaudit-*.whl")
    return path


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    here = (path for path in (ROOT / "irtaudit").rglob("*") if path.is_file() and path.suffix != ".pyc")
    expected = {path.relative_to(ROOT).as_posix() for path in here}
    held = set(zipfile.ZipFile(wheel).namelist())
    about = {name for name in held if ".dist-info/" in name}
    assert held - about == expected
    assert {"irtaudit/py.typed", "irtaudit/data/swebench_verified/LICENSE"} <= expected
    licences = {name.partition("/licenses/")[2] for name in about}
    assert {"LICENSE", "irtaudit/data/swebench_verified/LICENSE"} <= licences


def test_the_wheel_is_small(wheel: Path) -> None:
    assert wheel.stat().st_size < 2_000_000


def test_the_source_archive_can_be_tested_and_cited(built: Path) -> None:
    (path,) = built.glob("irtaudit-*.tar.gz")
    with tarfile.open(path) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    assert {"LICENSE", "CITATION.cff", "constraints.txt", "scripts/test", "tests/test_packaging.py"} <= held


def test_the_wheel_works_outside_the_repository(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    ran(sys.executable, "-m", "pip", "install", "--no-deps", "--target", site, wheel, cwd=tmp_path)
    where, size = ran(sys.executable, "-c", USE_IT, cwd=tmp_path, PYTHONPATH=str(site)).splitlines()
    assert Path(where).is_relative_to(site)
    assert size == "134 500"


@pytest.mark.nightly
def test_the_wheel_installs_with_all_it_needs(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    programs = tmp_path / "venv" / "bin"
    install = (programs / "python", "-m", "pip", "install", "--constraint", ROOT / "constraints.txt")
    ran(*install, f"torch=={pins()['torch']}", cwd=tmp_path)
    ran(*install, wheel, cwd=tmp_path)
    assert ran(programs / "irtaudit", "--version", cwd=tmp_path) == f"irtaudit {wheel.name.split('-')[1]}\n"
    assert ran(programs / "python", "-c", USE_IT, cwd=tmp_path).endswith("134 500\n")


def test_every_pin_satisfies_what_the_project_asks_for() -> None:
    asked = [*PROJECT["dependencies"], *chain.from_iterable(PROJECT["optional-dependencies"].values())]
    wanted = [Requirement(text) for text in asked if not text.startswith("irtaudit[")]
    pinned = {canonicalize_name(name): version for name, version in pins().items()}
    missed = [str(ask) for ask in wanted if pinned.get(canonicalize_name(ask.name), "") not in ask.specifier]
    assert missed == []


def test_the_pins_name_public_releases() -> None:
    assert all(version and "+" not in version and "@" not in name for name, version in pins().items())
