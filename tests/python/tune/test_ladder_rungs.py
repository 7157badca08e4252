# SPDX-License-Identifier: Apache-2.0
"""The order of a ladder's rungs on simulated machines, and the effect that is expected before they are measured."""

from __future__ import annotations

import pytest
from made_machine import OWN, Machine

from feedline.profiler import dataset_copies
from feedline.tune import expected_effect, ladder_moves, outcome
from feedline.tune.moves import Candidate
from feedline.tune.search import Expected, Visit, search_settings
from feedline.tune.settings import Limits

LIMITS = Limits(cpus=8, memory=10**9, most_workers=32, advised_workers=6)


class Loop(Machine):
    """A loop of `step_s`; each worker produces a batch in `made_s`, and copies take `copy_s` unless they overlap."""

    def __init__(self, made_s, step_s, copy_s=0.0, useful=8):
        super().__init__(self.loop)
        self.made_s, self.step_s, self.copy_s, self.useful = made_s, step_s, copy_s, useful

    def loop(self, setting):
        step = self.step_s + (0 if setting.pin_memory and setting.non_blocking else self.copy_s)
        if setting.num_workers == 0:
            return 1 / (step + self.made_s)
        return 1 / max(step, self.made_s / min(setting.num_workers, self.useful))

    def visit(self, setting, seconds):
        self.now += 1
        self.seen.append(setting)
        rate = self.loop(setting)
        step = self.step_s + (0 if setting.pin_memory and setting.non_blocking else self.copy_s)
        share = 1 - step * rate
        return Visit(None, rate, setting.batch_size, (1000 * share / rate,) * 100, share)

    def copy_share(self, setting):
        return self.copy_s * self.loop(setting)


def climb(machine, own=OWN, limits=LIMITS):
    told = []

    def announce(candidate, expected):
        told.append((candidate.change, expected, candidate.setting in machine.seen))

    found = search_settings(
        machine,
        own,
        limits,
        3600,
        machine.clock,
        all_moves=ladder_moves.ALL,
        expect=lambda candidate, champion, visits: expected_effect.of(
            candidate, champion, visits, limits.cpus, machine.copy_share
        ),
        announce=announce,
    )
    return found, told


def test_the_rungs_are_climbed_in_order_and_what_gains_is_kept():
    found, _ = climb(Loop(made_s=0.06, step_s=0.01, copy_s=0.004))
    changes = [rung.candidate.change for rung in found.rungs]
    assert changes[:5] == ["as it is", "no workers", "3 workers", "6 workers", "12 workers"]
    assert changes[5:8] == ["pinned memory, non_blocking", "prefetch 4", "persistent workers"]
    assert changes[-1].startswith("batches of")
    kept = {rung.candidate.change for rung in found.rungs if rung.kept}
    assert kept == {"as it is", "3 workers", "6 workers", "pinned memory, non_blocking"}
    assert (found.best.num_workers, found.best.pin_memory, found.best.non_blocking) == (6, True, True)
    assert outcome.of(found) == outcome.GAIN


def test_each_effect_is_stated_before_it_is_measured_and_comes_true():
    found, told = climb(Loop(made_s=0.06, step_s=0.01, copy_s=0.004))
    assert [change for change, _, was_seen in told if was_seen] == []
    measured = [rung for rung in found.rungs if rung.comparison is not None and rung.expected is not None]
    assert {"no workers", "3 workers", "6 workers", "pinned memory, non_blocking"} <= {
        rung.candidate.change for rung in measured
    }
    for rung in measured:
        if not rung.candidate.reported:
            assert rung.expected.low - 0.01 <= rung.comparison.ratio - 1 <= rung.expected.high + 0.01, rung


