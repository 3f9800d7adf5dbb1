"""The command line: finds a command by name, and turns every way to fail into one message and an exit code.

A command is one file beside this one that exports ``command``. It imports what is heavy inside its function,
so that asking for help costs nothing.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from threading import Timer, current_thread, main_thread
from types import FrameType, MappingProxyType
from typing import IO, Any

import click

from irtaudit._version import __version__
from irtaudit.errors import ConvergenceWarning, IrtAuditError

COMMANDS = {
    "audit": "irtaudit.cli.audit",
    "dif": "irtaudit.cli.dif",
    "convert": "irtaudit.cli.convert",
    "fetch": "irtaudit.cli.fetch",
    "describe": "irtaudit.cli.describe",
    "saturation": "irtaudit.cli.saturation",
    "export": "irtaudit.cli.export",
    "protocol": "irtaudit.cli.protocol",
    "bundles": "irtaudit.cli.bundles",
    "judge": "irtaudit.cli.judge",
    "panel": "irtaudit.cli.panel",
    "build-panel": "irtaudit.cli.build_panel",
    "plan": "irtaudit.cli.plan",
    "check-table": "irtaudit.cli.check_table",
}

_KEPT = "irtaudit.kept"

EXIT_CODES = """\b
Exit codes:
    0  done
    1  something was flagged (check commands only)
    2  bad input, option or plan
    3  network, disk or memory
   70  a mistake in irtaudit itself: please report it
  130  interrupted
  141  whoever read the output left (| head)
"""


class Failure(click.ClickException):
    """What ends a command: a message for stderr, and the exit code."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the message to `file`, stderr unless said otherwise."""
        click.echo(f"irtaudit: error: {self.format_message()}", file=file, err=True)


def keeps_work(folder: Path) -> None:
    """Say of the command that runs that it keeps what it finishes in a folder, and takes it up from there."""
    click.get_current_context().meta[_KEPT] = folder


def interruption(kept: Path | None) -> str:
    """What an interrupted command says.

    Parameters
    ----------
    kept : Path or None
        Where the command keeps what it finishes; None: it finishes in one go.
    """
    if kept is None:
        return "interrupted."
    if not any(path.is_file() for path in kept.rglob("*")):
        return "interrupted, before anything was finished."
    return f"interrupted. Finished work is kept in {kept}: the same command again goes on from there."


def failure_of(error: BaseException, kept: Path | None = None) -> Failure:
    """Return how the command line ends on `error`.

    Parameters
    ----------
    error : BaseException
        What a command raised and click itself has no answer for.
    kept : Path, optional
        See :func:`interruption`.

    Returns
    -------
    Failure
        The message to print and the exit code, one of `EXIT_CODES`.
    """
    if isinstance(error, IrtAuditError):
        return Failure(str(error), error.exit_code)
    if isinstance(error, KeyboardInterrupt | click.Abort):
        return Failure(interruption(kept), 130)
    if isinstance(error, MemoryError):
        return Failure("out of memory. Try fewer --workers, or a machine with more.", 3)
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return Failure(f"{where}{error.strerror or error}. Mend that, then run the same command again.", 3)
    return Failure(
        f"this is a mistake in irtaudit, not in your input ({type(error).__name__}: {error}).\n"
        "Please report it with the traceback that `irtaudit --debug ...` or IRTAUDIT_DEBUG=1 prints.",
        70,
    )


@contextmanager
def error_boundary(debug: bool, meta: Mapping[str, Any] = MappingProxyType({})) -> Iterator[None]:
    """Turn what the command inside raises into a `Failure`; with `debug` its traceback is printed as well.

    `meta` is that of the command's context, see :func:`keeps_work`.
    """
    try:
        yield
        sys.stdout.flush()
    except (click.exceptions.Exit, click.ClickException):
        raise
    except BrokenPipeError:
        # The reader of our output has left (`| head`): stay quiet, at the interpreter's last flush too.
        for stream in (sys.stdout, sys.stderr):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        raise click.exceptions.Exit(141) from None
    except (Exception, KeyboardInterrupt) as error:  # the last frame before the shell answers for all of them
        if debug:
            traceback.print_exc()
        raise failure_of(error, meta.get(_KEPT)) from error


