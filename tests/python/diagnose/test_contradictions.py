# SPDX-License-Identifier: Apache-2.0
"""No verdict is certain if it contradicts a figure of the same run: each rule has a case that depends on it alone."""

from dataclasses import replace

import pytest
from summaries import BY_CAUSE, HALF, IN_FILES, but, stages, summary, waiting

from feedline.diagnose.causes import named, registered
from feedline.diagnose.rules import contradictions
from feedline.diagnose.verdict import CERTAIN, evaluate

READING = {"stages": stages(storage=1.0), "cpu_ms": 2.0}
DISK = {"device_share": 1.0, "read_bytes_per_sample": 12e3, "read_bytes_per_s": 4.5e6, "disk_ceiling_bytes_per_s": 50e6}
FULL = {**DISK, "read_bytes_per_sample": 500e3, "read_bytes_per_s": 480e6, "disk_ceiling_bytes_per_s": 500e6}
STRAGGLES = {"slowest_sample_ms": 400.0, "slowest_sample": 7}
FLAT = {"rungs": {4: 40.0, 8: 90.0}, "rung_intervals": {4: (39.0, 41.0), 8: (88.0, 92.0)}}
STOPPED = {"throttled": 0.5, "quota_cpus": 1.5, "used_cpus": 1.4}
PACKED = {"pickle_ms": 4.0, "unpickle_ms": 4.0, "message_bytes": 5e5}

# Reason for a rule: (a run that is certain without the contradiction, the contradiction, the cause)
CASES = {
    "the location of the files does not matter": (
        summary(HALF, READING, {**DISK, "disk_small_read_ms": 2.5}),
        lambda run: replace(run, host=replace(run.host, cold_share=0.98)),
        "small_files",
    ),
    "reads are fast": (
        summary(HALF, READING, {**DISK, "disk_small_read_ms": 2.5}),
        lambda run: replace(run, host=replace(run.host, disk_small_read_ms=0.08, disk_ceiling_bytes_per_s=500e6)),
        "small_files",
    ),
    "the disk is not saturated": (
        summary(HALF, READING, FULL),
        lambda run: but(run, **FLAT),
        "storage_bandwidth",
    ),
    "the quota was not used up": (
        summary(HALF, host=STOPPED),
        lambda run: replace(run, host=replace(run.host, used_cpus=0.5)),
        "cpu_quota",
    ),
    "no pages are reread": (
        summary(HALF, host={"memory_pressure": 0.4, "memory_events": 12, "in_kernel": 0.1}),
        lambda run: replace(run, host=replace(run.host, major_faults_per_s=2.0)),
        "memory_pressure",
    ),
    "more workers do not help": (
        summary(HALF, {"busy": None}, workers=0, loader={**BY_CAUSE["python_main_process"].loader, "num_workers": 0}),
        lambda run: but(run, rungs={0: 12.0, 2: 12.1}, rung_intervals={0: (11.9, 12.1), 2: (12.0, 12.2)}),
        "python_main_process",
    ),
    "fewer workers are slower": (
        BY_CAUSE["oversubscribed"],
        lambda run: but(run, rungs={4: 20.0, 16: 60.0}, rung_intervals={4: (19.0, 21.0), 16: (58.0, 62.0)}),
        "oversubscribed",
    ),
    "workers start quickly": (
        BY_CAUSE["worker_startup"],
        lambda run: but(run, tried={"persistent_workers=True": (1.0, 0.95, 1.05)}),
        "worker_startup",
    ),
    "batches are passed quickly": (
        summary(waiting(handover=0.5, packed=0.5, packed_cpu=0.5), {**PACKED, "busy": 0.2}),
        lambda run: replace(run, making=replace(run.making, sent_ms=0.1, received_ms=0.1)),
        "worker_handover",
    ),
    "the loader by itself is slower than the loop": (
        summary(loop_s=2.0),
        lambda run: but(run, rungs={4: 20.0}, rung_intervals={4: (19.0, 21.0)}),
        "compute_bound",
    ),
    "no sample is slow": (
        summary(waiting(straggler=0.5), STRAGGLES),
        lambda run: replace(run, making=replace(run.making, slowest_sample_ms=0.7)),
        "straggling_sample",
    ),
    "the CPUs were idle": (
        BY_CAUSE["cpu_decode"],
        lambda run: replace(run, host=replace(run.host, used_cpus=0.5)),
        "cpu_decode",
    ),
    "other programs used the CPUs": (
        summary(HALF, {"stages": stages(transform=1.0), "wall_ms": 20.0, "cpu_ms": 19.0}),
        lambda run: replace(run, host=replace(run.host, others_cpus=3.0)),
        "cpu_transform",
    ),
    "workers wait for other programs": (
        BY_CAUSE["oversubscribed"],
        lambda run: replace(run, host=replace(run.host, others_cpus=3.0, used_cpus=0.9)),
        "oversubscribed",
    ),
}


