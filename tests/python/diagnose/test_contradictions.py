# SPDX-License-Identifier: Apache-2.0
"""No verdict is certain against a figure of the same run: each rule has a case that hangs on it alone."""

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

# What a rule is for: (a run that is certain without what contradicts it, the contradiction, the cause)
CASES = {
    "the files' location does not matter": (
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


@pytest.mark.parametrize("cause", ["storage_latency", "storage_bandwidth", "small_files"])
def test_waits_that_were_no_files_are_never_storages(cause):
    """20 ms of sleep and then a small file: its bytes came from the disk once, and its time did not go there."""
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
