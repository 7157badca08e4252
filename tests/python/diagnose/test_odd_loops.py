# SPDX-License-Identifier: Apache-2.0
"""Loops in various styles: similar loaders in one loop, a fetching thread, and iterators used directly."""

import time

import pytest
from summaries import HALF, summary
from test_several import loop, worker
from test_signals import record_of, recording
from watched import watched

from feedline import _engine
from feedline.diagnose.verdict import evaluate
from feedline.profiler.probe import events, fetch_hooks
from feedline.profiler.probe.events import Event
from feedline.profiler.probe.recorder import Recorder
from feedline.profiler.summary import timeline


class Loader:
    """Supports weak references."""


def test_loaders_that_look_alike_are_two_while_both_live(tmp_path):
    recorder, facts = Recorder(str(tmp_path)), {"batch_size": 8}
    one, other = Loader(), Loader()
    assert [recorder.number_of_loader(facts, loader) for loader in (one, other, one, other)] == [0, 1, 0, 1]
    del other
    third = Loader()  # as in scripts that create a loader in every epoch
    assert recorder.number_of_loader(facts, third) == 1 and recorder.number_of_loader(facts, one) == 0
    assert recorder.number_of_loader({"batch_size": 9}, third) == 2
    assert sorted(path.name.split(".")[1] for path in tmp_path.glob("*.loader")) == ["0", "1", "2"]


def test_loaders_without_end_take_no_more_numbers(tmp_path):
    recorder, alive = Recorder(str(tmp_path)), [Loader() for _ in range(500)]
    assert max(recorder.number_of_loader({}, loader) for loader in alive) < 64


@pytest.mark.parametrize("by_thread", [False, True])
def test_a_thread_that_calls_next_is_not_who_uses_the_batches(by_thread):
    """Its steps are the pauses of a full queue: a loop that reads from the queue may or may not wait."""
    main = record_of(1, 0, loop(0, [8.0] * 30, 2.0))
    main.events[:] = [found._replace(thread=7 if by_thread else 1) for found in main.events]
    found = timeline.summarise(recording([main, worker(2, 1, 1, 8.0, 30)], [{"pid": 1, "number": 0, "num_workers": 1}]))
    assert ("consumer" in found.missing) is by_thread
    assert found.waits.step < 0.3


def test_the_workers_batches_are_counted_each():
    main = record_of(1, 0, loop(0, [8.0] * 30, 2.0))
    found = timeline.summarise(recording([main, worker(2, 1, 1, 1.0, 21), worker(3, 1, 1, 1.0, 9)]))
    assert (found.making.fewest, found.making.most) == (9, 21)


def test_processes_whose_records_were_let_go_are_a_missing_signal():
    whole = recording([record_of(1, 0, loop(0, [8.0] * 30, 2.0))])
    assert "recording" not in timeline.summarise(whole).missing
    whole.dropped = 3
    assert "3 processes" in timeline.summarise(whole).missing["recording"]


def test_a_thread_promises_nothing_by_more_workers():
    more = summary(HALF, {"stages": {"storage": 1.0}, "cpu_ms": 2.0}, missing={"consumer": "who"})
    assert all(verdict.gain[0] == 0 for verdict in evaluate(more).verdicts)


@pytest.mark.parametrize(("collects", "waits", "slow"), [(True, 0.0, False), (False, 0.3, True), (True, 0.3, True)])
def test_a_sample_in_which_garbage_was_collected_is_not_slow_for_that(tmp_path, collects, waits, slow):
    """One of 40 samples of 10 ms takes much longer, because of the garbage collector, by itself, or both."""

    class OneIsLate:
        def __getitem__(self, index):
            time.sleep(0.01)
            if index == 30 and collects:
                timed.collecting("start", {"generation": 2})
                time.sleep(0.3)
                timed.collecting("stop", {"generation": 2})
            time.sleep(waits if index == 30 else 0)
            return index

    timed = fetch_hooks._TimedSamples(OneIsLate(), Recorder(str(tmp_path)))
    for index in range(40):
        timed[index]
    (ring,) = tmp_path.glob("*.ring")
    alive = [e for e in map(Event._make, _engine.read_events(str(ring))["events"]) if e.kind == events.SAMPLE and e.b]
    assert (30 in [sample.a for sample in alive]) is slow
    assert (timed.longest >= 300e6) is slow


COLLECTING = """
import gc, torch
seen = set()
class Samples(torch.utils.data.Dataset):
    def __len__(self): return 40
    def __getitem__(self, i):
        seen.add(len(gc.callbacks))
        if i == 0:
            gc.callbacks.clear()
        return torch.zeros(4)
before = len(gc.callbacks)
for batch in torch.utils.data.DataLoader(Samples(), 4):
    pass
print(before + 1 in seen, len(gc.callbacks) == before)
"""


def test_the_collector_is_heard_while_samples_are_timed_and_not_after(tmp_path):
    assert watched(tmp_path, COLLECTING, "--quick")[:2] == (0, "True True\n")


TWINS = """
import time, torch
class Samples(torch.utils.data.Dataset):
    def __init__(self, seconds): self.seconds = seconds
    def __len__(self): return 120
    def __getitem__(self, i):
        time.sleep(self.seconds)
        return torch.zeros(4)
if __name__ == "__main__":
    quick = torch.utils.data.DataLoader(Samples(0), 4, num_workers=1)
    slow = torch.utils.data.DataLoader(Samples(0.015), 4, num_workers=1)
    by_hand = iter(slow)
    for batch in quick:
        try:
            next(by_hand)
        except StopIteration:
            by_hand = iter(slow)
            next(by_hand)
        time.sleep(0.002)
"""


def test_of_twins_the_slow_one_is_judged(tmp_path):
    pytest.importorskip("torch", reason="torch, whose loader is watched, is not installed")
    status, _, _, found = watched(tmp_path, TWINS, "--quick")
    assert status == 0 and found["summary"]["making"]["batches"] == 30
    assert found["summary"]["making"]["sample_ms"] >= 15  # the duration of its sleep


def test_threads_may_take_turns_with_an_iterator(tmp_path):
    """Each process has its own CPU clock, so the time between two batches seems to be negative."""
    source = """
    from concurrent.futures import ThreadPoolExecutor
    import torch
    if __name__ == "__main__":
        turns = [ThreadPoolExecutor(1) for _ in range(2)]
        turns[0].submit(lambda: sum(range(20_000_000))).result()
        batches = iter(torch.utils.data.DataLoader(range(8000), batch_size=2))
        for number in range(4000):
            turns[number // 3 % 2].submit(next, batches).result()
        print(next(batches, "the end"))
    """
    status, output, _, found = watched(tmp_path, source, "--quick")
    assert status == 0 and output.startswith("the end")
    assert found["summary"]["steps"] == 4000
