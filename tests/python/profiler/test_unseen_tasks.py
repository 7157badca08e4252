# SPDX-License-Identifier: Apache-2.0
"""A worker records some of its short tasks: the results equal those for all tasks."""

import random
from dataclasses import dataclass, field

import pytest
from test_sampling import sees
from test_signals import MS, event, record_of, recording

from feedline.profiler.probe import events
from feedline.profiler.probe.events import Total
from feedline.profiler.probe.sampling import WorkSampler
from feedline.profiler.summary import timeline
from feedline.profiler.summary.batch_times import times_of_tasks

US = 1_000
TASKS = 6_000


@dataclass
class Made:
    """A batch: the worker that made it, and the times at which it was made and packed; ns."""

    worker: int
    begin: int
    end: int
    pack: int
    packed: int


@dataclass
class Worker:
    free: int = 0  # when it may begin its next task
    sent: int = 0  # when its sending thread is through
    made: list[Made] = field(default_factory=list)


def simulated(making, packing, step_ns, workers=2, held=4):
    """Returns (waits as (begin, end), batches), as in the model of a loop; `making`, `packing`: ns by number."""
    workers_of_loader = [Worker(sent=1) for _ in range(workers)]
    given, now, waits, batches = [0] * TASKS, MS, [], []
    for number in range(TASKS):
        worker = workers_of_loader[number % workers]
        begin = max(worker.free, given[number], MS // 2)
        end = begin + making(number)
        pack = max(end, worker.sent)
        worker.free, worker.sent = end, pack + packing(number)
        batches.append(Made(number % workers, begin, end, pack, worker.sent))
        received = max(now, worker.sent + 300 * US)
        waits.append((now, received))
        if number + held < TASKS:
            given[number + held] = received
        now = received + step_ns
    return waits, batches


def loop_record(waits, level):
    """The loop's process, at a level of its pace."""
    pace, found, stride, ended = WorkSampler(), [event(events.ITER, 0, 0.5)], 1, 0
    pace.level = level
    for number, (begin, end) in enumerate(waits):
        if number > 1 and not sees(pace, number):
            stride += 1
            continue
        if number:
            found.append((events.STEP, 1, ended, begin - waits[number - 1][1], 0, 0, stride))
        found.append((events.WAIT, 1, begin, end - begin, 10 * US, 0, number))
        stride = 1
    unpacked = Total(len(waits), 10 * US * len(waits), 10 * US * len(waits))
    return record_of(1, 0, found, {events.UNPICKLE: unpacked})


def worker_record(batches, worker, level):
    """A worker, at a level of its pace, as its hooks record it; tasks of 10 ms and more count as late."""
    pace, found, packs, unseen = WorkSampler(), [event(events.READY, 0, 0.1, a=1, b=events.WORKERS)], [], 0
    pace.level = level
    own = [(number, batch) for number, batch in enumerate(batches) if batch.worker == worker]
    reported = []  # of the recorded ones: when they were made, and until when the packing of others is recorded
    for number, batch in own:
        wall = batch.end - batch.begin
        late = level > 0 and wall >= 10 * MS
        if not late and not sees(pace, number):
            unseen += 1
            continue
        found.append((events.LATE_WORK if late else events.WORK, 1, batch.begin, wall, wall, number, wall * 9 // 10))
        reported.append((batch.end, 3 * batch.packed - 2 * batch.pack))
        packs.append((events.PICKLE_BESIDE if late else events.PICKLE, batch))
        if unseen and not late:
            found.append((events.UNSEEN_WORK, 1, batch.end - unseen * wall, unseen * wall, unseen * wall, unseen, 0))
            unseen = 0
    seen = {id(batch) for _, batch in packs}
    for _, batch in own:
        overlaps = any(made <= batch.packed and batch.pack <= until for made, until in reported)
        if id(batch) not in seen and overlaps:
            packs.append((events.PICKLE_BESIDE, batch))
    for kind, batch in packs:
        took = batch.packed - batch.pack
        found.append((kind, 2, batch.pack, took, took, 1000, 0))
    return record_of(10 + worker, 1, found, totals_of(found))


def totals_of(found):
    totals = {}
    for kind, _, _, wall, cpu, a, _ in found:
        totals[kind] = totals.get(kind, Total()) + Total(1, wall, cpu, wall, a)
    if events.WORK in totals:
        totals[events.FETCH] = totals[events.WORK]
    return totals


def summaries(making, packing, step_ns, loop_level, worker_level, all_level=0):
    """Returns (all tasks recorded, and waits at `all_level`; a part of both)."""
    waits, batches = simulated(making, packing, step_ns)
    found = []
    for levels in ((all_level, 0), (loop_level, worker_level)):
        workers_of_loader = [worker_record(batches, worker, levels[1]) for worker in range(2)]
        whole = recording(
            [loop_record(waits, levels[0]), *workers_of_loader], [{"pid": 1, "number": 0, "num_workers": 2}]
        )
        found.append(timeline.summarise(whole))
    return found


def alike(found, all_seen, within=0.03):
    for name in ("production", "straggler", "handover", "packed", "step"):
        assert getattr(found.waits, name) == pytest.approx(getattr(all_seen.waits, name), abs=within), name


def drawn(low, high, seed):
    draw = random.Random(seed)
    times = [draw.randint(low, high) for _ in range(TASKS)]
    return times.__getitem__


LEVELS = [(1, 1), (0, 2), (3, 3), (4, 2), (2, 4)]


@pytest.mark.parametrize(("loop_level", "worker_level"), LEVELS)
def test_waits_for_unseen_tasks_are_booked_like_those_that_were_seen(loop_level, worker_level):
    """Returns the production and packing of batches that two workers finish, alternating between long and short
    ones.
    """

    more = drawn(0, MS, 1)

    def making(number):
        return (3 * MS if number % 4 < 2 else MS) + more(number)

    all_seen, found = summaries(making, drawn(300 * US, 900 * US, 2), 500 * US, loop_level, worker_level)
    assert all_seen.waits.production > 0.2 and all_seen.waits.handover > 0.1
    alike(found, all_seen, 0.05)
    assert found.making.batches == pytest.approx(TASKS, abs=2**worker_level * 4)
    assert found.making.wall_ms == pytest.approx(all_seen.making.wall_ms, rel=0.05)
    assert found.making.busy == pytest.approx(all_seen.making.busy, rel=0.08)
    assert found.making.pickle_ms == pytest.approx(all_seen.making.pickle_ms, rel=0.08)


@pytest.mark.parametrize(("loop_level", "worker_level"), LEVELS)
def test_late_tasks_represent_themselves(loop_level, worker_level):
    """One batch in a hundred takes 40 ms, because of one sample; the others take 200 us."""

    def making(number):
        return 40 * MS if number % 100 == 57 else 200 * US

    packing = drawn(50 * US, 150 * US, 3)
    all_seen, found = summaries(making, packing, MS, loop_level, worker_level, all_level=loop_level)
    assert all_seen.waits.straggler > 0.1
    alike(found, all_seen, 0.01)
    assert found.making.wall_ms == pytest.approx(all_seen.making.wall_ms, rel=0.02)
    assert found.making.batches == pytest.approx(TASKS, abs=2**worker_level * 4)


def test_batches_whose_packing_was_not_seen_are_no_part_of_its_mean():
    """Each pack of 2 ms waits for one or two packs before it; for recorded ones, all of this is recorded."""
    all_seen, found = summaries(lambda _: 100 * US, lambda _: 2 * MS, 100 * US, 2, 3)
    assert all_seen.waits.packed > 0.6
    alike(found, all_seen, 0.03)
    assert found.making.pickle_ms == pytest.approx(2.0)


def test_a_number_that_was_seen_in_the_epoch_before_is_not_this_epochs_batch():
    loop, worker, at = [], [event(events.READY, 0, 0.1, a=1)], 1.0
    for epoch in range(2):
        loop.append(event(events.ITER, at, 0.5, b=epoch))
        for number in range(20):
            begin = at + 1 + 10 * number
            loop += [event(events.WAIT, begin, 8, b=number), event(events.STEP, begin + 8, 2, b=1)]
            if epoch == 0 or number % 4 == 0:  # made while the loop waits
                worker.append(event(events.WORK, begin, 7.5, a=number))
                worker += [event(events.UNSEEN_WORK, begin, 7.5 * 3, a=3)] * (epoch and number > 0)
        at += 250
    whole = recording([record_of(1, 0, loop), record_of(2, 1, worker, totals_of(worker))])
    assert timeline.summarise(whole).waits.handover < 0.06  # all of the second epoch's waits, if they counted as made


def worker_that_saw(batches, seen):
    """`batches`: (begin, ms, longest sample, late) by number; those in `seen` are recorded, and so are all late
    ones.
    """
    found, unseen = [event(events.READY, 0, 0.1, a=1)], 0
    for number, (begin, ms, longest, late) in enumerate(batches):
        if late:
            found.append(event(events.LATE_WORK, begin, ms, a=number, b=int(longest * MS)))
        elif number in seen:
            found.append(event(events.WORK, begin, ms, a=number))
            found += [event(events.UNSEEN_WORK, begin, unseen * ms, a=unseen)] * (unseen > 0)
            unseen = 0
        else:
            unseen += 1
    return record_of(2, 1, found, totals_of(found))


def loop_that_waits(waits_ms, step_ms):
    found, at, begins = [event(events.ITER, 0, 0.5)], 1.0, []
    for number, wait_ms in enumerate(waits_ms):
        begins.append(at)
        found += [event(events.WAIT, at, wait_ms, b=number), event(events.STEP, at + wait_ms, step_ms, b=1)]
        at += wait_ms + step_ms
    return record_of(1, 0, found), begins


def test_a_batch_that_was_not_seen_and_waits_for_a_late_one_to_be_made_is_held_up_by_it():
    """Every tenth takes 80 ms, because of one sample; the batch before it is already made, and is sent afterwards."""
    waits = [80.0 if number % 10 == 8 else 0.2 for number in range(200)]
    loop, begins = loop_that_waits(waits, 10.0)
    batches = [(begins[number] - 1, 0.5, 0.0, False) for number in range(200)]
    for number in range(9, 200, 10):
        batches[number] = (begins[number - 1], 80.0, 79.0, True)
    seen = range(3, 200, 8)  # none of the delayed ones
    waited = timeline.summarise(recording([loop, worker_that_saw(batches, seen)])).waits
    assert waited.straggler == pytest.approx(8.0 / 18.0, abs=0.03)


def test_what_a_late_batch_was_waited_for_reports_nothing_of_unseen_ones():
    """Its samples were not recorded: it counts as production. All others were made in time."""
    waits = [40.0 if number % 50 == 25 else 1.0 for number in range(200)]
    loop, begins = loop_that_waits(waits, 2.0)
    batches = [(begin - 2, 1.0, 0.0, False) for begin in begins]
    for number in range(25, 200, 50):
        batches[number] = (begins[number], 39.9, 0.0, True)
    waited = timeline.summarise(recording([loop, worker_that_saw(batches, range(1, 200, 4))])).waits
    whole = 200 * 2 + 196 + 4 * 40
    assert waited.production == pytest.approx(4 * 40 / whole, abs=0.02)
    assert waited.handover == pytest.approx(196 / whole, abs=0.02)


def test_packing_of_others_that_a_seen_batch_waited_for_is_packing():
    loop, begins = loop_that_waits([10.0] * 40, 1.0)
    loop.totals[events.UNPICKLE] = Total(40, 0, 0)
    found = [event(events.READY, 0, 0.1, a=1)]
    for number, begin in enumerate(begins):
        if number % 2:
            found += [event(events.WORK, begin - 1, 0.5, a=number), event(events.UNSEEN_WORK, begin - 1, 0.5, a=1)]
            found.append(event(events.PICKLE_BESIDE, begin, 7, cpu_ms=7))
            found.append(event(events.PICKLE, begin + 7, 1, cpu_ms=1))
    waited = timeline.summarise(recording([loop, record_of(2, 1, found, totals_of(found))])).waits
    assert waited.packed_cpu == pytest.approx(8 / 11, abs=0.03)


def test_unseen_tasks_are_as_others_in_the_order_of_batches():
    found = [event(events.WORK, 10 * n, 1 + n % 2) for n in range(20)]
    found.insert(10, event(events.UNSEEN_WORK, 0, 60, a=60))
    found.append(event(events.LATE_WORK, 300, 50))
    times = times_of_tasks([record_of(2, 1, found)])
    assert len(times) == 20 + 60 + 1
    mean = (sum(times) - max(times)) / 80
    assert times[-1] / mean == pytest.approx(50 / 1.5, rel=0.1)
    assert times_of_tasks([record_of(2, 1, found[:12])]) == ()  # too few were recorded to know their variation
