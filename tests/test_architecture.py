"""Who may import whom: downward only, never sideways between audits, torch in one room."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

GROUND = {"stats", "errors", "words", "_version"}
MIDDLE = GROUND | {"data", "plan"}
AUDITS = {"dimensionality", "dif"}
MAY_IMPORT = {
    "errors": set[str](),
    "_version": set[str](),
    "stats": set[str](),
    "words": set[str](),
    "data": GROUND,
    "plan": GROUND,
    "report": GROUND,
    "irt": MIDDLE,
    "dimensionality": MIDDLE | {"irt"},
    "dif": MIDDLE | {"irt"},
    "panel": MIDDLE | {"report"},
    "protocol": MIDDLE | {"report"},
    "audit": MIDDLE | {"irt"} | AUDITS,
    "present": MIDDLE | {"irt", "audit"} | AUDITS,
    "cli": MIDDLE | {"irt", "report", "panel", "protocol", "audit", "present"} | AUDITS,
    "__main__": {"cli"},
}
PACKAGE = Path(__file__).parents[1] / "irtaudit"


def imported_modules(path: Path, package: Path) -> set[str]:
    """Return the absolute dotted names that the file imports, relative ones resolved."""
    here = (package.name, *path.relative_to(package).parent.parts)
    found = set[str]()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = here[: len(here) - node.level + 1] if node.level else ()
            found.add(".".join((*base, *filter(None, [node.module]))))
    return found


def broken_arrows(package: Path) -> list[str]:
    """Return one sentence for each import that the house forbids."""
    broken = []
    for path in sorted(package.rglob("*.py")):
        inside = path.relative_to(package)
        room = inside.parts[0].removesuffix(".py")
        if room == "__init__":
            continue
        if room not in MAY_IMPORT:
            broken.append(f"{inside.as_posix()} is in no room of the house")
            continue
        presents = path.stem.split("_")[0] == "present"
        allowed = MAY_IMPORT[room] | {room} | ({"report"} if presents else set())
        for name in sorted(imported_modules(path, package)):
            root, _, rest = name.partition(".")
            target = rest.partition(".")[0]
            if (
                (root == "irtaudit" and target not in allowed)
                or (root in {"torch", "pyro"} and room != "irt")
                or (root == "matplotlib" and room != "report" and not presents)
            ):
                broken.append(f"{inside.as_posix()} imports {name}")
    return broken


def test_the_house_keeps_its_arrows() -> None:
    assert broken_arrows(PACKAGE) == []


@pytest.mark.parametrize(
    ("file", "line", "imported"),
    [
        ("stats/ranks.py", "from irtaudit.errors import DataError", "irtaudit.errors"),
        ("errors.py", "from .stats import ranks", "irtaudit.stats"),
        ("data/splits.py", "from irtaudit.irt.spec import ModelSpec", "irtaudit.irt.spec"),
        ("data/splits.py", "from ..plan import Plan", "irtaudit.plan"),
        ("irt/fit.py", "import irtaudit.dif", "irtaudit.dif"),
        ("irt/fit.py", "from irtaudit.report.section import Section", "irtaudit.report.section"),
        ("report/section.py", "from irtaudit.dif.present import present", "irtaudit.dif.present"),
        ("dif/screens.py", "from irtaudit.dimensionality.null import draw", "irtaudit.dimensionality.null"),
        ("dif/screens.py", "from irtaudit.report.section import Section", "irtaudit.report.section"),
        ("panel/criterion.py", "from irtaudit.protocol.gap import gap", "irtaudit.protocol.gap"),
        ("panel/criterion.py", "from irtaudit.irt.fit import fit", "irtaudit.irt.fit"),
        ("audit.py", "from irtaudit.cli.progress import stage", "irtaudit.cli.progress"),
        ("cli/audit.py", "import irtaudit", "irtaudit"),
        ("cli/audit.py", "from irtaudit import fit", "irtaudit"),
        ("cli/audit.py", "from .. import fit", "irtaudit"),
        ("dif/null.py", "def draw():\n    import torch", "torch"),
        ("data/bundled.py", "from pyro.infer import SVI", "pyro.infer"),
        ("dif/screens.py", "import matplotlib.pyplot as plt", "matplotlib.pyplot"),
    ],
)
def test_a_forbidden_import_is_named(tmp_path: Path, file: str, line: str, imported: str) -> None:
    planted = tmp_path / "irtaudit" / file
    planted.parent.mkdir(parents=True, exist_ok=True)
    planted.write_text(line, encoding="utf-8")
    assert broken_arrows(tmp_path / "irtaudit") == [f"{file} imports {imported}"]


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("stats/ranks.py", "from irtaudit.stats.moments import mean\nimport numpy"),
        ("dif/present.py", "import matplotlib\nfrom irtaudit.report.section import Section"),
        ("dif/present_power.py", "import matplotlib\nfrom irtaudit.report.section import Section"),
        ("irt/fit.py", "import torch\nfrom pyro.infer import SVI\nfrom ..data.splits import Splits"),
        ("cli/audit.py", "from irtaudit.audit import run_audit"),
        ("__init__.py", "from irtaudit.irt.fit import fit"),
    ],
)
def test_a_downward_import_is_let_through(tmp_path: Path, file: str, line: str) -> None:
    planted = tmp_path / "irtaudit" / file
    planted.parent.mkdir(parents=True, exist_ok=True)
    planted.write_text(line, encoding="utf-8")
    assert broken_arrows(tmp_path / "irtaudit") == []


def test_a_new_top_level_room_is_refused_until_it_has_a_place(tmp_path: Path) -> None:
    planted = tmp_path / "irtaudit" / "utils.py"
    planted.parent.mkdir()
    planted.write_text("", encoding="utf-8")
    assert broken_arrows(tmp_path / "irtaudit") == ["utils.py is in no room of the house"]
