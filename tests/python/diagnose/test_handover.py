# SPDX-License-Identifier: Apache-2.0
"""Waits for a batch that is already made: divided into packing and unpacking, and pure waiting."""

from dataclasses import replace

import pytest
from summaries import summary, waiting
from test_several import loop, worker
from test_signals import MS, event, record_of, recording

from feedline.diagnose.verdict import CERTAIN, evaluate
from feedline.profiler.probe import events
from feedline.profiler.probe.events import Total
from feedline.profiler.summary import timeline

TASKS = 40
LOADER = {"pid": 1, "number": 0, "num_workers": 1}


def run(waits_ms, step_ms, works, packs, unpickle_cpu_ms, next_cpu_ms, longest_ms=lambda ms: 0.0):
    """A loop in process 1 and its worker 2. `works`: (begin, ms); `packs`: (begin, ms, CPU ms)."""
    main = [event(events.ITER, 0, 0.5), event(events.PASS, 0.5, 0, b=1)]
    at = 1.0
    for task, wait_ms in enumerate(waits_ms):
        main.append(event(events.WAIT, at, wait_ms, b=task, cpu_ms=next_cpu_ms))
        main.append(event(events.STEP, at + wait_ms, step_ms, b=1))
        at += wait_ms + step_ms
    unpacked = Total(TASKS, int(TASKS * unpickle_cpu_ms * MS), int(TASKS * unpickle_cpu_ms * MS))
    made = [event(events.READY, 0, 0.1, a=1, b=events.WORKERS)]
    made += [
        event(events.WORK, begin, ms, a=task, b=int(MS * longest_ms(ms)), cpu_ms=ms)
        for task, (begin, ms) in enumerate(works)
    ]
    made += [event(events.PICKLE, begin, ms, a=4000, cpu_ms=cpu) for begin, ms, cpu in packs]
    cpu_ns, wall_ns = (int(MS * sum(pack[column] for pack in packs)) for column in (2, 1))
    work_ns = int(MS * sum(ms for _, ms in works))
    totals = {events.WORK: Total(TASKS, work_ns, work_ns), events.FETCH: Total(TASKS, work_ns, work_ns)}
    if packs:
        totals[events.PICKLE] = Total(TASKS, wall_ns, cpu_ns)
    processes = [record_of(1, 0, main, {events.UNPICKLE: unpacked} if packs else {}), record_of(2, 1, made, totals)]
    return timeline.summarise(recording(processes, [LOADER]))


def test_a_batch_that_was_packed_long_ago_costs_what_next_runs():
    """The loop takes 12 ms, its next() 2 ms. next() runs for 0.6 ms and otherwise waits for a CPU or a wake-up."""
    works = [(14 * max(task - 2, 0) + 0.2, 0.5) for task in range(TASKS)]
    packs = [(begin + ms, 0.3, 0.2) for begin, ms in works]
    found = run([2.0] * TASKS, 12.0, works, packs, 0.5, 0.6)
    assert found.waits.handover == pytest.approx(2 / 14, rel=0.1)
    assert found.waits.packed == pytest.approx(0.6 / 14, rel=0.1)
    assert [v.code for v in evaluate(found).verdicts] == ["compute_bound"]


@pytest.mark.parametrize(("cpu_ms", "share"), [(8.0, 0.8), (2.0, 0.2)])
def test_a_batch_waits_for_those_before_it_to_be_packed(cpu_ms, share):
    """All batches are made at the same time, and packing takes 8 ms each, with or without a CPU."""
    works = [(0.2 + 0.01 * task, 0.01) for task in range(TASKS)]
    packs = [(1 + 10 * task, 8.0, cpu_ms) for task in range(TASKS)]
    found = replace(run([9.0] * TASKS, 1.0, works, packs, 0.1, 0.1), missing={})
    assert found.waits.packed == pytest.approx(share, abs=0.03)
    verdicts = {v.code: v for v in evaluate(found).verdicts}
    assert verdicts["worker_handover"].share == pytest.approx(share, abs=0.03)
    assert (verdicts["worker_handover"].confidence >= CERTAIN) is (share > 0.5)


def test_a_batch_that_is_made_waits_for_a_sample_that_keeps_the_interpreter():
    """Every tenth batch takes 80 ms because of one sample; the batch before it is already made, and is sent
    afterwards.
    """
    waits_ms, works, packs, at = [], [], [], 1.0
    for task in range(TASKS):
        late = task % 10 == 9
        works.append((at, 80.0 if late else 0.5))
        waits_ms.append(80.0 if task % 10 == 8 else 0.2)
        at += waits_ms[-1] + 10.0
    works = [(works[task - 1][0] + 0.6, 80.0) if task % 10 == 9 else works[task] for task in range(TASKS)]
    packs = [(begin + ms, 0.2, 0.1) for begin, ms in works]
    seen = iter([0.1] * 9 + [79.6] + [0.0] * 30)  # for the other batches, it is unknown whether one sample is slow
    found = run(waits_ms, 10.0, works, packs, 0.1, 0.1, longest_ms=lambda ms: next(seen))
    assert found.waits.straggler == pytest.approx(8.0 / 18.0, abs=0.05)
    assert found.waits.handover < 0.05
    first = evaluate(found).verdicts[0]
    assert first.code == "straggling_sample" and first.share == pytest.approx(found.waits.straggler, abs=0.01)


