"""Every way a command can end: its exit code, its one message, and nothing a user has to decode."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import click
import pytest

from irtaudit import __main__ as entry
from irtaudit import cli
from irtaudit.errors import ConvergenceWarning, DataError, FitError, PlanError, StorageError

Run = Callable[..., int]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run ``irtaudit planted`` with the given body as its command; returns the exit code."""
    monkeypatch.delenv("IRTAUDIT_DEBUG", raising=False)

    def run_planted(body: Callable[[], None], *options: str) -> int:
        module = ModuleType("planted_command")
        module.command = click.command("planted")(body)  # type: ignore[attr-defined] # a module made by hand
        monkeypatch.setitem(sys.modules, "planted_command", module)
        monkeypatch.setitem(cli.COMMANDS, "planted", "planted_command")
        return exit_code(*options, "planted")

    return run_planted


def exit_code(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        cli.main(list(arguments), prog_name="irtaudit")
    return int(ended.value.code or 0)


def raiser(error: BaseException) -> Callable[[], None]:
    def body() -> None:
        raise error

    return body


def test_alone_it_prints_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code() == 0
    alone = capsys.readouterr().out
    assert exit_code("--help") == 0
    assert capsys.readouterr().out == alone
    assert all(f" {code}  " in alone for code in (0, 1, 2, 3, 70, 130, 141))
    assert all(f"  {name} " in alone for name in cli.COMMANDS)


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("--version") == 0
    assert capsys.readouterr().out == f"irtaudit {cli.__version__}\n"


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_exists_and_says_what_it_is_for(name: str) -> None:
    command = import_module(cli.COMMANDS[name]).command
    assert isinstance(command, click.Command)
    assert command.get_short_help_str()


@pytest.mark.parametrize("arguments", [["audti"], ["--no-such-option"]])
def test_what_it_does_not_know_is_a_usage_error(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(*arguments) == 2
    assert arguments[0] in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (DataError("a.csv, line 3: score 2 is not 0 or 1"), 2, "a.csv, line 3: score 2 is not 0 or 1"),
        (PlanError("no model named 5pl"), 2, "no model named 5pl"),
        (FitError("no restart of unidimensional_2pl could be fitted"), 2, "unidimensional_2pl"),
        (StorageError("fits/1.safetensors is truncated"), 3, "fits/1.safetensors is truncated"),
        (
            OSError(errno.ENOSPC, "No space left on device", "out/audit.json"),
            3,
            "out/audit.json: No space left",
        ),
        (PermissionError(errno.EACCES, "Permission denied", "out"), 3, "out: Permission denied"),
        (MemoryError(), 3, "out of memory"),
        (KeyboardInterrupt(), 130, "interrupted.\n"),
        (click.Abort(), 130, "interrupted"),
        (ZeroDivisionError("float division by zero"), 70, "ZeroDivisionError: float division by zero"),
    ],
)
def test_an_error_is_one_message_and_its_code(
    error: BaseException, code: int, said: str, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(raiser(error)) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("irtaudit: error: ")
    assert said in err
    assert err.count("\n") == (2 if code == 70 else 1)
    assert "Traceback" not in err


def test_an_interruption_says_that_work_is_kept_only_where_some_is(
    run: Run, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = tmp_path / "fits"

    def body() -> None:
        cli.keeps_work(folder)
        raise KeyboardInterrupt

    for make in (lambda: None, folder.mkdir):
        make()
        assert run(body) == 130
        assert capsys.readouterr().err == "irtaudit: error: interrupted, before anything was finished.\n"
    (folder / "one.safetensors").write_bytes(b"x")
    assert run(body) == 130
    said = f"interrupted. Finished work is kept in {folder}: the same command again goes on from there.\n"
    assert capsys.readouterr().err == f"irtaudit: error: {said}"


def test_debug_shows_the_traceback_and_keeps_the_code(
    run: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(raiser(KeyError("theta")), "--debug") == 70
    assert "Traceback" in capsys.readouterr().err
    monkeypatch.setenv("IRTAUDIT_DEBUG", "1")
    assert run(raiser(DataError("empty file"))) == 2
    assert "Traceback" in capsys.readouterr().err


def test_a_check_command_flags_with_its_own_code(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(lambda: click.get_current_context().exit(1)) == 1
    assert capsys.readouterr().err == ""


def test_our_warnings_are_one_plain_line_and_others_keep_their_form(
    run: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    others: list[Warning | str] = []
    monkeypatch.setattr(warnings, "showwarning", lambda message, *_, **__: others.append(message))
    shown_before = warnings.showwarning

    def body() -> None:
        warnings.showwarning("slope scale sits at its boundary", ConvergenceWarning, "engine.py", 7)
        warnings.showwarning("overflow in exp", RuntimeWarning, "numbers.py", 7)

    assert run(body) == 0
    assert capsys.readouterr().err == "irtaudit: warning: slope scale sits at its boundary\n"
    assert others == ["overflow in exp"]
    assert warnings.showwarning is shown_before


@pytest.mark.parametrize("lines", [1, 900_000], ids=["at the last flush", "in the middle of writing"])
def test_a_reader_that_leaves_ends_it_quietly(lines: int) -> None:
    program = (
        "import sys, types, click; from irtaudit import cli\n"
        "module = types.ModuleType('talk')\n"
        f"module.command = click.command()(lambda: [sys.stdout.write('line\\n') for _ in range({lines})])\n"
        "sys.modules['talk'] = module; cli.COMMANDS['talk'] = 'talk'\n"
        "cli.main(['talk'])\n"
    )
    reading, writing = os.pipe()
    os.close(reading)
    buffered = {**os.environ, "PYTHONUNBUFFERED": ""}
    talking = subprocess.run(
        [sys.executable, "-c", program], stdout=writing, stderr=subprocess.PIPE, env=buffered, check=False
    )
    os.close(writing)
    assert talking.stderr == b""
    assert talking.returncode == 141


TALKATIVE = (
    "import sys, types, click; from irtaudit import cli\n"
    "module = types.ModuleType('talk')\n"
    "module.command = click.command()(lambda: click.echo('\\u2192 \\udcff'))\n"
    "sys.modules['talk'] = module; cli.COMMANDS['talk'] = 'talk'\n"
)


@pytest.fixture
def talk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str, str]]:
    """Run a shell command line in an empty folder; ``talk`` there is a command that prints a hard name."""
    program = tmp_path / "talk.py"
    program.write_text(TALKATIVE + "cli.main(sys.argv[1:], prog_name='irtaudit')\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    def run_line(line: str, **environment: str) -> tuple[int, str, str]:
        done = subprocess.run(
            ["bash", "-c", line.replace("irtaudit", f"'{sys.executable}' talk.py")],
            capture_output=True,
            env={**os.environ, **environment},
            check=False,
        )
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    return run_line


@pytest.mark.parametrize("command", ["talk", "--help", "audit --help", "--version"])
@pytest.mark.parametrize(
    ("stream", "code"), [(">&-", 0), (">&- 2>&-", 0), ("<&- >&- 2>&-", 0), ("> /dev/full", 3)]
)
def test_a_stream_that_takes_nothing_is_no_mistake_of_ours(
    command: str, stream: str, code: int, talk: Callable[..., tuple[int, str, str]]
) -> None:
    ended, out, err = talk(f"irtaudit {command} {stream}")
    assert (ended, out) == (code, "")
    assert err.count("\n") == (1 if code else 0)


def test_a_file_does_not_take_the_place_of_a_closed_stream(tmp_path: Path) -> None:
    """Without its number reserved, the next file to be opened would receive what is printed."""
    code = f"{TALKATIVE}cli.open_streams(); file = open('data.txt', 'w'); print(file.fileno(), file=file)\n"
    words = ["bash", "-c", f"'{sys.executable}' -c \"$0\" >&-", code]
    assert subprocess.run(words, cwd=tmp_path, check=False).returncode == 0
    assert int((tmp_path / "data.txt").read_text()) > 2


@pytest.mark.parametrize("command", ["talk", "--help", "--version"])
def test_no_reader_at_all_is_quiet(command: str, talk: Callable[..., tuple[int, str, str]]) -> None:
    ended, _, err = talk(f"{{ sleep .3; irtaudit {command}; }} | true; exit ${{PIPESTATUS[0]}}")
    assert (ended, err) == (141, "")


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"PYTHONIOENCODING": "utf-8"}, "\u2192 \\udcff\n"),
        ({"PYTHONIOENCODING": "latin-1"}, "\\u2192 \\udcff\n"),
    ],
    ids=["UTF-8", "Latin-1"],
)
def test_what_the_terminal_cannot_write_is_escaped(
    environment: dict[str, str], said: str, talk: Callable[..., tuple[int, str, str]]
) -> None:
    assert talk("irtaudit talk", **environment) == (0, said, "")


