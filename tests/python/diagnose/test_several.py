# SPDX-License-Identifier: Apache-2.0
"""Several loaders in one loop, several ranks, several threads in a worker: each is judged by its own figures."""

from dataclasses import replace

import pytest
from summaries import BY_CAUSE, stages, summary, waiting
from test_signals import MS, event, record_of, recording
from watched import recorded, watched

from feedline.diagnose.verdict import CERTAIN, evaluate
from feedline.profiler.experiments import Experiments, Rung
from feedline.profiler.probe import events
from feedline.profiler.probe.events import Total
from feedline.profiler.summary import batch_production, timeline


def loop(loader, waits, step_ms=5, begin=0.0):
    """The events of one pass: each wait is for the next task."""
    found = [event(events.ITER, begin, 0.5, a=loader), event(events.PASS, begin + 0.5, 0, a=loader, b=loader + 1)]
    at = begin + 1
    for task, wait_ms in enumerate(waits):
        found.append(event(events.WAIT, at, wait_ms, a=loader, b=task))
        found.append(event(events.STEP, at + wait_ms, step_ms, a=loader, b=1))
        at += wait_ms + step_ms
    return found


def worker(pid, parent, started_by, work_ms, tasks):
    found = [event(events.READY, 0, 0.1, a=parent, b=events.WORKERS * started_by)]
    found += [event(events.WORK, task * 10 + 0.2, work_ms, a=task) for task in range(tasks)]
    total = Total(tasks, int(tasks * work_ms * MS), int(tasks * work_ms * MS))
    return record_of(pid, parent, found, {events.WORK: total, events.FETCH: total})


def test_of_loaders_side_by_side_the_one_that_is_waited_for_is_judged_with_its_own_workers():
    quick, slow = loop(0, [0.1] * 30, 9.9), loop(1, [8.0] * 30, 2.0)
    main = record_of(1, 0, [*quick, *slow])
    found = timeline.summarise(recording([main, worker(2, 1, 1, 0.5, 30), worker(3, 1, 2, 8.0, 30)]))
    assert found.waits.step < 0.3  # the slow one's
    assert found.making.wall_ms == pytest.approx(8.0) and found.making.batches == 30


def test_of_loaders_that_are_waited_for_alike_the_one_whose_batches_take_longest_to_make_is_judged():
    """The first loader is late for lack of a CPU; the other's batches are made during this wait."""
    late, slow = loop(0, [4.0] * 30, 6.0), loop(1, [3.0] * 30, 7.0)
    makers = [worker(2, 1, 1, 0.5, 30), worker(3, 1, 2, 8.0, 30)]
    found = timeline.summarise(recording([record_of(1, 0, [*late, *slow]), *makers]))
    assert found.making.wall_ms == pytest.approx(8.0)
    # two workers that are as slow as one worker of the other loader are not slower
    twice = [{"pid": 1, "number": 1, "num_workers": 2}, {"pid": 1, "number": 0, "num_workers": 1}]
    shared = [worker(2, 1, 1, 5.0, 30), worker(3, 1, 2, 8.0, 15), worker(4, 1, 2, 8.0, 15)]
    found = timeline.summarise(recording([record_of(1, 0, [*late, *slow]), *shared], twice))
    assert found.making.wall_ms == pytest.approx(5.0)
    # without workers, batches are made while the loop waits for them
    own = timeline.summarise(recording([record_of(1, 0, [*loop(0, [9.0] * 30, 3.0), *loop(1, [5.0] * 30, 7.0)]),
                                        worker(3, 1, 2, 8.0, 30)]))  # fmt: skip
    assert own.waits.step < 0.3


def test_a_short_loop_next_to_a_long_one_is_not_judged():
    main = record_of(1, 0, [*loop(0, [1.0] * 50), *loop(1, [8.0] * 3)])
    assert timeline.summarise(recording([main])).loop.steps == 50


@pytest.mark.parametrize(("second_ms", "alike"), [(10.0, True), (30.0, False)])
def test_a_rank_is_slow_only_where_its_batches_take_longer(second_ms, alike):
    ranks = []
    for rank, (made_ms, wait_ms) in enumerate([(10.0, 0.5), (second_ms, 9.0)]):
        pid = 10 * (rank + 1)
        ranks.append(record_of(pid, 1, loop(0, [wait_ms] * 30, 9.5 - wait_ms + 1)))
        ranks.append(worker(pid + 1, pid, 1, made_ms, 30))
    whole = recording(ranks)
    whole.loaders[:] = [{"pid": 10 * (r + 1), "number": 0, "rank": str(r), "num_workers": 1} for r in range(2)]
    found = timeline.summarise(whole)
    assert found.of_ranks.ranks_alike is alike and len(found.of_ranks.ranks) == 2
    assert ("straggling_rank" in {v.code for v in evaluate(found).verdicts}) is not alike


