# SPDX-License-Identifier: Apache-2.0
"""Help is written in one way over all verbs, and shows each option's default."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("click", reason="the command line is not installed")
pytest.importorskip("rich", reason="the command line is not installed")

import click

from feedline.cli.root import root

TOP = click.Context(root, info_name="feedline", terminal_width=100, **root.context_settings)
OPTIONS = [
    pytest.param(verb, option, id=f"{verb} {option.opts[0]}")
    for verb, command in root.commands.items()
    for option in command.params
    if isinstance(option, click.Option)
]


def context(verb: str) -> click.Context:
    return click.Context(root.commands[verb], info_name=verb, parent=TOP)


@pytest.mark.parametrize(("verb", "option"), OPTIONS)
def test_options_report_what_they_do_in_a_sentence_with_their_default(verb: str, option: click.Option) -> None:
    assert option.help is not None and re.fullmatch(r"[A-Z].*[^.]\.", option.help)
    assert "efault" not in option.help, "show_default says it"
    shown = option.get_help_record(context(verb))
    assert shown is not None
    name, help = shown
    assert not re.search(r"RANGE|INTEGER|FLOAT|TEXT|PATH|DIRECTORY", name), name
    default = option.to_info_dict()["default"]  # None: it has none, whatever this version of click has for that
    if isinstance(option.show_default, str):
        assert default is None and f"[default: ({option.show_default})" in help
    elif default not in (None, False, ()):
        assert f"[default: {default}" in help


@pytest.mark.parametrize("verb", root.commands)
def test_verbs_report_what_they_do_in_one_line(verb: str) -> None:
    command = root.commands[verb]
    lines = {
        line.split()[0]: line for line in root.get_help(TOP).splitlines() if line.startswith("  ") and line.strip()
    }
    assert command.short_help is not None and lines[verb].endswith(command.short_help)
    assert re.fullmatch(r"[A-Z].*[^.]\.", command.short_help)
    usage = command.get_usage(context(verb))
    assert "RANGE" not in usage and usage.startswith(f"Usage: feedline {verb} [OPTIONS]")