@pytest.mark.parametrize("words", ["audit x$'\\xff'.csv", "audit x.csv --claim $'\\xff'", "$'\\xff'"])
def test_arguments_that_are_not_text_are_refused_at_once(
    words: str, talk: Callable[..., tuple[int, str, str]]
) -> None:
    ended, out, err = talk(f"irtaudit {words}")
    assert (ended, out) == (2, "")
    assert "\\udcff" in err
    assert "is not text in this terminal's encoding" in err


class Interrupted:
    """Interrupted in its destructor."""

    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)


def interrupted_import(answer: str = "pass") -> None:
    """As Cython's modules do while they set themselves up."""
    Path("dropping.py").write_text(
        f"import signal\ntry:\n    signal.raise_signal(signal.SIGINT)\nexcept BaseException:\n    {answer}\n",
        encoding="utf-8",
    )
    import_module("dropping")


def misunderstood_import() -> None:
    """A module that makes another error of its interrupted import."""
    interrupted_import("raise TypeError('expected a message argument')")


@pytest.mark.parametrize("drop", [Interrupted, interrupted_import, misunderstood_import])
def test_an_interrupt_that_is_dropped_is_delivered_again(
    drop: Callable[[], object],
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "dropping", raising=False)
    ended = []

    def body() -> None:
        drop()
        time.sleep(20)
        ended.append("as if nothing had happened")

    handlers = signal.getsignal(signal.SIGINT), sys.unraisablehook
    assert run(body) == 130
    assert not ended
    assert "interrupted" in capsys.readouterr().err
    assert (signal.getsignal(signal.SIGINT), sys.unraisablehook) == handlers