@pytest.mark.parametrize("longest", [0, 1])
def test_the_other_ranks_wait_for_a_slow_one_in_their_steps(longest):
    """Two ranks without workers; either loop may be observed for longer."""
    ranks, waits_ms = [], (0.5, 18.0)
    for rank, wait_ms in enumerate(waits_ms):
        passed = loop(0, [wait_ms] * 30, 20.0 - wait_ms + (rank == longest) * 0.1)
        made = Total(30, int(30 * wait_ms * MS), int(30 * wait_ms * MS))
        ranks.append(record_of(10 + rank, 1, passed, {events.FETCH: made}))
    whole = recording(ranks)
    whole.loaders[:] = [{"pid": 10 + rank, "number": 0, "rank": str(rank), "num_workers": 0} for rank in range(2)]
    first = evaluate(timeline.summarise(whole)).verdicts[0]
    assert first.code == "straggling_rank" and first.share == pytest.approx(0.875, abs=0.05)
    assert first.evidence[0].startswith("rank 1 waits ")


def test_experiments_on_another_loader_are_not_this_ones():
    quick, slow = loop(0, [0.1] * 30, 9.9), loop(1, [8.0] * 30, 2.0)
    whole = replace(recording([record_of(1, 0, [*quick, *slow])]), experiments=Experiments([Rung(1, 5, 4, 6, 9)]))
    whole.loaders[:] = [{"pid": 1, "number": 0, "copied": True}, {"pid": 1, "number": 1}]
    assert timeline.summarise(whole).ladder.rungs == {}
    whole.loaders[:] = [{"pid": 1, "number": 0}, {"pid": 1, "number": 1, "copied": True}]
    assert timeline.summarise(whole).ladder.rungs == {1: 5}


def test_what_next_does_itself_is_the_loops_process():
    measured = summary(waiting(handover=0.5), {"next_cpu_ms": 9.0, "busy": 0.1})
    first = evaluate(measured).verdicts[0]
    assert first.code == "python_main_process" and first.share == pytest.approx(0.45, abs=0.01)
    assert "sampler" in first.evidence[0] and "order" in first.fix
    assert "python_main_process" not in {v.code for v in evaluate(BY_CAUSE["worker_handover"]).verdicts}


def test_next_that_waits_for_a_cpu_is_uncertain_and_under_a_quota_the_quota_is_the_cause():
    waits, making = waiting(handover=0.3, packed=0.3, packed_cpu=0.05), {"next_cpu_ms": 0.8, "busy": 0.2}
    late = {v.code: v for v in evaluate(summary(waits, making, {"step_delayed": 0.9})).verdicts}
    assert late["python_main_process"].share == pytest.approx(0.3)
    assert late["python_main_process"].confidence < CERTAIN
    idle = evaluate(summary(waits, {**making, "next_cpu_ms": 0.1}, {"step_delayed": 0.9})).verdicts
    assert "python_main_process" not in {v.code for v in idle}
    quota = {"step_delayed": 0.9, "throttled": 0.5, "quota_cpus": 0.6, "used_cpus": 0.59, "cpus": 0.6}
    found = evaluate(summary(waits, {**making, "busy": 0.9, "delayed": 0.7}, quota)).verdicts
    assert found[0].code == "cpu_quota"
    assert {v.code: v.share for v in found}["python_main_process"] == pytest.approx(0.056, abs=0.001)


def test_time_in_which_threads_of_a_worker_run_is_no_waiting_for_storage():
    def sum_of(kind):
        return {events.FETCH: Total(10, 1000 * MS, 50 * MS), events.DETAILED_FETCH: Total(10, 1000 * MS, 50 * MS),
                events.SAMPLE: Total(80, 990 * MS, 45 * MS)}.get(kind, Total())  # fmt: skip

    assert batch_production.stages_of(sum_of, 0.0, True)["storage"] > 0.9
    shared = batch_production.stages_of(sum_of, 0.0, True, other_cpu=0.9)
    assert shared["python"] > 0.9 and shared["storage"] < 0.1
    assert sum(shared.values()) == pytest.approx(1)
    # a thread that waits three times as long for a CPU as it runs takes four times its CPU time
    busy = batch_production.stages_of(sum_of, 3.0, True, other_cpu=0.22)
    assert busy["storage"] < 0.2 < 0.7 < busy["python"]
    # on a busy machine, all threads run for a small part of the time
    crowded = batch_production.stages_of(sum_of, 16.0, True, other_cpu=0.06)
    assert crowded["storage"] < 0.1
    assert batch_production.stages_of(sum_of, 0.0, True, other_cpu=0.04)["storage"] > 0.9