def found(measured, cause):
    return next(verdict for verdict in evaluate(measured).verdicts if verdict.code == cause)


def test_every_rule_has_a_case_and_every_cause_of_a_rule_is_one():
    assert set(CASES) == {name for cause in registered() for name in cause.contradicted}
    assert {cause.code for cause in registered() if cause.contradicted} <= set(BY_CAUSE)


@pytest.mark.parametrize("name", CASES)
def test_a_contradicted_cause_is_not_certain_promises_nothing_and_reports_why(name, monkeypatch):
    run, contradict, cause = CASES[name]
    assert found(run, cause).confidence >= CERTAIN, "without the contradiction"
    doubted = found(contradict(run), cause)
    assert doubted.confidence <= contradictions.MOST and doubted.gain[0] == 0.0
    assert doubted.against
    monkeypatch.delitem(named(cause).contradicted, name)
    assert found(contradict(run), cause).confidence > contradictions.MOST, "another rule speaks against it, too"


def test_cpus_of_other_programs_acquit_only_work_that_fits_without_them():
    """4 workers that need 80 ms for a batch of a 10 ms step are the limit on an idle machine, too."""
    busy = {"others_cpus": 3.0}
    assert found(summary(HALF, {"stages": stages(transform=1.0)}, busy), "cpu_transform").confidence >= CERTAIN
    few = summary(HALF, {"stages": stages(transform=1.0), "busy": 0.6}, busy, workers=1)
    doubted = found(few, "cpu_transform")
    assert doubted.confidence < CERTAIN and "with one more worker" in " ".join(doubted.against)


def test_waits_that_may_be_for_a_cpu_promise_nothing():
    blocked = BY_CAUSE["blocked_outside_files"]
    unknown = replace(blocked, making=replace(blocked.making, waited_for=None))
    assert found(unknown, "blocked_outside_files").gain[0] > 0
    doubted = found(replace(unknown, missing={"host": "the loop was too short"}), "blocked_outside_files")
    assert doubted.gain[0] == 0.0 and "may wait for a CPU" in " ".join(doubted.against)


@pytest.mark.parametrize(("used", "others", "certain"), [(2.2, 1.7, True), (1.6, 2.3, False)])
def test_workers_that_use_fewer_cpus_than_other_programs_may_wait_for_those(used, others, certain):
    crowd = BY_CAUSE["oversubscribed"]
    busy = replace(crowd, host=replace(crowd.host, cpus=3.0, used_cpus=used, others_cpus=others))
    assert (found(busy, "oversubscribed").confidence >= CERTAIN) == certain


def test_a_disk_that_the_cpus_keep_idle_is_not_forgotten():
    """The batches of 4 workers need 20 ms each; without other programs, they would read 5 times as fast."""
    busy = {"others_cpus": 3.0, "read_bytes_per_s": 200e6, "device_share": 1.0}
    run = summary(waiting(production=0.9), {"stages": stages(python=1.0)}, busy)
    assert found(run, "cpu_transform").confidence >= CERTAIN
    probed = replace(run, host=replace(run.host, disk_ceiling_bytes_per_s=400e6))
    doubted = found(probed, "cpu_transform")
    assert doubted.confidence < CERTAIN and "reached 400 MB/s" in " ".join(doubted.against)


def test_reads_that_a_disk_cannot_serve_so_fast_are_not_forgotten():
    """4 workers make 32 samples in 15 ms, or 2,133 per second: too many for reads of 2.5 ms."""
    busy = {"others_cpus": 3.0, "device_share": 1.0}
    run = summary(waiting(production=0.9), {"stages": stages(python=1.0), "wall_ms": 60.0, "cpu_ms": 60.0}, busy)
    for read_ms, certain in ((1.5, True), (2.5, False)):
        verdict = found(replace(run, host=replace(run.host, disk_small_read_ms=read_ms)), "cpu_transform")
        assert (verdict.confidence >= CERTAIN) is certain
        assert certain or "1600 samples/s with 4 at a time" in " ".join(verdict.against)


