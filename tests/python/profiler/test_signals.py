# SPDX-License-Identifier: Apache-2.0
"""Figures calculated from the host's counters, and from events of simulated processes."""

import pytest

from feedline import _engine
from feedline.profiler import collect
from feedline.profiler.experiments import Experiments, Rung, keep
from feedline.profiler.probe import events
from feedline.profiler.probe.events import Event, Total
from feedline.profiler.recordings import ProcessRecord, Recording
from feedline.profiler.summary import timeline
from feedline.profiler.summary.host_summary import window_of
from feedline.profiler.summary.loops import LoopOfLoader

MS = 1_000_000
S = 1_000 * MS


def host_row(time_ns, **counters):
    empty = ("busy_ns", "throttled_ns", "cpu_pressure_ns", "io_pressure_ns", "memory_pressure_ns", "memory_events",
             "available_bytes", "swapped_pages", "disk_reads", "disk_bytes", "disk_read_ns")  # fmt: skip
    return {**dict.fromkeys(empty, 0), "time_ns": time_ns, **counters}


def process_row(time_ns, pid, **counters):
    names = ("parent", "cpu_ns", "system_ns", "delay_ns", "device_bytes", "read_bytes", "read_calls", "minor_faults",
             "major_faults", "resident_bytes", "threads")  # fmt: skip
    return {**dict.fromkeys(names, 0), "time_ns": time_ns, "pid": pid, **counters}


