# SPDX-License-Identifier: Apache-2.0
"""The search with simulated machines: it keeps improvements, drops other changes, and keeps its limits."""

from __future__ import annotations

import itertools
import math
import random
import statistics

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_machine import OWN, Machine, tune, up_to

from feedline.tune import ab_test as duels
from feedline.tune.ab_test import Rounds, run_ab_test
from feedline.tune.settings import DROP_IN, SOURCE, TORCH, Limits, Setting


@pytest.mark.parametrize("most", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("own", [0, 1, 2, 5, 16])
def test_the_number_of_workers_is_found_from_wherever_it_begins(own: int, most: int) -> None:
    machine = Machine(up_to(most), noise=0.02)
    found = tune(machine, OWN.but(num_workers=own))
    best = machine.rate(found.best)
    assert best >= 0.8 * 10 * most
    assert found.best.num_workers <= max(1.5 * most, 2)
    assert found.finished and machine.now <= 60


def test_what_gains_nothing_is_not_kept_and_is_reported() -> None:
    found = tune(Machine(lambda setting: 30.0, noise=0.03), OWN.but(num_workers=4))
    assert found.best.prefetch_factor in (None, 2) and found.best.loader == TORCH
    for rung in found.rungs[1:]:
        assert rung.kept or rung.why
        if rung.kept:  # only settings that need less
            assert not rung.candidate.must_gain and rung.why == "equally fast with fewer resources"


def test_no_gain_is_claimed_where_there_is_none() -> None:
    """At most 5 % of 300 comparisons between equal settings may be won; the thresholds are chosen for 3 %."""
    won = 0
    for seed in range(300):
        noise = random.Random(seed)
        measure = lambda noise=noise: math.exp(noise.gauss(0, 0.08))  # noqa: E731
        won += run_ab_test(measure, measure, lambda pairs: True).verdict == "faster"
    assert won <= 15


def test_a_gain_that_is_there_is_found_in_spite_of_noise() -> None:
    won = 0
    for seed in range(100):
        noise = random.Random(seed)
        slow = lambda noise=noise: math.exp(noise.gauss(0, 0.05))  # noqa: E731
        fast = lambda noise=noise: 1.3 * math.exp(noise.gauss(0, 0.05))  # noqa: E731
        found = run_ab_test(slow, fast, lambda pairs: True)
        won += found.verdict == "faster"
        assert found.pairs <= duels.MOST_PAIRS
    assert won >= 95


def test_a_drift_divides_out() -> None:
    """For every measurement, the machine is 4 % faster than for the previous one; the two settings are equal."""
    measured = itertools.count()
    measure = lambda: 1.04 ** next(measured)  # noqa: E731
    found = run_ab_test(measure, measure, lambda pairs: True)
    assert found.verdict != "faster" and found.low < 1 < found.high


def test_the_interval_is_students() -> None:
    turns = Rounds()
    for log in (0.1, 0.2, 0.4):
        turns.add(1.0, math.exp(log))
    logs = [0.1, 0.2, 0.4]
    half = 4.303 * statistics.stdev(logs) / math.sqrt(3)
    low, high = turns.interval(duels._T_95)
    assert math.log(low) == pytest.approx(statistics.mean(logs) - half)
    assert math.log(high) == pytest.approx(statistics.mean(logs) + half)


def test_feedlines_loader_is_a_rung_of_its_own() -> None:
    machine = Machine(lambda s: 500.0 if s.loader == DROP_IN else up_to(4)(s), noise=0.02)
    found = tune(machine)
    assert found.best.loader == DROP_IN
    assert found.proof is not None and found.proof.low > 10
    slower = tune(Machine(lambda s: 5.0 if s.loader == DROP_IN else 20.0, noise=0.02))
    assert slower.best.loader == TORCH
    assert any("slower" in rung.why for rung in slower.rungs if rung.candidate.setting.loader == DROP_IN)


def test_persistence_is_judged_by_the_borders_of_epochs() -> None:
    border = lambda setting: 0.01 if setting.persistent_workers else 2.0  # noqa: E731
    short = tune(Machine(up_to(4), border=border, epoch=50, noise=0.01))
    assert short.best.persistent_workers
    endless = tune(Machine(up_to(4), border=border, epoch=10**7, noise=0.01))
    assert not endless.best.persistent_workers
    unknown = tune(Machine(up_to(4), border=border, epoch=None, noise=0.01))
    assert not unknown.best.persistent_workers
    assert any("epoch" in rung.why for rung in unknown.rungs if rung.candidate.border)


def test_deeper_prefetching_is_kept_as_long_as_it_gains() -> None:
    found = tune(Machine(lambda s: up_to(2)(s) * min(s.prefetch_factor or 1, 8), noise=0.02))
    assert found.best.prefetch_factor == 8


def test_the_memory_budget_is_never_broken() -> None:
    machine = Machine(up_to(32), batch_bytes=100_000_000)
    found = tune(machine, limits=Limits(cpus=4, memory=900_000_000, most_workers=32))
    assert all(machine.bytes_ahead(setting) <= 900_000_000 for setting in machine.seen)
    assert found.best.num_workers == 4
    assert any("memory budget" in rung.why for rung in found.rungs)


def test_the_limit_of_workers_is_never_broken() -> None:
    machine = Machine(up_to(32))
    found = tune(machine, limits=Limits(cpus=4, memory=10**9, most_workers=6))
    assert max(setting.num_workers for setting in machine.seen) <= 6 and found.best.num_workers == 6


def test_pinning_is_tried_only_with_a_gpu() -> None:
    rate = lambda s: 20.0 * (1.5 if s.pin_memory else 1)  # noqa: E731
    assert not tune(Machine(rate)).best.pin_memory
    assert tune(Machine(rate), limits=Limits(4, 10**9, 32, gpu=True)).best.pin_memory


def test_batch_sizes_are_tried_only_where_they_may_change() -> None:
    rate = lambda s: 100.0 / (1 + (s.batch_size or 1) / 64)  # noqa: E731
    machine = Machine(rate)
    assert tune(machine).best.batch_size == 16 and {s.batch_size for s in machine.seen} == {16}
    machine = Machine(rate)
    found = tune(machine, limits=Limits(4, 10**9, 32, batch_sizes=(8, 200)))
    assert found.best.batch_size == 200
    assert all(8 <= (s.batch_size or 0) <= 200 for s in machine.seen)


def test_a_source_has_threads_and_bytes_ahead() -> None:
    base = Setting(SOURCE, 1, batch_size=16)
    machine = Machine(lambda s: up_to(4)(s) * (1.5 if (s.memory_budget or 0) >= 250_000_000 else 1.0), noise=0.01)
    found = tune(machine, base)
    assert found.best.num_workers == 4 and found.best.memory_budget == 250_000_000
    assert all(s.prefetch_factor is None and not s.persistent_workers for s in machine.seen)


def test_what_cannot_be_measured_is_reported_and_the_rest_continues() -> None:
    found = tune(Machine(lambda s: 0.0 if s.num_workers == 0 or s.loader == DROP_IN else up_to(16)(s)))
    assert any(rung.why == "it does not run" for rung in found.rungs)
    assert found.best.num_workers >= 8


def test_when_the_plant_is_lost_results_remain() -> None:
    found = tune(Machine(up_to(16), most_visits=12))
    assert not found.finished and found.notes == ["the copy has died"]
    assert len(found.rungs) > 1
    lost = tune(Machine(up_to(16), most_visits=0))
    assert lost.best == lost.base and lost.rungs == []


def test_a_base_that_does_not_run_is_reported() -> None:
    found = tune(Machine(lambda setting: 0.0))
    assert not found.finished and "could not be measured: it does not run" in found.notes[0]


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    noise=st.floats(0, 0.5),
    own=st.integers(0, 16),
    budget=st.floats(0.5, 120),
    rates=st.lists(st.floats(0.5, 2000), min_size=33, max_size=33),
)
def test_it_ends_within_its_budget_whatever_it_measures(seed, noise, own, budget, rates) -> None:
    machine = Machine(lambda s: rates[s.num_workers], noise=noise, seed=seed)
    found = tune(machine, OWN.but(num_workers=own), budget=budget)
    slowest = 3 / min(rates)
    assert machine.now <= budget + 6 * max(2.0, slowest)  # a pair that has begun is completed
    assert found.rungs[0].kept and found.best in {rung.candidate.setting for rung in found.rungs if rung.kept}
    assert len({rung.candidate.setting for rung in found.rungs}) >= len(found.rungs) - 2