def test_a_waiting_run_on_a_busy_machine_has_too_few_workers():
    """It wants 3.9 of 4 CPUs as it waits for them; without the other programs, it would need less than half."""
    run = BY_CAUSE["too_few_workers"]
    waiting_for_cpus = replace(run, host=replace(run.host, wanted_cpus=3.9, used_cpus=0.5))
    assert "too_few_workers" not in {verdict.code for verdict in evaluate(waiting_for_cpus).verdicts}
    beside_others = replace(waiting_for_cpus, host=replace(waiting_for_cpus.host, others_cpus=3.5))
    assert evaluate(beside_others).verdicts[0].code == "too_few_workers"


@pytest.mark.parametrize("bytes_of_a_file, cause", [(9_000, "small_files"), (600 << 20, "storage_latency")])
def test_a_small_part_of_a_large_file_is_not_a_small_file(bytes_of_a_file, cause):
    files = {"files_seen": 1, "file_bytes": bytes_of_a_file}
    disk = {"read_bytes_per_sample": 9e3, "device_share": 0.9, "read_bytes_per_s": 3e6}
    assert evaluate(summary(HALF, READING, {**disk, **files})).verdicts[0].code == cause


@pytest.mark.parametrize("delayed, first", [(0.0, "worker_handover"), (0.75, "python_main_process")])
def test_a_sampler_takes_longer_while_it_waits_for_a_cpu(delayed, first):
    """next() needs 3 ms of CPU in a cycle of 20 ms. The loop waits for half of the cycle."""
    run = summary(waiting(handover=0.5, packed=0.5, packed_cpu=0.5), {**PACKED, "busy": 0.2, "next_cpu_ms": 3.0})
    run = replace(run, host=replace(run.host, step_delayed=delayed))
    assert evaluate(run).verdicts[0].code == first


@pytest.mark.parametrize("cause", ["storage_latency", "storage_bandwidth", "small_files"])
def test_waits_that_were_no_files_are_never_storages(cause):
    """20 ms of sleep and then a small file: its bytes came from the disk once, but took none of the time."""
    slept = {"waited_for": BY_CAUSE["blocked_outside_files"].making.waited_for}
    for disk in (DISK, FULL, {"device_share": 1.0, "read_bytes_per_sample": 12e3}):
        named = {verdict.code: verdict for verdict in evaluate(summary(HALF, {**READING, **slept}, disk)).verdicts}
        assert cause not in named and named["blocked_outside_files"].confidence >= CERTAIN
        assert "train.py:8" in " ".join(named["blocked_outside_files"].evidence)


def test_waits_that_were_not_sampled_prove_nothing():
    for disk in (DISK, FULL, {}):
        for verdict in evaluate(summary(HALF, {**READING, "waited_for": None}, disk)).verdicts:
            assert verdict.confidence < CERTAIN and "not observed" in " ".join(verdict.against)


def test_few_looks_are_certain_of_nothing():
    few = {"waited_for": replace(IN_FILES, looks=5)}
    first = evaluate(summary(HALF, {**READING, **few}, {**DISK, "disk_small_read_ms": 2.5})).verdicts[0]
    assert first.code == "small_files" and first.confidence < CERTAIN


def test_waits_of_both_kinds_are_two_causes_and_shards_help_with_one():
    both = replace(IN_FILES, kinds={"file": 0.5, "network": 0.5})
    run = summary(HALF, {**READING, "waited_for": both}, {**DISK, "disk_small_read_ms": 2.5}, workers=64)
    named = {verdict.code: verdict for verdict in evaluate(run).verdicts}
    assert named["small_files"].share == pytest.approx(0.25) == named["blocked_outside_files"].share
    whole = found(replace(run, making=replace(run.making, waited_for=IN_FILES)), "small_files")
    assert named["small_files"].gain[1] < whole.gain[1]


def test_more_workers_are_not_advised_against_a_lock_that_they_may_share():
    locked = replace(IN_FILES, kinds={"lock": 0.9, "file": 0.1})
    run = summary(HALF, {**READING, "waited_for": locked}, workers=1)
    assert "num_workers=" not in found(run, "blocked_outside_files").fix
    slept = replace(run, making=replace(run.making, waited_for=replace(locked, kinds={"sleep": 1.0})))
    assert "num_workers=" in found(slept, "blocked_outside_files").fix
