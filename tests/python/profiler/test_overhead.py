# SPDX-License-Identifier: Apache-2.0
"""The limits on profiling overhead, tested with a simulated clock and by counting; bench/ measures the real
overhead.
"""

import json
import os
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from watched import recorded

from feedline.profiler.collect import FileCollector
from feedline.profiler.probe import budget, counted_calls, events, loop_hooks, opened_files, recorder
from feedline.profiler.probe.events import Event, Total
from feedline.profiler.probe.recorder import Recorder
from feedline.profiler.probe.sampling import WorkSampler
from feedline.profiler.recordings import ProcessRecord, Recording
from feedline.profiler.summary.overhead import overhead_of
from feedline.profiler.summary.tasks import done_of

US, MS, S = 1_000, 1_000_000, 1_000_000_000


class Clock:
    """A clock that only advances when the test says so."""

    def __init__(self, monkeypatch):
        self.now = 7 * S
        for module in (budget, recorder):
            monkeypatch.setattr(module, "clock", lambda: self.now)

    def __call__(self):
        return self.now


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A recorder whose ring exists, so that nothing is calibrated while the test's clock does not advance."""
    made = Recorder(str(tmp_path_factory.mktemp("session")))
    made.record(events.WAIT, 0)
    return made


def begin(made, clock, event_ns=1500.0):
    made._started_ns = clock.now
    made._detail_ns = made.spent_ns = 0
    made.event_ns, made.detail_event_ns, made.call_ns = event_ns, event_ns, 0


