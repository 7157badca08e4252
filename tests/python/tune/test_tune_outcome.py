# SPDX-License-Identifier: Apache-2.0
"""What `feedline tune` says and saves of a search: a gain, and that nothing gains, only where that was shown."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_machine import OWN, Machine, tune, up_to

from feedline import record
from feedline.report.page import page
from feedline.tune import outcome, report, search
from feedline.tune.ab_test import Comparison
from feedline.tune.moves import Candidate
from feedline.tune.script import Tuned
from feedline.tune.search import OPEN_GAIN, Rung, SearchResult
from feedline.tune.settings import DROP_IN, SOURCE, Limits, Setting
from feedline.tune.source import TunedSource

FACTS = {"loader": {"dataset": "Slow"}, "samples": 800, "batch_bytes": 4096}
FOUR = OWN.but(num_workers=4)
AUTO = Setting(SOURCE, 2, batch_size=16, auto=True)
LIMITS = Limits(cpus=4, memory=10**9, most_workers=32)


def of_script(found: SearchResult) -> Tuned:
    return Tuned(["python", "train.py"], 0, found, FACTS)


def of_source(found: SearchResult) -> TunedSource:
    return TunedSource("photos", found, 800, None, LIMITS)


def searched(
    comparison: Comparison, kept: bool = False, proof: Comparison | None = None, must_gain: bool = True
) -> SearchResult:
    """One change, four workers, that was measured so."""
    begin = Rung(Candidate(OWN, "as it is"), True, "where it begins")
    rung = Rung(Candidate(FOUR, "4 workers", must_gain), kept, "", comparison, OWN)
    return SearchResult(OWN, FOUR if kept else OWN, [begin, rung], proof=proof, budget_s=50)


def test_a_change_that_looked_best_when_the_time_was_up_is_undecided() -> None:
    """3.4 times as fast, in the one pair that there was time for."""
    found = tune(Machine(lambda s: 0.34 if s.num_workers else 0.1), OWN.but(num_workers=0))
    document = report.as_json(of_script(found))
    assert document["outcome"] == "undecided" and document["settings"] is None
    assert document["conclusion"].startswith("undecided: ")
    assert "1 worker, batch 16 looked 3.4 times as fast in a single pair" in document["conclusion"]
    assert document["conclusion"].endswith("--budget 3m")
    (one,) = [rung for rung in document["rungs"] if rung["change"] == "1 worker"]
    assert one["undecided"] and one["comparison"]["low"] is None and one["comparison"]["high"] is None
    assert one["why"].startswith("undecided")


@pytest.mark.parametrize("high", [1.3, 4.79])
@pytest.mark.parametrize("must_gain", [True, False])
def test_an_interval_that_holds_a_large_gain_is_no_proof_that_nothing_gains(high: float, must_gain: bool) -> None:
    found = searched(Comparison(1.1, 0.25, high, 4, "unclear"), must_gain=must_gain)
    assert outcome.of(found) == outcome.UNDECIDED and outcome.best_rung(found) is None
    assert "[0.25, " in outcome.sentence(found) and "--budget" in outcome.sentence(found)


def test_what_no_interval_allows_is_no_gain_and_its_bound_is_reported() -> None:
    found = searched(Comparison(1.0, 0.92, 1.09, 4, "unclear"))
    assert outcome.of(found) == outcome.NO_GAIN
    assert outcome.sentence(found).startswith(
        "no change that was tried helps by more than 9%: keep the current settings"
    )
    exactly = searched(Comparison(0.5, 0.48, 0.52, 4, "slower"))
    assert outcome.sentence(exactly) == "no change that was tried helps: keep the current settings"


def test_what_won_its_duel_and_not_the_last_comparison_is_undecided() -> None:
    won = Comparison(1.9, 1.6, 2.3, 4, "faster")
    found = searched(won, True, Comparison(0.98, 0.31, 3.1, 3, "unclear"))
    assert outcome.of(found) == outcome.UNDECIDED and report.settings_of(of_script(found)) is None
    assert "-2% samples per second [-69%, +210%]: no gain was shown" in outcome.sentence(found)
    assert "looks faster" in outcome.sentence(searched(won, True, None))


@pytest.mark.parametrize("pairs", [1, 2])
def test_a_last_comparison_that_time_cut_short_does_not_contradict_the_step(
    pairs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With two pairs an interval is 25 deviations wide, so it does not refute the one step that gained with 99 %."""
    run_ab_test = search._Search._ab_test

    def cut_short(self, candidate, against, until, **options):
        if not options.get("afresh"):
            return run_ab_test(self, candidate, against, until, **options)
        return Comparison(3.21, 0.08, 120.96, pairs, "unclear")

    monkeypatch.setattr(search._Search, "_ab_test", cut_short)
    found = tune(Machine(lambda setting: 30.0 if setting.num_workers == OWN.num_workers else 95.0), OWN)
    kept = [rung for rung in found.rungs[1:] if rung.kept]
    assert len(kept) == 1 and found.proof == kept[0].comparison
    document = report.as_json(of_script(found))
    assert document["outcome"] == "gain" and not document["conclusion"].startswith("undecided")
    assert any("+221%" in note for note in found.notes)


