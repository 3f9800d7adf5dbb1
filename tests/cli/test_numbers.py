"""Numbers that are none (nan) or have no end (inf) are refused by every option that takes a number."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from irtaudit.cli import COMMANDS, main

OWN_WORDS = {"--pass-at"}
"""Checked where it is used, since a plan has it too."""


def _numbers(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for parameter in command.params:
        if isinstance(parameter.type, click.types.FloatParamType) and parameter.opts[0] not in OWN_WORDS:
            yield " ".join(path), parameter.opts[0]
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from _numbers(inner, (*path, name))


EVERY = [
    one
    for name in COMMANDS
    for one in _numbers(main.get_command(click.Context(main), name), (name,))  # type: ignore[arg-type]  # it is there
]


def test_the_options_are_found() -> None:
    assert {("saturation", "--threshold"), ("export", "--share"), ("check-table", "--sd")} <= set(EVERY)


@pytest.mark.parametrize(("command", "option"), EVERY, ids=[" ".join(one) for one in EVERY])
@pytest.mark.parametrize("number", ["nan", "inf", "-inf"])
def test_what_is_no_number_is_a_usage_error(
    command: str, option: str, number: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*command.split(), "x", option, number], prog_name="irtaudit")
    assert ended.value.code == 2
    assert option in capsys.readouterr().err
