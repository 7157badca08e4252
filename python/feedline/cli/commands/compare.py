# SPDX-License-Identifier: Apache-2.0
"""``feedline compare``: a CI gate that fails if a run is slower than a baseline run by more than a limit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.markup import escape

from feedline.cli import exit_codes, parameters
from feedline.cli.console import OUT, counted, print_json, table
from feedline.record import read
from feedline.report import compare as difference
from feedline.report import gate
from feedline.report.effects import WORKLOAD
from feedline.report.numbers import with_unit

_STYLES = {gate.REGRESSION: "bold red", gate.UNDECIDED: "yellow", gate.FINE: "green"}


@click.command(short_help="Fail if a run is slower than a baseline.")
@click.argument("base", type=click.Path(path_type=Path))
@click.argument("new", type=click.Path(path_type=Path))
@click.option(
    "--fail-on", default="10%", type=parameters.Percent(), metavar="SHARE", help="Maximum regression of a metric."
)
@click.option(
    "--figure",
    "names",
    multiple=True,
    metavar="NAME",
    show_default="the record's first",
    help="Compare this metric; repeatable.",
)
@click.option("--strict", is_flag=True, help="Also fail if the intervals are too wide to decide.")
@parameters.as_json()
def compare(base: Path, new: Path, fail_on: float, names: tuple[str, ...], strict: bool, as_json: bool) -> int:
    """Compare the run records BASE and NEW, and fail if NEW is worse by more than the limit.

    BASE and NEW are records, or folders of records of the same kind of run; three or more on each side show the
    variation between runs. A regression is reported if a metric is worse by more than the limit and chance is an
    unlikely explanation.

    Exit status: 0 without a regression, 1 with a regression (with --strict also if undecided), 2 if the records cannot
    be compared.
    """
    sides = _records(base), _records(new)
    _refuse_other_work(sides)
    found = gate.evaluate(sides[0], sides[1], fail_on, names)
    missing = set(names) - {one.name for one in found}
    if missing or not found:
        words = f"not all records have the metric {', '.join(sorted(missing))}" if missing else "they share no metric"
        raise click.UsageError(f"{words}; pass records of the same command")
    why = difference(sides[0][0], sides[1][0], ("BASE", "NEW")).conclusion if _has(found, gate.REGRESSION) else None
    if as_json:
        print_json(
            {
                "base": str(base),
                "new": str(new),
                "records": [len(side) for side in sides],
                "figures": [asdict(one) for one in found],
                "explanation": why,
            }
        )
    else:
        _show(found, why, min(map(len, sides)))
    failed = _has(found, gate.REGRESSION) or (strict and _has(found, gate.UNDECIDED))
    return exit_codes.PROBLEMS_FOUND if failed else exit_codes.FINE


def _records(path: Path) -> list[dict[str, Any]]:
    if not path.is_dir():
        return [read(path)]
    found = [read(one) for one in sorted(path.glob("*.json"))]
    if not found:
        raise click.UsageError(f"{path}: no file in this folder is named *.json")
    return found


def _refuse_other_work(sides: Iterable[list[dict[str, Any]]]) -> None:
    first, *others = [record for side in sides for record in side]
    for other in others:
        names = [fact.name for fact in difference(first, other).facts if fact.effect == WORKLOAD]
        if names:
            raise click.UsageError(f"the records measured different work: {', '.join(names)}")


def _has(found: list[gate.Judged], outcome: str) -> bool:
    return any(one.outcome == outcome for one in found)


def _show(found: list[gate.Judged], why: str | None, fewest: int) -> None:
    table(
        ("metric", "BASE", "NEW", "worse by", "95 %", ""),
        [
            (
                escape(one.label),
                with_unit(one.base, one.unit),
                with_unit(one.latest, one.unit),
                f"{one.worse:+.1%}",
                "-" if one.low is None or one.high is None else f"{one.low:+.1%} to {one.high:+.1%}",
                f"[{_STYLES[one.outcome]}]{'likely' if one.is_likely else one.outcome}[/]",
            )
            for one in found
        ],
    )
    if why is not None:
        OUT.print(escape(why))
    for one in found:
        if one.outcome == gate.UNDECIDED:
            OUT.print(
                f"{escape(one.label)}: {_undecided(one)}. Pass more than {counted(fewest, 'record')} on each side"
            )


def _undecided(one: gate.Judged) -> str:
    if one.is_likely:
        return (
            f"a regression of more than {one.limit:.0%} is likely, as the 95 % interval exceeds this limit, but "
            f"a failure requires {1 - gate.CHANCE:.1%} certainty"
        )
    if one.low is None:
        return (
            f"the metric is worse by more than {one.limit:.0%}, but the records do not show how much "
            "unchanged runs vary"
        )
    if one.low > 0:
        return (
            f"the metric is worse by at least {one.low:.1%}, but a regression of more than {one.limit:.0%} is not "
            "shown with "
            "95 % confidence"
        )
    return f"a regression of more than {one.limit:.0%} is neither shown nor excluded"
