# SPDX-License-Identifier: Apache-2.0
"""``feedline diff``: shows how two run records differ, and explains the differences."""

from __future__ import annotations

from pathlib import Path

import click
from rich.markup import escape

from feedline.cli import exit_codes, parameters
from feedline.cli.console import OUT, print_json, table
from feedline.record import read
from feedline.report import Comparison, compare
from feedline.report.measured import FigureDifference
from feedline.report.numbers import fact, number, with_unit

_WIDEST = 48


@click.command(short_help="Show how two run records differ, and why.")
@click.argument("a", type=parameters.INPUT_FILE)
@click.argument("b", type=parameters.INPUT_FILE)
@parameters.as_json()
def diff(a: Path, b: Path, as_json: bool) -> int:
    """Compare the run records A and B: list metrics that differ by more than their spread, and rank the facts that
    explain the differences.

    Exit status: 0 if the first metric differs by no more than its spread, 1 if it differs by more, 2 if the records
    share no metric.
    """
    records = read(a), read(b)
    found = compare(*records)
    if not found.figures:
        kinds = [f"{name} is a record of `feedline {one['verb']}`" for name, one in zip("AB", records, strict=True)]
        raise click.UsageError(
            f"{', '.join(kinds)}, and they have no metric in common; pass two records of the same command"
        )
    if as_json:
        print_json({"a": str(a), "b": str(b), **found.as_dict()})
    else:
        _show(found)
    return exit_codes.PROBLEMS_FOUND if found.differs else exit_codes.FINE


def _show(found: Comparison) -> None:
    if found.figures:
        table(
            ("metric", "A", "B", "B / A", "differs"),
            [
                (
                    one.label,
                    with_unit(one.a, one.unit),
                    with_unit(one.b, one.unit),
                    "" if one.ratio is None else f"{one.ratio:.2f}",
                    _differs(one),
                )
                for one in found.figures
            ],
        )
    if found.stages:
        table(
            ("stage, ms per batch", "A", "B", "B / A"),
            [(one.name, number(one.a), number(one.b), f"{one.ratio:.2f}") for one in found.stages],
        )
    if found.facts:
        table(
            ("fact", "A", "B", "effect", "share"),
            [
                (
                    escape(f"{one.group}: {one.name}"),
                    *_values(one.name, one.a, one.b),
                    one.effect,
                    "" if one.share is None else f"{one.share:.0%}",
                )
                for one in found.facts
            ],
        )
    if found.figures and not all(one.spread_known for one in found.figures):
        OUT.print("no spread was recorded, so metrics differ if they change by more than 5 %")
    for note in found.notes:
        OUT.print(escape(note))
    OUT.print(f"[bold]{escape(found.conclusion)}[/]")


def _differs(one: FigureDifference) -> str:
    if one.spread_known:
        return "yes" if one.differs else "no"
    return "yes (over 5 %)" if one.differs else "no (within 5 %)"


def _values(name: str, a: object, b: object) -> tuple[str, str]:
    """Returns the words of a list, such as a processor's flags, that are missing from the other list."""
    if name == "cpu_flags" and isinstance(a, str) and isinstance(b, str):
        only_a, only_b = set(a.split()) - set(b.split()), set(b.split()) - set(a.split())
        a, b = " ".join(sorted(only_a)) or "no others", " ".join(sorted(only_b)) or "no others"
    return _value(name, a), _value(name, b)


def _value(name: str, value: object) -> str:
    text = "-" if value is None else fact(name, value)
    return escape(text if len(text) <= _WIDEST else text[: _WIDEST - 3] + "...")
