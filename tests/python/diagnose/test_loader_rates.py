# SPDX-License-Identifier: Apache-2.0
"""What a copy of a script's process measures on a rung, and the cost of a hand-over: with loaders whose times are
known.
"""

import collections
import itertools
import threading
import time
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch", reason="torch, whose loader is measured, is not installed")

from feedline.diagnose.experiments import handover, loader_rates, worker_sweep  # noqa: E402
from feedline.profiler import process_copies  # noqa: E402


class Clock:
    """A simulated `time` module, whose clock advances when a loader requests it."""

    def __init__(self):
        self.now = 100.0

    def perf_counter(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


class Timed:
    """A loader whose batches take this many seconds each, epoch by epoch."""

    def __init__(self, clock, seconds):
        self.clock, self.seconds, self.given = clock, seconds, 0

    def __len__(self):
        return len(self.seconds)

    def __iter__(self):
        for seconds in self.seconds:
            self.clock.now += seconds
            self.given += 1
            yield self.given


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(loader_rates, "time", clock)
    return clock


def test_an_epochs_begin_is_spread_over_its_batches(clock):
    """Ten batches of 10 ms and an order of 900 ms: half a second would contain one epoch start, or none."""
    epochs = Timed(clock, [0.91, *[0.01] * 9])
    for seconds in (0.1, 0.5, 1.3):
        assert loader_rates.rate(epochs, 0, seconds)["batches_per_s"] == pytest.approx(10.0, rel=0.01)


def test_a_stream_shows_its_length_by_ending(clock):
    class Stream(Timed):
        def __len__(self):
            raise TypeError("a stream has no length")

    assert loader_rates.rate(Stream(clock, [0.91, *[0.01] * 9]), 0, 1.3)["batches_per_s"] == pytest.approx(
        10.0, rel=0.01
    )
    endless = Stream(clock, [0.01] * 100_000)
    assert loader_rates.rate(endless, 2, 1.0)["batches_per_s"] == pytest.approx(100.0, rel=0.01)


def test_an_epoch_that_lasts_too_long_is_not_waited_for(clock):
    long = Timed(clock, [0.01] * 100_000)
    assert loader_rates.rate(long, 0, 1.0)["batches_per_s"] == pytest.approx(100.0, rel=0.01)
    assert long.given < 250


def test_batches_that_come_together_are_counted_as_rounds(clock):
    """Eight workers that share a CPU return eight batches at once."""
    rounds = Timed(clock, [0.4, *[0.0] * 7] * 1000)
    for seconds in (0.3, 0.7, 1.0):
        assert loader_rates.rate(rounds, 8, seconds)["batches_per_s"] == pytest.approx(20.0, rel=0.01)


def test_a_long_batch_is_counted_with_those_that_it_held_up(clock):
    """The ring of two workers runs empty after one batch in eight; the delayed batches then arrive at once."""
    held = Timed(clock, list(itertools.chain.from_iterable([[1.0, 0, 0, 0, 0.1, 0.1, 0.1, 0.1]] * 200)))
    assert loader_rates.rate(held, 2, 2.0)["batches_per_s"] == pytest.approx(8 / 1.4, rel=0.35)


def test_the_loops_own_step_is_waited_for(clock):
    assert loader_rates.rate(Timed(clock, [0.01] * 500), 0, 2.0, step_s=0.03)["batches_per_s"] == pytest.approx(
        25, rel=0.01
    )


class Numbers(torch.utils.data.Dataset):
    def __init__(self, make):
        self.make = make

    def __len__(self):
        return 64

    def __getitem__(self, index):
        return self.make(index)


def loader_of(make, **options):
    return torch.utils.data.DataLoader(Numbers(make), batch_size=4, num_workers=1, **options)


def test_handing_over_costs_what_the_batch_is_and_not_its_making():
    def slowly(index):
        time.sleep(0.02)
        return torch.tensor(index)

    small = handover.measure(loader_of(slowly), 0.2)
    values = handover.measure(loader_of(lambda index: [index] * 500_000, collate_fn=list), 0.2)
    assert 0 < small["packing_ms"] + small["unpacking_ms"] < 20  # of the 80 ms for making it
    assert min(values["packing_ms"], values["unpacking_ms"]) > 3 * min(small["packing_ms"], small["unpacking_ms"])
    assert all(cost >= 0 for cost in (*small.values(), *values.values()))


def test_a_batch_that_is_the_same_memory_again_is_sent_as_it_is():
    large = torch.zeros(4_000_000)
    again = handover.measure(torch.utils.data.DataLoader([large] * 8, batch_size=None, num_workers=1), 0.2)
    anew = handover.measure(
        torch.utils.data.DataLoader([large] * 8, batch_size=1, num_workers=1, collate_fn=doubled), 0.2
    )
    assert again["packing_ms"] < anew["packing_ms"] / 2
    assert handover._memory({"a": [large, torch.zeros(0)], "b": "text"}) == {large.data_ptr()}


def doubled(samples):
    return samples[0] * 2


def test_what_packs_a_batch_meanwhile_is_no_part_of_copying_the_next(monkeypatch):
    done = threading.Event()

    def copied(batch, as_collated):
        begin = time.process_time()
        while time.process_time() - begin < 0.1:  # CPU time of the other thread
            time.sleep(0.02)
        done.set()
        return batch

    monkeypatch.setattr(handover, "_copied", copied)
    packing = threading.Thread(target=lambda: collections.deque(iter(done.is_set, True), maxlen=0))
    packing.start()
    clocks, _ = handover._Copies(torch.zeros(1), is_copied=True, as_collated=False)[0]
    packing.join()
    assert clocks.copying < 0.05


def test_what_no_one_sends_is_not_measured():
    with pytest.raises(loader_rates.NotTried, match="no batches"):
        handover.measure(torch.utils.data.DataLoader([]), 0.1)


def clocks(cpu, copying=0.0, delay=0.0):
    return handover._Clocks(cpu / 1000, delay / 1000, copying / 1000)


@pytest.mark.parametrize(
    ("cycle", "loop", "worker", "copying", "waits"),
    [
        (10.0, 4.0, 3.0, 0.0, 6.0),  # neither is busy all the time: the loop waits for answers
        (10.0, 9.5, 3.0, 0.0, 0.0),  # the loop is
        (10.0, 2.0, 9.8, 7.0, 0.0),  # the worker is, with what it copies
    ],
)
def test_who_is_busy_all_the_time_waits_for_no_one(cycle, loop, worker, copying, waits):
    seen = [(n * cycle / 1000, clocks(n * loop), clocks(n * worker, copying)) for n in range(20)]
    found = handover._of_a_batch(seen)
    assert found["waiting_ms"] == pytest.approx(waits) and found["unpacking_ms"] == pytest.approx(loop)
    assert found["packing_ms"] == pytest.approx(worker - copying)


def test_waiting_for_a_cpu_is_no_part_of_a_hand_over():
    seen = [(n * 0.010, clocks(n * 2.0, delay=n * 4.0), clocks(n * 3.0, delay=n * 2.5)) for n in range(20)]
    assert handover._of_a_batch(seen)["waiting_ms"] == 0.0


def test_every_rung_draws_the_same_order():
    def order():
        worker_sweep._the_same_samples_again()
        loader = torch.utils.data.DataLoader(range(50), batch_size=5, shuffle=True)
        return [batch.tolist() for batch in loader]

    assert order() == order()


def test_only_the_loader_that_was_copied_reports_it(tmp_path, monkeypatch):
    """The second process of a run is informed that another one was first; its loader is not the one that was tested."""
    forked = []
    monkeypatch.setattr(process_copies, "fork_away", forked.append)
    loader = torch.utils.data.DataLoader(range(4))
    processes = [SimpleNamespace(copied=False, session=tmp_path, note=print) for _ in range(2)]
    assert [worker_sweep.offer(loader, process) for process in processes] == [True, False]
    assert [worker_sweep.offer(loader, process) for process in processes] == [False, False]
    assert len(forked) == 1