def test_packing_that_no_event_tells_of_is_not_known():
    """A thread unpacks page-locked batches; Feedline's own workers pack their batches themselves."""
    works = [(10 * task + 0.2, 0.5) for task in range(TASKS)]
    found = run([9.0] * TASKS, 1.0, works, [], 0.0, 0.1)
    assert found.waits.packed is None and found.waits.handover > 0.8
    assert not [v for v in evaluate(found).verdicts if v.code == "worker_handover" and v.confidence >= CERTAIN]


def test_what_waits_for_a_cpu_is_no_handover_and_keeps_no_loop_from_being_computing():
    late = summary(waiting(handover=0.3, packed=0.04), {"busy": 0.2})
    assert [v.code for v in evaluate(late).verdicts] == ["compute_bound"]
    packed = summary(waiting(handover=0.3, packed=0.28), {"busy": 0.2})
    assert [v.code for v in evaluate(packed).verdicts] == ["worker_handover"]


def test_packing_that_a_full_machine_stretches_is_named_next_to_a_computing_loop():
    found = evaluate(summary(waiting(handover=0.3, packed=0.2, packed_cpu=0.04), {"busy": 0.2})).verdicts
    assert [v.code for v in found] == ["compute_bound", "worker_handover"]
    assert found[1].share == pytest.approx(0.2) and not [v for v in found if v.confidence >= CERTAIN]


def test_a_lack_of_cpus_stretches_packing_and_unpacking_as_all_work():
    """Process 1 waits for a CPU as long as it runs, like its worker: see test_signals."""
    works = [(200 * task + 0.2, 0.5) for task in range(TASKS)]
    packs = [(200 * task + 60, 30.0, 10.0) for task in range(TASKS)]
    found = run([90.0] * TASKS, 110.0, works, packs, 5.0, 5.0)
    assert found.waits.packed_cpu == pytest.approx(15 / 200, rel=0.1)
    assert found.waits.packed == pytest.approx(2 * 15 / 200, rel=0.1)


def test_the_work_of_handing_over_is_not_hidden_by_busy_workers():
    """Pure waiting is attributed to making later batches, packing and unpacking are not."""
    shares = {v.code: v.share for v in evaluate(summary(waiting(handover=0.5, packed=0.2), {"busy": 0.96})).verdicts}
    assert shares["worker_handover"] == pytest.approx(0.2) and shares["cpu_decode"] == pytest.approx(0.3)


def test_packing_that_waits_for_a_cpu_is_held_up_by_the_work_of_busy_workers():
    waits = waiting(handover=0.5, packed=0.4, packed_cpu=0.1)
    shares = {v.code: v.share for v in evaluate(summary(waits, {"busy": 0.96})).verdicts}
    assert shares["worker_handover"] == pytest.approx(0.1) and shares["cpu_decode"] == pytest.approx(0.4)


@pytest.mark.parametrize("epochs", [1, 2])
def test_workers_that_stop_when_the_run_ends_are_paid_once(epochs):
    main, at = [], 0.0
    for epoch in range(epochs):
        passed = loop(0, [1.0] * 40, begin=at)
        passed[0] = event(events.ITER, at, 0.5, b=epoch)
        end = passed[-1][2] / MS + passed[-1][3] / MS
        main += [*passed, event(events.LAST, end, 40)]
        at = end + 41
    found = timeline.summarise(recording([record_of(1, 0, main), worker(2, 1, 1, 0.1, 40)]))
    assert (found.waits.startup == 0.0) is (epochs == 1)


def test_a_loader_whose_workers_were_not_seen_is_not_judged_as_if_it_had_none():
    main = record_of(1, 0, loop(0, [8.0] * 30, 2.0))
    whole = recording([main], [{"pid": 1, "number": 0, "num_workers": 2}])
    found = timeline.summarise(whole)
    diagnosis = evaluate(found)
    assert "workers" in found.missing
    assert diagnosis.verdicts == [] and diagnosis.more_workers is None
    abstained = [a.code for a in diagnosis.abstained]
    assert {"python_main_process", "cpu_transform", "worker_handover", "worker_startup"} <= set(abstained)
    assert len(set(abstained)) == len(abstained)
    whole.loaders[0]["num_workers"] = 0
    assert "workers" not in timeline.summarise(whole).missing
    computing = recording([record_of(1, 0, loop(0, [0.1] * 30, 9.9))], [{"pid": 1, "number": 0, "num_workers": 2}])
    assert [v.code for v in evaluate(timeline.summarise(computing)).verdicts] == ["compute_bound"]
