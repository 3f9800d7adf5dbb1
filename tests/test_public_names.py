"""The public names: all there, documented, the same for editors as for Python, and loaded only when used."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import irtaudit
from irtaudit.cli import COMMANDS, EXIT_CODES

HEAVY = {"torch", "pyro", "matplotlib", "pandas", "scipy", "sklearn", "statsmodels", "pyarrow", "joblib"}


def heavy_modules_after(program: str) -> str:
    """Run `program` in a fresh interpreter and return which heavy modules it had loaded at its end."""
    report = (
        f"import sys, atexit\natexit.register(lambda: print('loaded', sorted({HEAVY} & set(sys.modules))))\n"
    )
    ran = subprocess.run([sys.executable, "-c", report + program], capture_output=True, text=True, check=True)
    return ran.stdout.splitlines()[-1]


def test_the_check_sees_what_is_loaded() -> None:
    assert heavy_modules_after("import pandas").startswith("loaded ['pandas'")


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert heavy_modules_after("import irtaudit; irtaudit.DataError; dir(irtaudit)") == "loaded []"


@pytest.mark.parametrize(
    "arguments", [[], ["--version"], ["--help"], *([name, "--help"] for name in COMMANDS)]
)
def test_asking_the_command_line_loads_nothing_heavy(arguments: list[str]) -> None:
    assert heavy_modules_after(f"from irtaudit.cli import main; main({arguments})") == "loaded []"


PUBLIC = {name: getattr(irtaudit, name) for name in irtaudit.__all__}
ERRORS = {name for name, found in PUBLIC.items() if inspect.isclass(found) and issubclass(found, Exception)}


@pytest.mark.parametrize("name", PUBLIC)
def test_every_name_is_there_and_says_what_it_is(name: str) -> None:
    assert PUBLIC[name].__name__ == name
    assert inspect.getdoc(PUBLIC[name])


@pytest.mark.parametrize("name", sorted(PUBLIC.keys() - ERRORS))
def test_every_noun_and_verb_explains_its_parts(name: str) -> None:
    doc = inspect.getdoc(PUBLIC[name]) or ""
    unexplained = [part for part in inspect.signature(PUBLIC[name]).parameters if part not in doc]
    assert unexplained == []
    headings = {"Attributes", "Parameters"} if inspect.isclass(PUBLIC[name]) else {"Returns"}
    assert any(f"{heading}\n{'-' * len(heading)}\n" in doc for heading in headings)


def test_editors_and_python_see_the_same_names() -> None:
    tree = ast.parse(Path(irtaudit.__file__).read_text(encoding="utf-8"))
    (typed,) = (node for node in tree.body if isinstance(node, ast.If))
    promised = {
        alias.name: node.module
        for node in typed.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert promised == irtaudit._HOMES
    assert set(irtaudit.__all__) <= set(dir(irtaudit))


def test_a_name_that_is_not_there_is_said_so() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'fit_everything'"):
        irtaudit.fit_everything  # noqa: B018 - reading it is the test


def test_the_example_in_the_readme_runs(capsys: pytest.CaptureFixture[str]) -> None:
    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", readme, flags=re.DOTALL)
    made_quick = example.replace("n_restarts=20", 'n_restarts=1, preset="quick"')
    made_quick = made_quick.replace(
        "[specs[0], specs[2]], seed", '[specs[0], specs[2]], n_restarts=1, preset="quick", seed'
    )
    assert made_quick.count('preset="quick"') == 2
    exec(compile(made_quick, "README.md", "exec"), {})
    said = capsys.readouterr().out
    assert "confirmatory_repo_2pl" in said
    assert "..." not in said.partition("log_loss")[0]
    assert re.search(r"^(not supported|supported|inconclusive): ", said, flags=re.MULTILINE)


def test_the_readme_names_every_command_and_exit_code() -> None:
    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    commands = {name: import_module(module).command for name, module in COMMANDS.items()}
    for name, command in commands.items():
        below = getattr(command, "commands", None) or {"": None}
        for full in (f"{name} {sub}".strip() for sub in below):
            assert f"| `{full}` |" in readme, full
    codes = re.findall(r"^ +(\d+)  ", EXIT_CODES, flags=re.MULTILINE)
    assert codes == re.findall(r"^\| (\d+) \| ", readme, flags=re.MULTILINE)


def test_the_readme_opens_with_the_two_commands() -> None:
    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    assert [line.split()[0] for line in readme.splitlines()[3:5]] == ["scripts/demo", "scripts/test"]
