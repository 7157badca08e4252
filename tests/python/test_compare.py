# SPDX-License-Identifier: Apache-2.0
"""feedline compare: simulated runs that are equal raise no alarm, and planted regressions are caught."""

from __future__ import annotations

import copy
import functools
import json
import math
import random
from pathlib import Path
from typing import Any

import made_records
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from feedline import record
from feedline.record import series
from feedline.report import gate, t_distribution

PAIRS = 100


@functools.cache
def _bench() -> dict[str, Any]:
    return made_records.bench()


def of_seconds(seconds: list[float]) -> dict[str, Any]:
    """A record of a run whose batches took so long."""
    rate = len(seconds) / sum(seconds)
    low, high = series.rate_interval([1.0] * len(seconds), seconds)
    return of_figures({**_bench()["figures"][0], "value": rate, "low": low, "high": high})


def of_figures(*figures: dict[str, Any]) -> dict[str, Any]:
    return {**_bench(), "figures": list(figures)}


def simulated(draw: random.Random, slower: float, between: float, batches: int) -> dict[str, Any]:
    """A run: neighbouring batches are alike, some take three times as long. `between`: how runs differ."""
    level, noise, seconds = slower * math.exp(draw.gauss(0, between)), 0.0, []
    for _ in range(batches):
        noise = 0.5 * noise + draw.gauss(0, 0.1)
        seconds.append(0.02 * level * math.exp(noise) * (3 if draw.random() < 0.01 else 1))
    return of_seconds(seconds)


def outcomes(slower: float, records: int, between: float, seed: int, batches: int = 400) -> list[str]:
    draw, found = random.Random(seed), []
    for _ in range(PAIRS):
        base = [simulated(draw, 1.0, between, batches) for _ in range(records)]
        latest = [simulated(draw, slower, between, batches) for _ in range(records)]
        found += [one.outcome for one in gate.evaluate(base, latest, 0.10)]
    return found


def test_no_alarm_in_a_hundred_equal_pairs_and_15_percent_are_caught() -> None:
    equal = outcomes(1.0, 1, 0.0, 1)
    assert equal.count("regression") == 0
    assert equal.count("fine") > 90, "and it is not silent for being undecided"
    assert outcomes(1 / 0.85, 1, 0.0, 2).count("regression") == PAIRS


def test_runs_that_differ_by_themselves_are_judged_by_how_they_differ() -> None:
    found = [outcomes(slower, 5, 0.02, seed, 200) for seed, slower in ((3, 1.0), (4, 1 / 0.85))]
    assert found[0].count("regression") == 0
    assert found[1].count("regression") >= 90 and "fine" not in found[1]


def figure(value: float, half: float | None, better: str = "higher") -> dict[str, Any]:
    low, high = (None, None) if half is None else (value - half, value + half)
    return {"name": "x", "label": "x", "unit": "1/s", "value": value, "low": low, "high": high, "better": better}


@pytest.mark.parametrize(
    ("base", "latest", "better", "outcome", "worse"),
    [
        ((100, 1.0), (85, 1.0), "higher", "regression", 0.15),
        ((100, 1.0), (85, 1.0), "lower", "fine", -0.15),
        ((100, 1.0), (115, 1.0), "lower", "regression", 0.15),
        ((100, 1.0), (92, 1.0), "higher", "fine", 0.08),
        ((100, 1.0), (91, 3.0), "higher", "undecided", 0.09),
        ((100, 20.0), (85, 20.0), "higher", "undecided", 0.15),
        ((100, None), (85, 1.0), "higher", "undecided", 0.15),
        ((100, None), (99, None), "higher", "fine", 0.01),
        ((100, 0.0), (80, 0.0), "higher", "regression", 0.2),
    ],
)
def test_outcomes(base: Any, latest: Any, better: str, outcome: str, worse: float) -> None:
    (found,) = gate.evaluate([of_figures(figure(*base, better))], [of_figures(figure(*latest, better))], 0.10)
    assert (found.outcome, found.worse) == (outcome, pytest.approx(worse))
    assert found.low is None or found.high is None or found.low <= found.worse <= found.high


def test_several_records_know_what_one_does_not() -> None:
    """Each run is sure of itself, and they lie far apart."""
    base, latest = ([of_figures(figure(v, 0.1)) for v in values] for values in ((100, 80, 120), (85, 105, 70)))
    assert gate.evaluate(base, latest, 0.10)[0].outcome == "undecided"
    assert gate.evaluate(base[:1], latest[:1], 0.10)[0].outcome == "regression"


@settings(deadline=None, max_examples=40)
@given(st.floats(1e-6, 1e12), st.floats(1e-6, 1e12), st.floats(0, 10), st.sampled_from(["higher", "lower"]))
def test_any_figures_give_numbers(a: float, b: float, half: float, better: str) -> None:
    sides = ([of_figures(figure(value, half * value, better))] for value in (a, b))
    (found,) = gate.evaluate(*sides, 0.10)
    assert all(math.isfinite(one) for one in (found.worse, found.low or 0.0, found.high or 0.0))
    assert found.outcome != "regression" or found.worse > 0.099