def test_steps_that_gained_are_not_called_no_gain_after_a_few_pairs() -> None:
    won = Comparison(1.9, 1.6, 2.3, 4, "faster")
    found = searched(won, True, Comparison(3.21, 0.08, 120.96, 2, "unclear"))
    assert outcome.of(found) == outcome.UNDECIDED
    assert "2 pairs were too few" in outcome.sentence(found) and "no gain was shown" not in outcome.sentence(found)


def test_an_undecided_result_shows_no_kept_gain_and_no_meaningless_interval() -> None:
    found = searched(Comparison(3.16, 2.9, 3.4, 4, "faster"), True, Comparison(3.21, 0.08, 122.0, 2, "unclear"))
    rows = [report.row(of_script(found), rung)[-1] for rung in found.rungs]
    assert "%" not in outcome.sentence(found) and not any(cell.startswith("kept") for cell in rows)
    assert rows[-1] == "not confirmed: looked faster"


@pytest.mark.parametrize(("alone", "is_gain"), [(False, True), (True, False)])
def test_several_steps_that_gained_are_a_gain_together_after_a_short_last_comparison(
    alone: bool, is_gain: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless one was measured without the loop and the other with it: their ratios do not multiply."""
    begin = Rung(Candidate(OWN, "as it is"), True, "where it begins")
    gained = Rung(Candidate(FOUR, "4 workers", alone=alone), True, "", Comparison(2.0, 1.8, 2.2, 4, "faster"), OWN)
    pinned = FOUR.but(pin_memory=True)
    also = Rung(Candidate(pinned, "pin_memory=True"), True, "", Comparison(1.5, 1.4, 1.6, 4, "faster"), FOUR)
    late = search._Search(Machine(up_to(8)), OWN, LIMITS, 50.0, lambda: 0.0, lambda rung: None)
    late._result = SearchResult(OWN, pinned, [begin, gained, also], budget_s=50)
    short = Comparison(3.21, 0.08, 120.96, 2, "unclear")
    monkeypatch.setattr(search._Search, "_ab_test", lambda *_arguments, **_options: short)
    late._prove()
    assert (outcome.of(late._result) == outcome.GAIN) is is_gain
    if is_gain:
        assert late._result.proof is not None and late._result.proof.ratio == pytest.approx(3.0)
        assert late._result.proof.low == pytest.approx(1.8 * 1.4)


def test_what_is_as_fast_and_takes_less_is_reported_and_not_saved() -> None:
    found = searched(
        Comparison(0.99, 0.97, 1.01, 8, "as fast"), True, Comparison(0.99, 0.97, 1.01, 5, "as fast"), False
    )
    assert outcome.of(found) == outcome.NO_GAIN and report.settings_of(of_script(found)) is None
    assert "equally fast with fewer resources: 2 workers, batch 16 → 4 workers, batch 16" in outcome.sentence(found)


def test_a_gain_that_was_shown_is_saved() -> None:
    found = tune(Machine(up_to(8), noise=0.02))
    document = report.as_json(of_script(found))
    assert document["outcome"] == "gain" and document["gain"]["low"] > 1
    assert "→" in document["conclusion"] and "samples per second [+" in document["conclusion"]
    assert document["settings"]["arguments"]["DataLoader"]["num_workers"] == found.best.num_workers
    assert document["settings"]["arguments"]["loader"] is None


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    noise=st.floats(0, 0.6),
    budget=st.floats(0.5, 90),
    source=st.booleans(),
    rates=st.lists(st.floats(0.5, 500), min_size=33, max_size=33),
)
def test_whatever_is_measured_only_a_gain_is_saved(seed, noise, budget, source, rates) -> None:
    machine = Machine(lambda s: rates[s.num_workers], noise=noise, seed=seed)
    found = tune(machine, AUTO if source else OWN, budget=budget)
    document = report.as_json(of_source(found) if source else of_script(found))
    json.dumps(document, allow_nan=False)
    gain = document["gain"]
    if document["settings"] is not None:
        assert document["outcome"] == "gain" and gain["low"] > 1 and gain["pairs"] > 1
    if document["outcome"] == "no gain":
        bounds = [rung["comparison"] for rung in document["rungs"] if rung["comparison"] and not rung["kept"]]
        assert all(one["pairs"] > 1 and one["high"] < OPEN_GAIN for one in bounds)
        assert not any("time ended" in rung["why"] or "lack of time" in rung["why"] for rung in document["rungs"])
    assert (document["outcome"] == "undecided") == document["conclusion"].startswith("undecided: ")


def test_equal_settings_are_hardly_ever_saved() -> None:
    saved = 0
    for seed, noise in itertools.product(range(75), (0.1, 0.3)):
        saved += outcome.is_shown(tune(Machine(lambda s: 30.0, noise=noise, seed=seed), AUTO if seed % 2 else OWN))
    assert saved <= 7  # 5 %


def test_the_time_kept_for_a_last_comparison_goes_to_what_was_left_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """1.6 times as fast under much noise: more of such gains are shown than by duels within their share of the time."""
    rate = lambda s: 30.0 * (1.6 if s.num_workers >= 4 else 1)  # noqa: E731
    count = lambda: sum(outcome.is_shown(tune(Machine(rate, noise=0.25, seed=seed))) for seed in range(100))  # noqa: E731
    with_it = count()
    monkeypatch.setattr(search._Search, "_decide", lambda self: None)
    assert with_it >= count() + 5


# -- a source: what the engine chooses by itself is where it begins


def test_a_source_begins_with_auto_and_every_number_must_beat_it() -> None:
    found = tune(Machine(up_to(2), noise=0.01), AUTO)
    assert found.rungs[0].candidate.setting.auto and found.best == AUTO
    tried = {rung.candidate.setting.num_workers for rung in found.rungs[1:] if not rung.candidate.setting.auto}
    assert {1, 2, 4} <= tried
    assert all(rung.candidate.must_gain for rung in found.rungs[1:])
    assert report.row(of_source(found), found.rungs[0])[0].startswith("auto (2 threads)")


def test_numbers_that_beat_auto_are_found_and_saved_as_numbers() -> None:
    adapts_badly = lambda s: 0.5 * up_to(4)(s) if s.auto else up_to(4)(s)  # noqa: E731
    found = tune(Machine(adapts_badly, noise=0.01), AUTO)
    assert not found.best.auto and found.best.num_workers == 4
    arguments = report.as_json(of_source(found))["settings"]["arguments"]
    assert arguments == {"DataLoader": None, "loader": {"num_workers": 4}}


def test_auto_stays_auto_where_only_bytes_ahead_gain() -> None:
    deep = lambda s: 20.0 * (1.5 if (s.memory_budget or 0) >= 250_000_000 else 1.0)  # noqa: E731
    found = tune(Machine(deep, noise=0.01), AUTO)
    loader = report.as_json(of_source(found))["settings"]["arguments"]["loader"]
    assert loader == {"num_workers": "auto", "memory_budget": 250_000_000}


# -- the page


def drawn(tuned: Tuned | TunedSource, folder: Path) -> str:
    record.write(report.record_of(tuned, ["feedline", "tune"], 0.0, 1.0), folder / "run.json")
    return page(record.read(folder / "run.json"))


def test_the_page_has_the_winning_row(tmp_path: Path) -> None:
    """Also where it is no number of workers."""
    found = tune(Machine(lambda s: 500.0 if s.loader == DROP_IN else up_to(4)(s), noise=0.02))
    shown = drawn(of_script(found), tmp_path)
    (row,) = [part for part in shown.split("<tr") if 'class="best"' in part]
    assert "→ " in row and ": Feedline, " in row and "kept: " in row
    assert outcome.sentence(found) in shown
    assert shown.count("<tr") >= len(found.rungs)


def test_the_page_reports_undecided_and_marks_no_row(tmp_path: Path) -> None:
    shown = drawn(of_script(searched(Comparison(3.4, 0.0, float("inf"), 1, "unclear"))), tmp_path)
    assert "undecided: none of the changes tried (1) was shown to help" in shown and 'class="best"' not in shown
    assert "No row is significantly better." in shown


def test_where_nothing_gains_the_row_as_it_is_wins(tmp_path: Path) -> None:
    shown = drawn(of_script(searched(Comparison(0.5, 0.48, 0.52, 4, "slower"))), tmp_path)
    (row,) = [part for part in shown.split("<tr") if 'class="best"' in part]
    assert "→ 2 workers, batch 16" in row


def test_a_damaged_table_in_a_record_does_not_break_the_page(tmp_path: Path) -> None:
    written = report.record_of(of_script(tune(Machine(up_to(4)))), ["feedline", "tune"], 0.0, 1.0)
    for best, rows, columns in itertools.product((None, 0, 7), ([], [[]], [["a"], []]), ([], ["x"])):
        written["tuning"] |= {"best": best, "rows": rows, "columns": columns}
        record.write(written, tmp_path / "run.json")
        assert "Settings tried" in page(record.read(tmp_path / "run.json"))