SOURCE = """
import torch
from concurrent.futures import ThreadPoolExecutor
class Samples(torch.utils.data.Dataset):
    kept = None
    def __len__(self): return 64
    def __getitem__(self, i):
        if {again} or self.kept is None:
            self.kept = ThreadPoolExecutor(2)
        return self.kept.submit(torch.tensor, i).result()
if __name__ == "__main__":
    for batch in torch.utils.data.DataLoader(Samples(), batch_size=4, num_workers=1):
        pass
"""


@pytest.mark.parametrize("again", [True, False])
def test_threads_are_a_nested_pool_where_they_are_made_again_and_again(tmp_path, again):
    pytest.importorskip("torch", reason="torch, whose loader is watched, is not installed")
    status, _, _, found = watched(tmp_path, SOURCE.format(again=again), "--quick")
    making = found["summary"]["making"]
    assert status == 0 and (making["nested_pools"] > 0) is again and making["collating_pools"] == 0


POOLS_OF_COLLATION = """
import multiprocessing.pool, time, torch
def collate(samples):
    with multiprocessing.pool.ThreadPool(2) as pool:
        return torch.tensor(pool.map(lambda sample: time.sleep(0.01) or sample, samples))
if __name__ == "__main__":
    for batch in torch.utils.data.DataLoader(range(240), 4, num_workers=1, collate_fn=collate): pass
"""


def test_pools_that_collation_makes_are_nested_pools(tmp_path):
    pytest.importorskip("torch", reason="torch, whose loader is watched, is not installed")
    status, _, _, found = watched(tmp_path, POOLS_OF_COLLATION, "--quick")
    making = found["summary"]["making"]
    assert status == 0 and making["nested_pools"] > 0 and making["collating_pools"] == 1
    assert found["verdicts"][0]["cause"] == "nested_pool"


@pytest.mark.parametrize("collating, first", [(1.0, "nested_pool"), (0.0, "collate")])
def test_time_of_collation_is_that_of_pools_only_if_it_makes_them(collating, first):
    pools = {"stages": stages(collate=0.9, python=0.1), "nested_pools": 40, "collating_pools": collating}
    assert evaluate(summary(waiting(production=0.5), pools)).verdicts[0].code == first


TWO = """
import torch
class Samples(torch.utils.data.Dataset):
    def __init__(self, count): self.count = count
    def __len__(self): return self.count
    def __getitem__(self, i): return torch.zeros(4)
if __name__ == "__main__":
    train = torch.utils.data.DataLoader(Samples(160), 4, num_workers=1)
    held = torch.utils.data.DataLoader(Samples(400), 40, num_workers=1)
    for batch in train: torch.zeros(100).sum()
    for batch in held: pass
"""


def test_workers_are_distinguished_by_the_loader_that_started_them(tmp_path):
    pytest.importorskip("torch", reason="torch, whose loader is watched, is not installed")
    status, _, _, found = watched(tmp_path, TWO, "--quick")
    assert status == 0
    assert found["summary"]["making"]["batches"] in (40, 10)  # for one of them, and not for both


NESTED = """
import torch
class Numbers(torch.utils.data.Dataset):
    def __len__(self): return 40
    def __getitem__(self, index): return torch.tensor(index)
class Around(torch.utils.data.IterableDataset):
    def __iter__(self):
        yield from torch.utils.data.DataLoader(Numbers(), batch_size=2, num_workers=1)
if __name__ == "__main__":
    for batch in torch.utils.data.DataLoader(Around(), batch_size=2):
        pass
"""


def test_a_worker_that_is_forked_inside_next_is_in_no_next_itself(tmp_path):
    """It unpickles its tasks: a hook for each of them was most of the overhead."""
    pytest.importorskip("torch", reason="torch, whose loader is watched, is not installed")
    processes = recorded(tmp_path, NESTED).processes
    (worker,) = (process for process in processes if events.WORK in process.totals)
    assert events.UNPICKLE not in worker.totals