def test_quantiles_are_the_tables() -> None:
    """Abramowitz and Stegun, table 26.10."""
    table = {(1, 0.975): 12.706, (2, 0.975): 4.303, (9, 0.975): 2.262, (30, 0.975): 2.042, (3, 0.999): 10.214}
    table |= {(8, 0.999): 4.501, (18, 0.9995): 3.922, (120, 0.995): 2.617}
    for (freedom, probability), value in table.items():
        assert t_distribution.quantile(probability, freedom) == pytest.approx(value, abs=6e-4)


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    for name, rates in (("base", (1000, 1010, 990)), ("slow", (800, 810, 790)), ("alike", (1001, 1005, 995))):
        (tmp_path / name).mkdir()
        for i, rate in enumerate(rates):
            record.write(made_records.bench(rate, machine={"usable_cpus": rate / 250}), tmp_path / name / f"{i}.json")
    return tmp_path


def test_the_command(folders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("click", reason="the command line is not installed")
    from feedline.cli.root import run

    def compare(*words: str) -> int:
        return run(["compare", *words])

    base = str(folders / "base")
    assert compare(base, str(folders / "alike")) == 0
    assert "fine" in capsys.readouterr().out
    assert compare(base, str(folders / "slow")) == 1
    shown = capsys.readouterr().out
    assert "+20.0%" in shown and "regression" in shown and "usable_cpus explains it" in shown
    assert "NEW is 1.25 times as slow as BASE" in shown
    assert compare(base, str(folders / "slow"), "--fail-on", "0.3") == 0
    capsys.readouterr()
    assert compare(f"{base}/0.json", f"{folders}/slow/0.json", "--json", "--figure", "images_per_s") == 1
    found = json.loads(capsys.readouterr().out)
    assert [one["outcome"] for one in found["figures"]] == ["regression"] and found["records"] == [1, 1]


def test_what_cannot_be_decided_or_compared(folders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("click", reason="the command line is not installed")
    from feedline.cli.root import run

    wide = copy.deepcopy(_bench())
    wide["figures"][0] |= {"value": 850.0, "low": 500.0, "high": 1200.0}
    other = {**copy.deepcopy(_bench()), "subject": "x", "configuration": {"batch_size": 7}}
    for name, made in (("wide", wide), ("other", other)):
        record.write(made, folders / f"{name}.json")
    base = str(folders / "base/0.json")
    assert run(["compare", base, str(folders / "wide.json")]) == 0
    assert "neither shown nor excluded" in capsys.readouterr().out
    assert run(["compare", base, str(folders / "wide.json"), "--strict"]) == 1
    assert run(["compare", base, str(folders / "other.json")]) == 2
    assert "different work: batch_size" in capsys.readouterr().err
    assert run(["compare", base, base, "--figure", "none"]) == 2
    assert run(["compare", base, str(folders / "missing.json")]) == 3
    assert run(["compare", base, str(folders)]) == 2, "one of other work is in this folder"
    assert run(["compare", base, base, "--fail-on", "110%"]) == 2


def test_a_metric_that_is_worse_by_less_than_the_limit_is_reported_as_worse(
    folders: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("click", reason="the command line is not installed")
    from feedline.cli.root import run

    for name, value, half in (("base", 1000.0, 10.0), ("worse", 850.0, 100.0)):
        made = copy.deepcopy(_bench())
        made["figures"][0] |= {"value": value, "low": value - half, "high": value + half}
        record.write(made, folders / f"{name}.json")
    assert run(["compare", str(folders / "base.json"), str(folders / "worse.json")]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "the metric is worse by at least" in shown and "neither" not in shown


def test_a_likely_regression_is_not_called_undecided(folders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The 95 % interval is above the limit, but an alarm needs 99.9 %."""
    pytest.importorskip("click", reason="the command line is not installed")
    from feedline.cli.root import run

    likely = copy.deepcopy(_bench())
    likely["figures"][0] |= {"value": 710.0, "low": 580.0, "high": 840.0}
    base = copy.deepcopy(_bench())
    base["figures"][0] |= {"value": 1000.0, "low": 990.0, "high": 1010.0}
    for name, made in (("base", base), ("likely", likely)):
        record.write(made, folders / f"{name}.json")
    (found,) = gate.evaluate([base], [likely], 0.1)
    assert found.outcome == gate.UNDECIDED and found.low is not None and found.low > 0.1 and found.is_likely
    assert run(["compare", str(folders / "base.json"), str(folders / "likely.json")]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "undecided" not in shown and "neither" not in shown
    assert "more than 10% is likely" in shown and "99.9% certainty" in shown