@settings(deadline=None, max_examples=50)
@given(
    cycles=st.lists(st.integers(20 * US, 200 * MS), min_size=1, max_size=5),
    hook=st.integers(2 * US, 200 * US),
    count=st.integers(100, 3000),
)
def test_steps_are_seen_only_as_long_as_hooks_cost_their_share(made, cycles, hook, count):
    with pytest.MonkeyPatch.context() as monkeypatch:
        clock = Clock(monkeypatch)
        begin(made, clock)
        start, unseen, dearest, pace = clock.now, 0, max(hook, 3 * 1500), WorkSampler()
        for cycle in range(count):
            took = cycles[cycle * len(cycles) // count]  # loops change their pace
            clock.now += took
            if unseen:
                unseen -= 1
                continue
            made.paid(hook, 3)
            unseen = made.unseen_after(took, 3, pace)
        allowed = budget._FREE_NS + budget.COST_SHARE * (clock.now - start)
        # additional overhead comes from events recorded before their cost was known, and from a stretch at another pace
        # than the previous one
        assert made.spent_ns <= allowed + 2 * dearest + 128 * hook


def test_a_loop_of_long_steps_has_every_step_seen(made, monkeypatch):
    clock = Clock(monkeypatch)
    begin(made, clock)
    pace = WorkSampler()
    for _ in range(1000):
        clock.now += 30 * MS
        made.paid(40 * US, 3)
        assert made.unseen_after(30 * MS, 3, pace) == 0


def test_a_long_loop_of_short_steps_has_few_of_them_seen(made, monkeypatch):
    clock = Clock(monkeypatch)
    begin(made, clock)
    seen, unseen, pace = 0, 0, WorkSampler()
    for _ in range(100_000):
        clock.now += 100 * US
        if unseen:
            unseen -= 1
            continue
        seen += 1
        made.paid(20 * US, 3)
        unseen = made.unseen_after(100 * US, 3, pace)
    allowed = budget._FREE_NS + budget.COST_SHARE * 10 * S
    assert 0.5 * allowed < seen * 20 * US < 1.1 * allowed


@settings(deadline=None, max_examples=50)
@given(asked=st.lists(st.tuples(st.integers(1, 500), st.integers(0, 50 * MS)), min_size=1, max_size=200))
def test_details_are_recorded_only_as_long_as_they_cost_their_share(made, asked):
    with pytest.MonkeyPatch.context() as monkeypatch:
        clock = Clock(monkeypatch)
        begin(made, clock, event_ns=9000.0)
        start, cost = clock.now, 0
        for count, pause in asked:
            clock.now += pause
            if made.may_detail(count):
                cost += count * 9000
        assert cost <= budget._FREE_DETAIL_NS + budget.DETAIL_SHARE * (clock.now - start)


def test_after_a_late_batch_that_was_not_looked_at_details_may_cost_more_until_one_was(made, monkeypatch):
    clock = Clock(monkeypatch)
    begin(made, clock, event_ns=9000.0)
    clock.now += 10 * S
    for _ in range(40):
        assert not made.was_late(10 * MS, False)
    free = budget._FREE_DETAIL_NS + budget.DETAIL_SHARE * 10 * S

    def spent_at_most():
        made._detail_ns = 0
        while made.may_detail(1):
            pass
        return made._detail_ns

    usual = spent_at_most()
    assert 0.9 * free < usual <= free
    assert made.was_late(200 * MS, False)
    assert spent_at_most() > 2 * usual
    assert made.was_late(200 * MS, True)
    assert spent_at_most() == usual
    assert made.was_late(400 * MS, False)
    for _ in range(budget._CURIOUS_FETCHES):
        assert not made.was_late(10 * MS, False)
    assert spent_at_most() == usual  # late ones have become rare: there is nothing to record


def test_what_details_have_come_to_decides_on_more_of_them(made, monkeypatch):
    begin(made, Clock(monkeypatch), event_ns=1000.0)
    expected = made.may_detail(100)
    assert expected == 100 * US
    made.detailed(expected, 100, 350 * US)  # dearer than thought
    assert made.detail_event_ns > 1300
    assert made._detail_ns == 350 * US
    assert not made.may_detail(50)  # 50 us were left


def test_steps_and_batches_of_one_process_share_its_allowance(made, monkeypatch):
    clock = Clock(monkeypatch)
    begin(made, clock)
    start, unseen, paces = clock.now, [0, 0], (WorkSampler(), WorkSampler())
    for _ in range(50_000):
        clock.now += 200 * US
        for kind, pace in enumerate(paces):
            if unseen[kind]:
                unseen[kind] -= 1
                continue
            made.paid(20 * US, 3)
            unseen[kind] = made.unseen_after(200 * US, 3, pace)
    allowed = budget._FREE_NS + budget.COST_SHARE * (clock.now - start)
    assert 0.8 * allowed < made.spent_ns < 1.5 * allowed  # each alone would use the whole budget


def test_hooks_inside_a_batch_are_paid_by_the_one_around_them(made, monkeypatch):
    begin(made, Clock(monkeypatch))
    made.call_ns = 100
    now = [0]
    monkeypatch.setattr(budget, "cpu_clock", lambda: now[0])
    for _ in range(3):
        ended, now[0] = now[0], now[0] + 4 * US
        made.inside(ended)
    assert made.spent_ns == 0
    made.settle()  # no more than this may wait
    assert made.spent_ns == 0
    assert made.paid(10 * US, 3, made.taken()) == 10 * US + 100 + 3 * (4 * US + 100) == made.spent_ns
    assert made.taken() == 0
    now[0] += budget._RECORDED_NS
    made.inside(now[0] - budget._RECORDED_NS)
    made.settle()
    assert made.spent_ns > budget._RECORDED_NS and made.taken() == 0


def test_watched_steps_are_paid_for_from_the_first_on(made, monkeypatch):
    """torch is imported long before a loop begins."""
    pytest.importorskip("torch", reason="torch, whose methods are counted, is not installed")
    clock = Clock(monkeypatch)
    monkeypatch.setattr(counted_calls, "clock", clock)
    calls = counted_calls.CountedCalls(made)
    clock.now += 100 * S
    assert calls.watch()
    calls.end()
    calls.paid(MS)
    assert not calls.watch()  # the next step is treated like the first one, as both are warm-ups
    clock.now += counted_calls.WARM_NS + 1
    assert calls.watch()  # one step is not a sample
    calls.end()
    calls.paid(MS)
    assert not calls.watch()
    clock.now += int(2 * MS / counted_calls.CALLS_SHARE)
    assert calls.watch()
    calls.end()


@pytest.fixture
def smooth(made, monkeypatch):
    """Returns (calls, clock) of a loop that uses a device and has run for a while: its second run costs nothing."""
    torch = pytest.importorskip("torch", reason="torch, whose methods are counted, is not installed")
    clock = Clock(monkeypatch)
    monkeypatch.setattr(counted_calls, "clock", clock)
    calls = counted_calls.CountedCalls(made)
    calls._devices._devices.add(torch.device("meta"))
    calls._runs, calls._first_ns = 1, clock.now
    clock.now += counted_calls.WARM_NS + 1
    yield calls, clock
    calls.stop()


def test_of_a_loop_that_uses_a_device_steps_are_watched_in_runs(smooth):
    import torch

    calls, clock = smooth
    for step in range(counted_calls.RUN_STEPS):
        assert calls.watch() and calls.left == counted_calls.RUN_STEPS - step
        torch.zeros(1).item()
        calls.end()
        assert calls.count == 1
        torch.zeros(1).item()  # of the loader
        assert calls.count == 1
        calls.paid(MS)
    assert calls.left == 0 and "item" not in torch.Tensor.__dict__
    assert not calls.watch()  # the overhead has reached its limit
    clock.now += int(2 * counted_calls.RUN_STEPS * MS / counted_calls.CALLS_SHARE)
    assert calls.watch() and calls.left == counted_calls.RUN_STEPS


@pytest.mark.parametrize("uses_a_device", [True, False])
def test_a_run_begins_in_time_however_seldom_steps_are_seen(tmp_path, monkeypatch, uses_a_device):
    torch = pytest.importorskip("torch", reason="torch, whose methods are counted, is not installed")
    recorder, loop = Recorder(str(tmp_path)), loop_hooks._Loop(0)
    calls = counted_calls.CountedCalls(recorder)
    monkeypatch.setattr(counted_calls, "WARM_NS", 20 * MS)
    monkeypatch.setattr(recorder, "unseen_after", lambda *_: 10_000)
    monkeypatch.setattr(calls._devices, "tell", lambda: False)
    next_one = loop_hooks._around_next(lambda _: time.sleep(0.001), recorder, calls, loop_hooks._no_task)
    iterator, watched = SimpleNamespace(_feedline_loop=loop), 0
    for step in range(80):
        next_one(iterator)
        watched += calls.installed
        if step == 3 and uses_a_device:
            calls._devices._devices.add(torch.device("meta"))
            loop.unseen = 0
    calls.stop()
    assert watched == 1 + (counted_calls.RUN_STEPS if uses_a_device else 0)


@pytest.mark.parametrize("ends", ["epoch", "compiled"])
def test_a_run_ends_with_its_epoch_and_where_something_is_compiled(smooth, monkeypatch, ends):
    import torch

    calls, _ = smooth
    assert calls.watch()
    calls.end()
    if ends == "epoch":
        calls.stop()
    else:
        monkeypatch.setattr(counted_calls, "_compiles", lambda: True)
        assert not calls.watch()
    assert calls.left == 0 and not calls.installed
    assert not [name for name in ("item", "to", "copy_") if name in torch.Tensor.__dict__]


def test_what_a_device_is_asked_for_once_is_no_cost_of_watching(smooth, tmp_path):
    calls, _ = smooth
    recorder = calls._devices._recorder
    spent = recorder.spent_ns
    assert calls.watch()
    calls.end()
    once = calls.taken_once()
    assert once > 0 and calls.taken_once() == 0
    assert recorder.spent_ns == spent
    calls.watch()
    calls.end()
    assert calls.taken_once() == 0  # it was told


def test_what_an_event_costs_follows_what_hooks_take(made, monkeypatch):
    begin(made, Clock(monkeypatch), event_ns=1500.0)
    for _ in range(100):
        made.paid(60 * US, 3)
    assert 19 * US < made.event_ns < 20.1 * US
    before = made.event_ns
    made.paid(5 * MS)  # sampling an engine says nothing about events
    assert made.event_ns == before


def test_a_collection_of_the_scripts_garbage_is_no_cost_of_the_hook_it_falls_into(made, monkeypatch):
    begin(made, Clock(monkeypatch))
    assert made.paid(100 * MS) == budget._MOST_OF_HOOK_NS == made.spent_ns
    assert made.paid(40 * US) == 40 * US


def test_what_hooks_have_spent_is_reported_in_few_events(tmp_path):
    made = Recorder(str(tmp_path))
    for _ in range(1000):
        made.paid(20 * US, 3)
    (ring,) = FileCollector(tmp_path).processes()
    of_kind = ring.totals[events.SPENT]
    assert of_kind.times <= made.spent_ns / budget._RECORDED_NS
    assert made.spent_ns - budget._RECORDED_NS <= of_kind.a <= made.spent_ns
    assert 15 * US / 3 < of_kind.cpu_ns / of_kind.times < 25 * US  # the cost of an event by then


def test_what_lets_work_pass_is_reported_and_takes_nothing_of_what_may_be_seen(tmp_path):
    made = Recorder(str(tmp_path))
    for _ in range(100):
        made.passed(8 * US)
    assert made.spent_ns == 0
    made.paid(budget._RECORDED_NS)
    (ring,) = FileCollector(tmp_path).processes()
    assert ring.totals[events.SPENT].a == pytest.approx(800 * US + made.spent_ns, abs=budget._RECORDED_NS)


def test_settings_written_again_and_again_stay_whole(tmp_path):
    made = Recorder(str(tmp_path))
    made.write_loader(3, {"class": "Loader"})
    path = tmp_path / f"{os.getpid()}.3.loader"
    for facts in ({"engine": "x" * 5000}, {"engine": "short"}):
        made.rewrite_loader(3, facts)
        assert json.loads(path.read_text()) == {**facts, "pid": os.getpid(), "number": 3}


def test_opens_are_counted_whether_or_not_they_are_heard(tmp_path):
    made = Recorder(str(tmp_path))
    made.in_worker = True
    opened = opened_files.OpenedFiles(made)
    for number in range(1000):
        opened._gate.hook("open", (f"/data/{number}", "r", os.O_RDONLY))
        opened.tell()
    (ring,) = FileCollector(tmp_path).processes()
    of_kind = ring.totals[events.HEARD]
    assert 1000 - opened_files._TOLD < of_kind.a <= 1000
    assert of_kind.times <= 1000 / opened_files._TOLD


# -- the cost of a batch, in events


LOOP = """
import torch
if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(range(240), batch_size=4, num_workers={workers})
    for batch in loader:
        sum(range(20_000))
"""


@pytest.mark.parametrize("workers", [0, 2])
def test_a_batch_is_a_few_events(tmp_path, workers):
    pytest.importorskip("torch", reason="torch, whose loader is watched, is not installed")
    recording = recorded(tmp_path, LOOP.format(workers=workers))
    batches, bookkeeping = 60, (0, events.SPENT, events.COST, events.STARTED, events.HEARD)
    counted = {
        process.pid: {kind: total.times for kind, total in process.totals.items() if kind not in bookkeeping}
        for process in recording.processes
    }
    (loop,) = (kinds for kinds in counted.values() if events.WAIT in kinds)
    of_loop = {events.STEP: 60, events.UNSEEN_CYCLES: 60, events.WAIT: 60, events.LAST: 1, events.ITER: 1}
    of_loop |= {events.PASS: 1, events.COLLECTIONS: 8}
    for kind, most in of_loop.items():
        assert loop.get(kind, 0) <= most, kind
    makers = [kinds for kinds in counted.values() if events.FETCH in kinds]
    assert len(makers) == max(workers, 1)
    per_task = (events.WORK, events.FETCH, events.COLLATE, events.PICKLE, events.DETAILED_FETCH)
    for kind in per_task:
        assert sum(kinds.get(kind, 0) for kinds in makers) <= batches, kind
    of_detail = {events.SAMPLE}
    of_start = {events.READY}
    watched = {events.CALLS, events.DEVICE_COST, events.UNPICKLE}
    paced = {events.UNSEEN_WORK, events.LATE_WORK, events.PICKLE_BESIDE}
    known = set(per_task) | paced | set(of_loop) | of_detail | of_start | watched
    for kinds in counted.values():
        assert set(kinds) <= known  # nothing else is recorded for such a loop
    assert recording.watcher_cpu_ns >= recording.host["sampler_cpu_ns"] > 0
    overhead = overhead_of(recording, recording.end_ns - recording.begin_ns)
    assert overhead is not None
    assert overhead.hooks > 0 and overhead.profiler > 0 and overhead.load_ms > 0
    assert overhead.copy_ms == 0  # no experiments were requested


MANY_STEPS = """
import pathlib, time, torch
if __name__ == "__main__":
    begin = time.thread_time_ns()
    for number, batch in enumerate(torch.utils.data.DataLoader(range(12000), batch_size=2)):
        sum(range(20_000 if number % 50 == 7 else 500))
    pathlib.Path(__file__).with_name("cpu").write_text(str(time.thread_time_ns() - begin))
"""


def test_the_cpu_of_cycles_that_pass_unseen_is_counted(tmp_path):
    pytest.importorskip("torch", reason="torch, whose loader is watched, is not installed")
    (process,) = recorded(tmp_path, MANY_STEPS).processes
    unseen = [e.cpu_ns for e in process.events if e.kind == events.UNSEEN_CYCLES]
    assert len(unseen) == sum(e.kind == events.STEP and e.b > 1 for e in process.events) > 2
    seen = sum(e.cpu_ns for e in process.events if e.kind in (events.ITER, events.WAIT, events.STEP))
    assert sum(unseen) > seen / 2
    assert sum(unseen) + seen == pytest.approx(int((tmp_path / "cpu").read_text()), rel=0.2)


PACKS = """
import os
from multiprocessing.reduction import ForkingPickler

import torch

class Packs(torch.utils.data.Dataset):
    def __len__(self):
        return 40
    def __getitem__(self, index):
        return len([ForkingPickler.dumps(index) for _ in range(5)])  # as a pool does

if __name__ == "__main__":
    begun = os.path.join(os.environ["FEEDLINE_DIAGNOSE_SESSION"], "loops")
    loader = torch.utils.data.DataLoader(Packs(), batch_size=4, num_workers=1)
    assert not os.path.exists(begun)
    assert len([batch for batch in loader]) == 10
    assert os.path.exists(begun)
"""


def test_only_batches_are_packed_for_the_loop_and_the_first_loop_is_notified(tmp_path):
    pytest.importorskip("torch", reason="torch, whose loader is watched, is not installed")
    processes = recorded(tmp_path, PACKS).processes
    (worker,) = (process for process in processes if events.WORK in process.totals)
    assert done_of(worker.totals).times == 10
    assert worker.totals[events.WORK].times == worker.totals[events.PICKLE].times > 0


# -- the sum


def recording(*processes, watcher_cpu_ns=0, sampler_cpu_ns=0):
    host = {"sampler_cpu_ns": sampler_cpu_ns}
    return Recording(["x"], 0, 0, 10 * S, list(processes), [], host, [], 1, watcher_cpu_ns=watcher_cpu_ns)


def process(pid, **totals):
    """With an event at 10 s, and totals by names of kinds."""
    last = Event(events.STEP, pid, 10 * S, 0, 0, 0, 1)
    cost = Event(events.COST, pid, 0, 0, 0, 1000, 100)
    sums = {getattr(events, kind): total for kind, total in totals.items()}
    return ProcessRecord(pid, 1, 0, [cost, last], {events.COST: Total(1, a=1000), **sums})


def test_the_share_is_the_dearest_process_and_all_of_the_watching():
    cheap = process(2, SPENT=Total(4, cpu_ns=8000, a=3 * MS))
    dear = process(3, SPENT=Total(4, cpu_ns=8000, a=20 * MS))
    found = overhead_of(recording(cheap, dear, watcher_cpu_ns=30 * MS, sampler_cpu_ns=25 * MS), 10 * S)
    assert found is not None
    assert found.hooks == pytest.approx(0.002) and found.profiler == pytest.approx(0.003)
    assert found.share == pytest.approx(0.005)
    assert overhead_of(recording(), 0) is None


def test_nothing_that_costs_is_left_out():
    plain = process(2, SPENT=Total(4, cpu_ns=8000, a=3 * MS))

    def more(**totals):
        found = overhead_of(recording(replace(plain, totals={**plain.totals, **process(2, **totals).totals})), 10 * S)
        assert found is not None
        return found.hooks * 10 * S - 3 * MS

    # the fetch around them is charged the cost of an event that hooks measured
    assert more(PIN=Total(1000)) == pytest.approx(1000 * 2000)
    assert more(SAMPLE=Total(1000)) == pytest.approx(0, abs=1)  # the fetch around them paid
    assert more(CALLS=Total(5, a=700)) == pytest.approx(700 * 100)
    assert more(DEVICE_COST=Total(2, a=50_000)) == pytest.approx(50_000)
    assert more(HEARD=Total(3, a=400)) == pytest.approx(60_000)
    assert more(WORK=Total(100), FETCH=Total(60)) == pytest.approx(40 * 100)  # this many passed the hook unrecorded
    assert more(WAIT=Total(10_000)) == pytest.approx(0, abs=1)  # is included in the overhead


def test_a_process_without_records_is_charged_by_its_first_measurement():
    found = overhead_of(recording(process(2, WAIT=Total(500), FETCH=Total(100))), 10 * S)
    assert found is not None
    assert found.hooks == pytest.approx(600 * 1000 / (10 * S))


def test_what_is_paid_once_is_separate():
    started = process(2)
    started.events.insert(0, Event(events.STARTED, 2, 0, 0, 0, 80 * MS, 90 * MS))
    started.events.insert(0, Event(events.STARTED, 2, 0, 0, 0, 2 * MS, 0))  # the start of its first loop
    started.events.insert(0, Event(events.COPY, 2, 0, 12 * MS, 0, 0, 0))
    found = overhead_of(recording(started), 10 * S)
    assert found is not None
    assert found.as_dict() == {"hooks_share": 0.0, "watching_share": 0.0, "load_ms": 82.0, "copy_ms": 12.0}