def test_an_interrupt_while_the_command_line_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "irtaudit.cli", _Interrupting("irtaudit.cli"))
    with pytest.raises(SystemExit) as ended:
        entry.run()
    assert ended.value.code == 130


class _Interrupting(ModuleType):
    """A module whose import is interrupted."""

    def __getattr__(self, name: str) -> None:
        raise KeyboardInterrupt


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_an_empty_path_is_not_the_current_folder(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for words in paths_of(import_module(cli.COMMANDS[name]).command, [name]):
        assert exit_code(*words) == 2, words
        assert "it is empty" in capsys.readouterr().err, words
    assert not list(tmp_path.iterdir())


def paths_of(command: click.Command, words: list[str]) -> Iterator[list[str]]:
    """Command lines in which one path is empty, for every path a command takes."""
    if isinstance(command, click.Group):
        for name, below in command.commands.items():
            yield from paths_of(below, [*words, name])
        return
    for one in command.params:
        if isinstance(one.type, click.Path):
            yield [*words, *([one.opts[0]] if isinstance(one, click.Option) else []), ""]


@pytest.mark.parametrize(
    "words",
    [
        ["audit", "--demo", "--claim"],
        ["dif", "x.csv", "--group", "a:b,c", "--claim"],
        ["protocol", "--demo", "--reading"],
    ],
    ids=lambda words: words[0],
)
@pytest.mark.parametrize("blank", ["", " \t"])
def test_a_blank_reading_is_refused_before_anything_runs(
    words: list[str], blank: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(*words, blank) == 2
    assert "it is blank" in capsys.readouterr().err
