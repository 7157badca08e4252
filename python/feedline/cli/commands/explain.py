# SPDX-License-Identifier: Apache-2.0
"""``feedline explain``: explains the meaning of a finding, how it is detected, and its fix."""

from __future__ import annotations

import difflib
from pathlib import Path

import click

from feedline.cli import exit_codes, parameters
from feedline.cli.console import OUT, print_json, table
from feedline.findings import Entry, formats


@click.command(short_help="Explain a finding and its fix.")
@click.argument("code", required=False)
@parameters.causes_folders()
@click.option("--markdown", is_flag=True, help="Print all pages as one Markdown document.")
@parameters.as_json()
def explain(code: str | None, causes: tuple[Path, ...], markdown: bool, as_json: bool) -> int:
    """Print the page of CODE: its meaning, the measurements it is based on, and the fix. Without CODE, list all codes.

    A code that several subcommands use has one page for each. Exit status 2: the code does not exist.
    """
    pages = pages_of(causes)
    if markdown:
        print(formats.document(pages), end="")
        return exit_codes.FINE
    if code is None:
        _list(pages, as_json)
        return exit_codes.FINE
    named = [page for page in pages if page.code == code.replace("-", "_").lower()]
    if not named:
        raise click.UsageError(_unknown(code, pages))
    if as_json:
        print_json({"code": named[0].code, "pages": [formats.entry_as_dict(page) for page in named]})
        return exit_codes.FINE
    for i, page in enumerate(named):
        for line in ["", *formats.entry_lines(page)] if i else formats.entry_lines(page):
            OUT.print(line, markup=False)
    return exit_codes.FINE


def pages_of(causes: tuple[Path, ...] = ()) -> list[Entry]:
    """Returns all pages, grouped by subcommand; `causes`: folders with additional causes for ``feedline diagnose``."""
    from feedline.data.inspect import inspection, stored_images
    from feedline.data.storage import storage_types
    from feedline.diagnose import causes as of_diagnose
    from feedline.diagnose import deaths
    from feedline.doctor import causes as of_doctor
    from feedline.env import checks as of_env
    from feedline.report import effects
    from feedline.top import alarms
    from feedline.trace import causes as of_trace
    from feedline.verify import pages as of_verify

    return [
        *of_diagnose.entries(causes),
        *deaths.entries(),
        *of_trace.entries(),
        *alarms.entries(),
        *inspection.entries(),
        *stored_images.entries(),
        *storage_types.entries(),
        *of_verify.entries(),
        *of_env.entries(),
        *effects.entries(),
        *of_doctor.entries(),
    ]


def _list(pages: list[Entry], as_json: bool) -> None:
    if as_json:
        print_json({"codes": [{"code": page.code, "verb": page.verb, "title": page.title} for page in pages]})
    else:
        table(("code", "subcommand", "meaning"), [(page.code, page.verb, formats.plain(page.title)) for page in pages])


def _unknown(code: str, pages: list[Entry]) -> str:
    near = difflib.get_close_matches(code, sorted({page.code for page in pages}), n=3, cutoff=0.5)
    if near:
        return f"no finding has the code {code!r}; similar codes: {', '.join(near)}"
    return f"no finding has the code {code!r}; `feedline explain` lists all codes"