def sampled(**extra):
    """Four seconds: the loop's process 1, a worker 2 that begins after a second, and an unrelated child process 3."""
    rows = []
    for second in range(5):
        rows.append(process_row(second * S, 1, cpu_ns=second * S // 4, delay_ns=second * S // 4))
        if second >= 1:
            rows.append(process_row(second * S, 2, cpu_ns=(second - 1) * S // 2, delay_ns=(second - 1) * S // 2))
    host = [host_row(second * S, busy_ns=second * S, throttled_ns=second * S // 10) for second in range(5)]
    return {"host": host, "processes": rows, "unseen": [], "quota_cpus": None, "sampler_cpu_ns": 0, **extra}


def test_counters_are_differences_over_the_loop():
    window = window_of(sampled(), 0, 4 * S, 1, [2])
    assert window.seconds == 4
    assert window.loop["cpu_ns"] == S and window.workers["cpu_ns"] == 1.5 * S
    assert window.tree["cpu_ns"] == 2.5 * S
    assert window.delay_per_cpu() == 1 and window.step_delayed() == 0.5
    assert window.missing == {}


def test_what_is_missing_is_reported():
    assert "host" in window_of({}, 0, 4 * S, 1, []).missing
    assert "host" in window_of(sampled(), 0, S, 1, []).missing  # too few samples
    blind = sampled(unseen=["process 2: this user may not read its input counters"])
    assert "io" in window_of(blind, 0, 4 * S, 1, [2]).missing
    older = sampled()
    for row in older["host"]:
        row["memory_pressure_ns"] = row["throttled_ns"] = None
    assert {"pressure", "throttled"} <= set(window_of(older, 0, 4 * S, 1, [2]).missing)
    assert "processes" in window_of({**sampled(), "processes": []}, 0, 4 * S, 1, [2]).missing


def record_of(pid, parent, recorded, totals=None):
    return ProcessRecord(pid, parent, 0, [Event(*event) for event in recorded], totals or {})


def recording(processes, loaders=()):
    return Recording(["python"], 0, 0, 10 * S, processes, list(loaders), sampled(), [], 1)


def event(kind, begin_ms, wall_ms, a=0, b=0, cpu_ms=0):
    return (kind, 1, int(begin_ms * MS), int(wall_ms * MS), int(cpu_ms * MS), a, b)


def loop_and_worker(waits, works, cpu=0.0):
    """A loop of 10 ms steps that waits waits[n] ms for batch n, which a worker made: works[n] = (end, time, sample).

    `cpu`: the share of its time for which the worker runs.
    """
    loop, at = [event(events.ITER, 0, 1)], 1.0
    for number, wait in enumerate(waits):
        loop.append(event(events.WAIT, at, wait, b=number))
        loop.append(event(events.STEP, at + wait, 10, b=1))
        at += wait + 10
    worker = [event(events.READY, 0, 0.5, a=1)]
    for number, (end, wall, sample) in enumerate(works):
        worker.append(event(events.WORK, end - wall, wall, a=number, b=int(sample * MS), cpu_ms=cpu * wall))
    return [record_of(1, 0, loop), record_of(2, 1, worker)]


def test_a_wait_is_split_at_the_moment_its_batch_was_made():
    # the third wait begins at 43 ms and ends at 73 ms; its batch was made at 63 ms
    processes = loop_and_worker([1, 20, 30], [(1.5, 1, 0), (12, 5, 0), (63, 20, 0)])
    waits = timeline.summarise(recording(processes)).waits
    whole = 1 + 1 + 20 + 30 + 30  # iter, three waits, three steps; the first wait's usual part is production
    assert waits.production == pytest.approx((1 + 20) / (whole - 1), abs=0.02)
    assert waits.handover == pytest.approx((20 + 10) / (whole - 1), abs=0.02)
    assert waits.step == pytest.approx(30 / (whole - 1), abs=0.02)


def test_a_sample_that_holds_up_its_batch_is_a_straggler():
    works = [(1.5, 1, 0), (22, 10, 1), (42, 10, 1), (251, 200, 195)]
    processes = loop_and_worker([1, 10, 10, 200], works)
    summary = timeline.summarise(recording(processes))
    assert summary.waits.straggler > 0.5
    slow_all_over = [(1.5, 1, 0), (22, 10, 1), (42, 10, 1), (251, 200, 20)]
    assert timeline.summarise(recording(loop_and_worker([1, 10, 10, 200], slow_all_over))).waits.straggler == 0


def test_a_stream_that_waits_for_its_next_part_has_no_straggling_sample():
    works = [(1.5, 1, 0), (22, 10, 1), (42, 10, 1), (251, 200, 195)]
    stream = {"iterable": True, "pid": 1, "number": 0}
    waits = timeline.summarise(recording(loop_and_worker([1, 10, 10, 200], works), [stream])).waits
    assert waits.straggler == 0 and waits.production > 0.5
    runs = timeline.summarise(recording(loop_and_worker([1, 10, 10, 200], works, cpu=0.9), [stream])).waits
    assert runs.straggler > 0.5  # one slow sample in a stream, too


def test_a_stream_without_workers_waits_for_its_next_part_likewise():
    def loop(cpu):
        recorded = [event(events.ITER, 0, 1)]
        for number, wait in enumerate((2, 2, 2, 200)):
            recorded += [event(events.WAIT, 300 * number + 1, wait), event(events.STEP, 300 * number + 250, 10, b=1)]
        slow = event(events.SAMPLE, 902, 190, cpu_ms=190 * cpu)
        return [record_of(1, 0, [*recorded, slow])]

    stream = {"iterable": True, "pid": 1, "number": 0}
    assert timeline.summarise(recording(loop(0.0), [stream])).waits.straggler == 0
    assert timeline.summarise(recording(loop(0.9), [stream])).waits.straggler > 0.5
    assert timeline.summarise(recording(loop(0.0))).waits.straggler > 0.5


def loop_with_late_batches(seen_of_them):
    """Without workers, every fourth batch is late. Recorded: a slow sample, even samples, or nothing."""
    recorded, at = [event(events.ITER, 0, 1)], 1.0
    for number in range(16):
        late = number % 4 == 3
        if late:
            seen = seen_of_them[number // 4]
            recorded.append(event(events.FETCH, at + 1, 90, a=8, b=80 * MS if seen else 0, cpu_ms=90))
            recorded += [event(events.SAMPLE, at + 2, 80, cpu_ms=80)] if seen == "slow" else []
        recorded += [
            event(events.WAIT, at, 100 if late else 2),
            event(events.STEP, at + 100 if late else at + 2, 10, b=1),
        ]
        at += 110 if late else 12
    return timeline.summarise(recording([record_of(1, 0, recorded)])).waits


def test_late_batches_whose_samples_were_not_looked_at_straggle_as_those_that_were():
    all_seen = loop_with_late_batches(["slow"] * 4)
    assert all_seen.straggler > 0.5
    assert loop_with_late_batches(["slow", None, None, None]).straggler == pytest.approx(all_seen.straggler, abs=0.03)
    assert loop_with_late_batches(["even"] * 4).straggler == 0
    third = loop_with_late_batches(["slow", "even", "even", None]).straggler
    assert third == pytest.approx(all_seen.straggler / 3, abs=0.03)


def test_a_late_batch_that_was_looked_at_in_a_wait_that_was_not_seen_tells_of_others():
    recorded, at = [event(events.ITER, 0, 1)], 1.0
    for number in range(8):
        wait = 100 if number % 4 == 3 else 2
        recorded += [event(events.WAIT, at, wait), event(events.STEP, at + wait, 10, b=1)]
        at += wait + 10
    beyond = [event(events.FETCH, at + 500, 100, a=8, b=90 * MS), event(events.SAMPLE, at + 501, 90, cpu_ms=90)]
    assert timeline.summarise(recording([record_of(1, 0, recorded)])).waits.straggler == 0
    assert timeline.summarise(recording([record_of(1, 0, recorded + beyond)])).waits.straggler > 0.5


def test_without_workers_batches_cost_what_was_waited_for_where_few_of_them_were_timed():
    # sixteen batches of 2 ms, every fourth of 100; the four that were timed were all short
    recorded, at = [event(events.ITER, 0, 1)], 1.0
    for number in range(16):
        wait = 100 if number % 4 == 3 else 2
        recorded += [event(events.WAIT, at, wait, cpu_ms=0), event(events.STEP, at + wait, 10, b=1)]
        at += wait + 10
    some = timeline.summarise(recording([record_of(1, 0, recorded, {events.FETCH: Total(4, 8 * MS, 8 * MS)})]))
    waited = (some.waits.production + some.waits.straggler) * 1000 * some.loop.loop_s / some.loop.steps
    assert some.making.wall_ms == pytest.approx(waited, rel=0.01) and some.making.wall_ms > 20
    timed = {events.FETCH: Total(16, 16 * 30 * MS, 16 * 30 * MS)}
    assert timeline.summarise(recording([record_of(1, 0, recorded, timed)])).making.wall_ms == pytest.approx(30)


def test_steps_that_represent_others_count_as_many():
    loop = [event(events.ITER, 0, 1), event(events.WAIT, 1, 2)]
    loop += [event(events.STEP, 3, 1, b=1), event(events.WAIT, 4, 2, b=0), event(events.STEP, 30, 1, b=9),
             event(events.WAIT, 31, 2, b=0)]  # fmt: skip
    summary = timeline.summarise(recording([record_of(1, 0, loop, {events.FETCH: Total(10, 20 * MS, 20 * MS)})]))
    assert summary.loop.steps == 10
    assert summary.loop.step_ms == pytest.approx(1) and summary.loop.wait_ms == pytest.approx(2)


def test_steps_that_passed_unseen_before_an_epochs_end_count_as_the_last_that_was_seen():
    epoch = [event(events.ITER, 0, 1), event(events.WAIT, 1, 2), event(events.STEP, 3, 1, b=1),
             event(events.WAIT, 4, 2, b=0)]  # fmt: skip
    made = {events.FETCH: Total(10, 20 * MS, 20 * MS)}
    ended = timeline.summarise(recording([record_of(1, 0, [*epoch, event(events.LAST, 31, 1, b=9)], made)]))
    assert ended.loop.steps == 10 and ended.loop.step_ms == pytest.approx(1) and ended.loop.wait_ms == pytest.approx(2)
    # ten steps, the first wait, one recorded and eight unrecorded waits; in addition, iter() and the end
    assert ended.loop.loop_s == pytest.approx((10 + 2 + 9 * 2) / 1000, abs=2e-3)
    nothing_seen = [event(events.ITER, 0, 1), event(events.WAIT, 1, 2), event(events.LAST, 28, 1, b=9)]
    assert timeline.summarise(recording([record_of(1, 0, nothing_seen, made)])).loop.steps == 0


def loop_with_unseen_steps(before_the_step, before_the_end):
    """Three steps and waits pass unrecorded before a step of 1 ms and its wait of 2, two before the next and one before
    the end.
    """
    step, end = 8 + before_the_step, 8 + before_the_step + 3 + before_the_end
    return LoopOfLoader(record_of(1, 0, [
        event(events.ITER, 0, 1), event(events.WAIT, 1, 7), event(events.STEP, step, 1, b=4),
        event(events.WAIT, step + 1, 2), event(events.LAST, end, 3, b=2)
    ]), 0)  # fmt: skip


def test_a_wait_counts_as_often_as_its_step():
    loop = loop_with_unseen_steps(3 * (1 + 2), 2 * 1 + 1 * 2)
    assert loop.waited_ns == pytest.approx((7 + 4 * 2 + 1 * 2) * MS)
    assert loop.time_ns == pytest.approx(loop.waited_ns + (1 + 4 * 1 + 2 * 1 + 3) * MS)


@pytest.mark.parametrize("times", [0.5, 3.0])
def test_steps_that_passed_unseen_take_the_time_between_those_that_were_seen(times):
    # the recorded waits may be short by chance: the total time is known
    loop = loop_with_unseen_steps(times * 9, times * 4)
    assert loop.time_ns == pytest.approx((1 + 7 + 1 + 2 + 3 + times * 13) * MS)
    assert sum(one.times for one in loop.weighted_events if one.event.kind == events.STEP) == 6
    assert loop.waited_ns == pytest.approx((7 + 2 + times * (3 * 2 + 1 * 2)) * MS)


@pytest.mark.parametrize("beyond_ms", [-12, 0, 400])
def test_what_unseen_cycles_took_beyond_those_that_were_seen_falls_on_what_differs(beyond_ms):
    # all steps take 1 ms, waits alternate between 1 and 3; then ten cycles take this much more or less than 30 ms
    recorded, at = [event(events.ITER, 0, 1), event(events.WAIT, 1, 5), event(events.STEP, 6, 50, b=1)], 56.0
    for wait in (1, 3, 1, 3, 1, 3):
        recorded += [event(events.WAIT, at, wait), event(events.STEP, at + wait, 1, b=1)]
        at += wait + 1
    recorded += [event(events.WAIT, at, 2)]
    at += 2 + 30 + beyond_ms
    recorded += [event(events.STEP, at, 1, b=11), event(events.WAIT, at + 1, 2), event(events.LAST, at + 3, 0)]
    loop = LoopOfLoader(record_of(1, 0, recorded), 0)
    assert loop.waited_ns == pytest.approx((5 + 12 + 2 + 2 + 20 + beyond_ms) * MS)
    assert loop.time_ns == pytest.approx((at + 3) * MS)


@pytest.mark.parametrize("beyond_ms", [-6, 0, 400])
def test_the_cpu_of_unseen_cycles_is_known_and_falls_on_what_differs(beyond_ms):
    # all steps take 0.5 ms of CPU, waits alternate between 0.5 and 1.5; then ten cycles take this much more or less
    # than 15
    recorded, at = [event(events.ITER, 0, 1), event(events.WAIT, 1, 5), event(events.STEP, 6, 1, b=1, cpu_ms=0.5)], 7.0
    for cpu_ms in (0.5, 1.5, 0.5, 1.5, 0.5, 1.5):
        recorded += [event(events.WAIT, at, 2, cpu_ms=cpu_ms), event(events.STEP, at + 2, 1, b=1, cpu_ms=0.5)]
        at += 3
    recorded += [event(events.WAIT, at, 2, cpu_ms=1)]
    at += 2 + 10 * 3 + 400
    recorded += [event(events.UNSEEN_CYCLES, at, 0, cpu_ms=15 + beyond_ms)]
    recorded += [event(events.STEP, at, 1, b=11, cpu_ms=0.5), event(events.WAIT, at + 1, 2, cpu_ms=1)]
    loop = LoopOfLoader(record_of(1, 0, [*recorded, event(events.LAST, at + 3, 0)]), 0)
    of_waits, of_steps = (
        sum(t.cpu_ns for t in loop.weighted_events if t.event.kind == k) for k in (events.WAIT, events.STEP)
    )
    assert of_waits == pytest.approx((6 + 1 + 1 + 10 + beyond_ms) * MS)
    assert of_steps == pytest.approx((8 + 10) * 0.5 * MS)
    others = LoopOfLoader(record_of(1, 0, [event(events.UNSEEN_CYCLES, 1, 0, a=1, cpu_ms=9000), *recorded]), 0)
    assert sum(t.cpu_ns for t in others.weighted_events if t.event.kind == events.WAIT) == pytest.approx(of_waits)


def test_a_collection_that_no_seen_wait_held_is_unpacking_all_the_same():
    """Of the 2 ms of waiting for a batch, unpacking runs for half a millisecond; one of the unrecorded ones ran for 160
    ms more.
    """
    loop, at = [event(events.ITER, 0, 1), event(events.WAIT, 1, 2, cpu_ms=0.5)], 3.0
    for number in range(1, 13):
        passed, longer = (10 if number % 3 == 0 else 0), (160 if number == 6 else 0)
        at += passed * 3 + longer
        if passed:
            loop.append(event(events.UNSEEN_CYCLES, at, 0, cpu_ms=passed * 0.5 + longer))
        odd = number % 2 * 0.2 - 0.1
        loop += [
            event(events.STEP, at, 1, b=1 + passed),
            event(events.WAIT, at + 1, 2 + odd, b=number, cpu_ms=0.5 + odd),
        ]
        at += 3 + odd
    worker = [event(events.READY, 0, 0.5, a=1)]
    worker += [event(events.WORK, 0.5 + n / 10, 0.05, a=n, cpu_ms=0.05) for n in range(13)]
    sent = {events.PICKLE: Total(13), events.WORK: Total(13, 1 * MS, 1 * MS)}
    unpacked = {events.UNPICKLE: Total(13, 6 * MS, 6 * MS)}
    found = timeline.summarise(recording([record_of(1, 0, loop, unpacked), record_of(2, 1, worker, sent)]))
    assert found.waits.packed_cpu * found.loop.loop_s * 1000 == pytest.approx(53 * 0.5 + 160, rel=0.05)
    assert found.waits.handover * found.loop.loop_s * 1000 == pytest.approx(53 * 2 + 160, rel=0.05)


def test_what_next_does_itself_is_next_to_each_batch_that_it_unpacks():
    """A call that receives a batch out of order unpacks two batches, and the next call none."""
    loop, at = [event(events.ITER, 0, 1)], 1.0
    for number in range(7):
        batches = 2 if number % 2 == 0 else 0
        loop.append(event(events.WAIT, at, 8, b=number, cpu_ms=0.2 + 3 * batches))
        loop += [event(events.UNPICKLE, at + 1 + 4 * n, 3, a=1000, cpu_ms=3) for n in range(batches)]
        loop.append(event(events.STEP, at + 8, 1, b=1))
        at += 9
    worker = [event(events.READY, 0, 0.5, a=1), *(event(events.WORK, n, 1, a=n, cpu_ms=1) for n in range(7))]
    unpacked = {events.UNPICKLE: Total(8, 24 * MS, 24 * MS)}
    found = timeline.summarise(recording([record_of(1, 0, loop, unpacked), record_of(2, 1, worker)]))
    assert found.making.next_cpu_ms == pytest.approx(0.2)


def test_waits_that_passed_unseen_before_an_epochs_last_step_count_though_no_wait_follows():
    # waits of 2 ms and steps of 1: four unrecorded cycles follow two recorded ones, and the epoch's last step is
    # recorded again
    loop = LoopOfLoader(record_of(1, 0, [
        event(events.ITER, 0, 1), event(events.WAIT, 1, 7), event(events.STEP, 8, 1, b=1), event(events.WAIT, 9, 2),
        event(events.STEP, 11 + 4 * 3, 1, b=5), event(events.LAST, 11 + 4 * 3 + 1, 3),
    ]), 0)  # fmt: skip
    assert loop.waited_ns == pytest.approx((7 + 2 + 4 * 2) * MS)
    assert sum(one.times for one in loop.weighted_events if one.event.kind == events.WAIT) == 1 + 5
    assert loop.time_ns == pytest.approx((1 + 7 + 6 * 1 + 5 * 2 + 3) * MS)


def test_workers_that_start_in_each_epoch_are_distinguished_from_the_border():
    loop, at = [], 0.0
    for epoch in range(3):
        loop.append(event(events.ITER, at, 5, b=epoch))
        loop.append(event(events.WAIT, at + 5, 95, b=0))
        loop.append(event(events.STEP, at + 100, 10, b=1))
        loop.append(event(events.WAIT, at + 110, 1, b=1))
        loop.append(event(events.STEP, at + 111, 10, b=1))
        loop.append(event(events.LAST, at + 121, 2))
        at += 123
    starts = [record_of(10 + n, 1, [event(events.READY, n * 123 + 2, 78, a=1)]) for n in range(3)]
    waits = timeline.summarise(recording([record_of(1, 0, loop), *starts])).waits
    assert waits.startup == pytest.approx((3 * 80 + 3 * 2) / (3 * 123), abs=0.1)
    assert 0 < waits.border < 0.15


@pytest.mark.parametrize(
    ("watched", "share"), [([(40, 4)], 0.1), ([(40, 4), (10, 9)], 0.9), ([(40, 4), (10, 9), (10, 7)], 0.8)]
)
def test_the_first_step_that_is_watched_holds_what_is_done_once(watched, share):
    loop, at = [event(events.ITER, 0, 1)], 1.0
    for step_ms, spent_ms in watched:
        loop += [event(events.WAIT, at, 1), event(events.STEP, at + 1, step_ms, b=1)]
        loop.append(event(events.CALLS, at + 1, step_ms, a=100, b=int(spent_ms * MS)))
        at += 1 + step_ms
    assert timeline.summarise(recording([record_of(1, 0, loop)])).loop.synchronising == pytest.approx(share)


def test_no_loop_is_no_summary():
    assert timeline.summarise(recording([])) is None
    assert timeline.summarise(recording([record_of(1, 0, [event(events.READY, 0, 1)])])) is None


def test_rungs_that_gain_nothing_are_not_kept():
    rungs = [Rung(1, 10, 9, 11, 50), Rung(2, 20, 19, 21, 50), Rung(4, 20.5, 19, 22, 50), Rung(8, 30, 15, 45, 9)]
    assert [rung.kept for rung in keep(rungs)] == [True, True, False, False]


def test_rungs_whose_interval_is_wide_are_shown_and_not_reckoned_with():
    whole = recording(loop_and_worker([1, 20, 30], [(1.5, 1, 0), (12, 5, 0), (63, 20, 0)]))
    whole.experiments = Experiments(rungs=[Rung(1, 10, 9, 11, 50), Rung(2, 20, 3, 37, 5), Rung(4, 20, 11, 29, 9)])
    assert timeline.summarise(whole).ladder.rungs == {1: 10, 4: 20}
    assert len(whole.experiments.rungs) == 3


def test_rings_of_ended_processes_do_not_pile_up(tmp_path):
    collector = collect.FileCollector(tmp_path)
    for number in range(collect.KEPT_PROCESSES + 44):
        _engine.EventRing(str(tmp_path / f"1.{number}.ring"), 4).record(events.WORK, 0, 0, number, 0, True)
    retained = collector.processes()
    assert len(retained) == collect.KEPT_PROCESSES and collector.dropped == 44
    assert retained[-1].events[0].a == collect.KEPT_PROCESSES + 43  # the latest
    assert list(tmp_path.glob("*.ring")) == []


def test_a_ring_that_was_cut_off_is_left_out(tmp_path):
    (tmp_path / "1.1.ring").write_bytes(b"short")
    _engine.EventRing(str(tmp_path / "1.2.ring"), 4)
    assert len(collect.FileCollector(tmp_path).processes()) == 1