def open_streams() -> None:
    """Give the process the standard streams that its parent closed, and let them write any name.

    A closed stream (`>&-`) is as if it led nowhere; otherwise the next file to be opened would take its
    number, and receive what is printed. What a stream's encoding lacks is written as an escape.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.dup(number), "r" if name == "stdin" else "w", encoding="utf-8"))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def check_arguments(arguments: Iterable[str]) -> None:
    """Refuse what could not be written into a report at the end of the work.

    Raises
    ------
    Failure
        When an argument is not text.
    """
    for argument in arguments:
        if argument.encode("utf-8", "replace").decode() != argument:
            encoding = sys.getfilesystemencoding()
            raise Failure(
                f"{argument!r} is not text in this terminal's encoding ({encoding}). Rename the file, type "
                "it anew, or set a UTF-8 locale (LC_ALL=C.UTF-8).",
                2,
            )


@contextmanager
def heard_interrupts() -> Iterator[None]:
    """Deliver again a ctrl-C that is dropped on its way.

    Compiled modules drop what is raised while they set themselves up (Cython's do), and Python drops what is
    raised in a destructor or in the callback of a weak reference; neither spares KeyboardInterrupt. What is
    delivered twice does no harm: nothing is lost by leaving an import.
    """
    handler, hook, timers = signal.getsignal(signal.SIGINT), sys.unraisablehook, list[Timer]()

    def again() -> None:
        timers.append(Timer(0.2, signal.pthread_kill, (main_thread().ident, signal.SIGINT)))
        timers[-1].start()

    def interrupt(_number: int, frame: FrameType | None) -> None:
        if _importing(frame):
            again()
        raise KeyboardInterrupt

    def unraisable(dropped: sys.UnraisableHookArgs) -> None:
        if issubclass(dropped.exc_type, KeyboardInterrupt):
            again()
        else:
            hook(dropped)

    ours = handler is signal.default_int_handler and current_thread() is main_thread()
    sys.unraisablehook = unraisable
    if ours:
        signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    except Exception as error:
        if timers:  # what a module made of its interrupted import
            raise KeyboardInterrupt from error
        raise
    finally:
        sys.unraisablehook = hook
        if ours:
            signal.signal(signal.SIGINT, lambda *_: None)  # once was enough
        for timer in timers:
            timer.cancel()
            timer.join()
        if ours:
            signal.signal(signal.SIGINT, handler)


def _importing(frame: FrameType | None) -> bool:
    """Whether the interrupted code runs on behalf of an import."""
    while frame is not None:
        if frame.f_code.co_name == "_find_and_load":
            return True
        frame = frame.f_back
    return False


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Show our warnings as one line each, without the source line that raised them."""
    with warnings.catch_warnings():
        show = warnings.showwarning

        def show_plainly(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
            if issubclass(category, ConvergenceWarning):
                click.echo(f"irtaudit: warning: {message}", err=True)
            else:
                show(message, category, *where, **more)

        warnings.showwarning = show_plainly
        yield


class Commands(click.Group):
    """A group that imports a command's file when the command is named, and answers for all its errors."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names in `COMMANDS`, in that order."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - same
        """Return the command of that name, or None."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(COMMANDS[cmd_name]).command
        return command

    def main(self, *arguments: Any, **options: Any) -> Any:
        """Run the command line."""
        open_streams()
        return super().main(*arguments, **options)

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Read the arguments; --help and --version print here."""
        with error_boundary(debug=bool(os.environ.get("IRTAUDIT_DEBUG"))):
            check_arguments(args)
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that the arguments name."""
        with error_boundary(ctx.params["debug"], ctx.meta), heard_interrupts(), plain_warnings():
            return super().invoke(ctx)


@click.group(
    cls=Commands,
    invoke_without_command=True,
    epilog=EXIT_CODES,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, message="irtaudit %(version)s")
@click.option(
    "--debug", is_flag=True, envvar="IRTAUDIT_DEBUG", help="Show tracebacks; also IRTAUDIT_DEBUG=1."
)
@click.pass_context
def main(ctx: click.Context, debug: bool) -> None:  # noqa: ARG001 - read by Commands.invoke
    """Does a benchmark score support the reading people give it?"""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