def test_pinning_is_compared_with_none_even_if_it_is_on():
    own = OWN.but(num_workers=6, pin_memory=True, non_blocking=True)
    machine = Loop(made_s=0.06, step_s=0.01, copy_s=0.004)
    found, _ = climb(machine, own)
    (off,) = [rung for rung in found.rungs if rung.candidate.change == "without pinned memory"]
    assert not off.kept and off.comparison.ratio == pytest.approx(10 / 14, rel=0.01)
    assert "non_blocking copies" not in [rung.candidate.change for rung in found.rungs]
    blocking, _ = climb(machine, own.but(non_blocking=False))
    (on,) = [rung for rung in blocking.rungs if rung.candidate.change == "non_blocking copies"]
    assert on.kept and on.comparison.ratio == pytest.approx(14 / 10, rel=0.01)


def test_a_batch_size_changes_only_within_a_range_that_was_given():
    machine = Loop(made_s=0.06, step_s=0.01)
    found, _ = climb(machine, OWN.but(num_workers=6))
    sizes = [rung for rung in found.rungs if rung.candidate.change.startswith("batches of")]
    assert [rung.candidate.setting.batch_size for rung in sizes] == [16 << n for n in range(1, 7)]
    assert all(rung.comparison.ratio == pytest.approx(2) or rung.comparison.ratio > 2 for rung in sizes)
    assert not any(rung.kept or rung.undecided for rung in sizes) and found.best.batch_size == 16
    assert "would change the training" in sizes[0].why

    given = Limits(8, 10**9, 32, (16, 40), advised_workers=6)
    found, _ = climb(machine, OWN.but(num_workers=6), given)
    assert found.best.batch_size == 40


@pytest.mark.parametrize(
    ("number", "present", "wait", "low", "high"),
    [
        (4, 2, 0.75, 1.0, 1.0),  # twice as many batches, and half of the time is still waiting
        (8, 2, 0.5, 1.0, 1.0),  # only the wait of one half can be saved
        (16, 2, 0.9, 3.0, 7.0),  # 16 workers on 8 CPUs: between those of 8 and of 16
        (1, 0, 0.5, 1.0, 1.0),  # producing overlaps the step
        (0, 1, 0.5, -1 / 3, 1.0),  # the wait may be for producing batches, or for handing them over
        (4, 2, 0.0, 0.0, 0.0),
        (1, 2, 0.5, -0.5, 1.0),
        (1, 2, 0.0, -0.5, 0.0),
    ],
)
def test_the_effect_of_workers_by_the_share_of_waiting(number, present, wait, low, high):
    champion = OWN.but(num_workers=present)
    visits = {champion: [Visit(None, 10.0, 16, (1.0,), wait)]}
    candidate = Candidate(champion.but(num_workers=number), "workers")
    found = expected_effect.of(candidate, champion, visits, 8, lambda setting: None)
    assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))
    assert f"{wait:.0%} of its time" in found.why


def test_prefetching_is_expected_to_absorb_only_long_waits():
    candidate = Candidate(OWN.but(prefetch_factor=4), "prefetch 4")
    even = {OWN: [Visit(None, 10.0, 16, (50.0,) * 100, 0.5)]}
    uneven = {OWN: [Visit(None, 10.0, 16, (10.0,) * 50 + (500.0,) * 1, 0.5)]}
    found = [expected_effect.of(candidate, OWN, visits, 8, lambda setting: None) for visits in (even, uneven)]
    assert found[0].high == 0.0 and found[1].high == pytest.approx(1 / (1 - 0.25) - 1)
    assert str(Expected(0.0, 0.333, "")) == "+0% to +33%" and str(Expected(0.1, 0.1, "")) == "+10%"


def test_a_dataset_is_priced_by_its_python_objects():
    torch = pytest.importorskip("torch")
    numpy = pytest.importorskip("numpy")
    names = [f"{number:032d}" for number in range(10_000)]
    found = dataset_copies.pickled_size({"names": names})
    assert found["whole"] and 32 * 10_000 < found["bytes"] < 2 * 32 * 10_000
    shared = dataset_copies.pickled_size([numpy.zeros(10**6), torch.zeros(10**6), lambda: 0])
    assert shared["whole"] and shared["bytes"] < 10_000
    assert dataset_copies.pickled_size(names, limit_s=-1.0)["whole"] is False

    class Local:
        pass

    refused = dataset_copies.pickled_size(Local())
    assert refused["bytes"] is None and "Local" in refused["why"]
