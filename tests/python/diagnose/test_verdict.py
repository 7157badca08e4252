# SPDX-License-Identifier: Apache-2.0
"""Verdicts on generated summaries: every cause is reported, alone and together with another, and nothing is certain
without its signals.
"""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from summaries import (
    BESIDE_COMPUTING,
    BUSY,
    BY_CAUSE,
    EVEN,
    FLOAT32,
    HALF,
    but,
    copied,
    stages,
    summary,
    waiting,
    without,
)

from feedline.diagnose.verdict import CAUSES, CERTAIN, evaluate
from feedline.findings import severity_of
from feedline.profiler.summary.figures import Waits


def names(diagnosis):
    return [verdict.code for verdict in diagnosis.verdicts]


def test_the_summaries_here_cover_every_cause_that_is_judged():
    assert set(BY_CAUSE) | set(BESIDE_COMPUTING) == set(CAUSES)


@pytest.mark.parametrize("cause", BY_CAUSE)
def test_a_planted_cause_comes_first(cause):
    diagnosis = evaluate(BY_CAUSE[cause])
    assert names(diagnosis)[0] == cause
    first = diagnosis.verdicts[0]
    assert first.evidence and first.fix
    low, high = first.gain
    assert 0 <= low <= high
    # a loader that does not limit the rate is not at fault
    assert first.severity == ("note" if cause == "compute_bound" else severity_of(first.share))


# Other causes that these summaries show for certain, with their shares: the rest of the half that is spent waiting and
# is caused by decoding, or of the step.
BESIDE = {
    "oversubscribed": {"cpu_decode": 0.5 * (1 - 0.7)},
    "cpu_quota": {"cpu_decode": 0.5 * (1 - 0.5)},
    "loop_synchronisation": {"compute_bound": 0.98 * (1 - 0.6)},
    "host_to_device": {"compute_bound": 0.98 * (1 - 0.6)},
    "unpinned_copy": {"compute_bound": 0.98 * (1 - 0.6)},
    "blocking_copy": {"compute_bound": 0.98 * (1 - 0.6)},
}


@pytest.mark.parametrize("cause", BY_CAUSE)
def test_next_to_a_planted_cause_only_what_is_there_is_certain(cause):
    certain = {v.code: v.share for v in evaluate(BY_CAUSE[cause]).verdicts[1:] if v.confidence >= CERTAIN}
    assert certain == pytest.approx(BESIDE.get(cause, {}), abs=0.005)


def test_a_loop_that_waits_for_another_rank_is_not_certainly_computing():
    verdicts = {v.code: v for v in evaluate(BY_CAUSE["straggling_rank"]).verdicts}
    assert verdicts["compute_bound"].confidence < CERTAIN


def test_two_causes_are_both_named_with_their_shares():
    diagnosis = evaluate(summary(HALF, {"stages": stages(storage=0.6, decode=0.4), "cpu_ms": 9.0}))
    shares = {verdict.code: verdict.share for verdict in diagnosis.verdicts}
    assert shares["storage_latency"] == pytest.approx(0.3)
    assert shares["cpu_decode"] == pytest.approx(0.2)


def test_waits_of_different_kinds_are_distinguished():
    diagnosis = evaluate(summary(waiting(production=0.3, startup=0.2, border=0.1), {"startup_ms": 500.0}))
    assert names(diagnosis) == ["cpu_decode", "worker_startup", "epoch_border"]


def test_no_loop_abstains_from_everything():
    diagnosis = evaluate(None)
    assert diagnosis.verdicts == [] and [a.code for a in diagnosis.abstained] == list(CAUSES)


def test_few_steps_are_no_ground_for_certainty():
    assert all(v.confidence < CERTAIN for v in evaluate(but(BY_CAUSE["cpu_decode"], steps=5)).verdicts)


@pytest.mark.parametrize(
    ("signal", "causes", "host"),
    [
        ("throttled", {"cpu_quota"}, {"throttled": None}),
        ("pressure", {"memory_pressure"}, {"memory_pressure": None}),
        ("disk", {"storage_bandwidth"}, {"disk_ceiling_bytes_per_s": None}),
        ("io", {"small_files", "storage_bandwidth"}, {"read_bytes_per_s": None, "device_share": None}),
        ("host", {"cpu_quota", "memory_pressure", "shared_memory_limit"}, {"memory_pressure": None}),
        ("processes", {"oversubscribed", "too_few_workers"}, {"wanted_cpus": None, "used_cpus": None}),
    ],
)
def test_a_missing_signal_is_an_abstention(signal, causes, host):
    diagnosis = evaluate(without(BY_CAUSE["storage_latency"], signal, **host))
    assert causes <= {a.code for a in diagnosis.abstained}
    assert all(a.missing for a in diagnosis.abstained)


def test_without_stages_no_stage_is_blamed():
    diagnosis = evaluate(without(summary(HALF, {"stages": None}), "stages"))
    assert not {"cpu_decode", "cpu_transform", "collate", "storage_latency"} & set(names(diagnosis))
    assert {"cpu_decode", "cpu_transform", "collate", "storage_latency"} <= {a.code for a in diagnosis.abstained}


def test_other_programs_make_no_cause():
    """A machine that is busy with other work: finished batches wait for a CPU, and the loader is not the cause."""
    waits = waiting(handover=0.3)
    busy = summary(waits, {"busy": 0.2}, {"others_cpus": 3.9, "used_cpus": 0.2, "wanted_cpus": 0.9})
    assert names(evaluate(busy)) == ["compute_bound"]
    assert all(v.confidence < CERTAIN for v in evaluate(busy).verdicts)
    quiet = summary(waits, {"busy": 0.2}, {"others_cpus": 0.0, "used_cpus": 0.2, "wanted_cpus": 0.3})
    assert names(evaluate(quiet)) == ["worker_handover"]


def test_batches_that_arrive_late_from_busy_workers_wait_for_their_making():
    """The sending thread shares the interpreter with the next batch's Python code: it is late, but does not limit the
    rate.
    """
    late = summary(waiting(handover=0.5), {"stages": stages(python=1.0), "busy": 0.96, "delayed": 0.02})
    assert names(evaluate(late)) == ["cpu_transform"]
    idle = summary(waiting(handover=0.5), {"stages": stages(python=1.0), "busy": 0.3, "delayed": 0.02})
    assert names(evaluate(idle)) == ["worker_handover"]
    packing = {"stages": stages(python=1.0), "busy": 0.96, "pickle_ms": 3.0, "unpickle_ms": 3.0}
    assert names(evaluate(summary(waiting(handover=0.5), packing))) == ["worker_handover"]


def test_more_workers_will_not_help_when_the_cpus_are_used_up():
    full = evaluate(BY_CAUSE["cpu_decode"]).more_workers  # 4 workers on 4 CPUs, 79 ms of CPU per batch
    assert full is not None and full.startswith("more workers will not help") and "79.2 ms of CPU" in full
    room = evaluate(BY_CAUSE["too_few_workers"]).more_workers  # 2 workers
    assert room == "4 workers instead of 2 would help: 93% more batches per second (predicted, not measured)"


def test_the_measured_ladder_overrules_the_model():
    flat = but(BY_CAUSE["too_few_workers"], rungs={1: 26.0, 2: 50.0, 4: 51.0})
    diagnosis = evaluate(flat)
    assert diagnosis.more_workers is not None and diagnosis.more_workers.startswith("more workers will not help")
    assert names(diagnosis) == ["cpu_decode"]
    steep = evaluate(but(flat, rungs={1: 25.0, 2: 50.0, 4: 97.0}))
    first = steep.verdicts[0]
    assert first.code == "too_few_workers" and first.confidence >= CERTAIN and first.fix == "num_workers=4."


READING = {"stages": stages(storage=1.0), "cpu_ms": 2.0}
FROM_DISK = {"device_share": 1.0, "read_bytes_per_sample": 500e3, "read_bytes_per_s": 100e6}
SMALL = {"device_share": 1.0, "read_bytes_per_sample": 12e3, "read_bytes_per_s": 4.5e6, "disk_read_bytes": 12e3}


@pytest.mark.parametrize(
    ("host", "cause", "certain"),
    [
        ({**FROM_DISK, "disk_ceiling_bytes_per_s": 110e6}, "storage_bandwidth", True),
        ({**FROM_DISK, "disk_ceiling_bytes_per_s": 900e6}, "storage_latency", True),
        (FROM_DISK, "storage_latency", False),  # it was not measured whether the disk is saturated
        # 400 requests per second of any size
        ({**SMALL, "disk_ceiling_bytes_per_s": 4.8e6, "disk_small_read_ms": 2.5}, "small_files", True),
        # this many bytes per second in requests of any size: packing them saves nothing
        ({**SMALL, "disk_ceiling_bytes_per_s": 4.8e6, "disk_small_read_ms": 0.8}, "storage_bandwidth", True),
        ({**SMALL, "disk_ceiling_bytes_per_s": 50e6, "disk_small_read_ms": 0.1}, "small_files", True),
        (SMALL, "small_files", False),
        ({**SMALL, "files_seen": 0}, "storage_latency", False),  # starting a worker reads as much
        # the start reads a few pages from the disk, and samples read nothing
        ({**FROM_DISK, "read_bytes_per_sample": 150, "read_bytes_per_s": 50e3}, "storage_latency", False),
    ],
)
def test_a_disk_that_is_late_full_or_asked_too_often_is_distinguished(host, cause, certain):
    first = evaluate(summary(HALF, READING, host)).verdicts[0]
    assert first.code == cause and (first.confidence >= CERTAIN) == certain, first


def test_cpu_time_in_the_kernel_is_reading_if_samples_come_from_a_disk():
    making = {"stages": stages(storage=0.2, python=0.8), "cpu_ms": 64.0}
    disk = {**FROM_DISK, "disk_ceiling_bytes_per_s": 900e6, "in_kernel": 0.75}
    found = {v.code: v for v in evaluate(summary(HALF, making, disk)).verdicts}
    assert found["storage_latency"].share == pytest.approx(0.4) and found["cpu_transform"].share == pytest.approx(0.1)
    cached = {v.code: v for v in evaluate(summary(HALF, making, {**disk, "device_share": 0.0})).verdicts}
    assert cached["cpu_transform"].share == pytest.approx(0.4)


def test_files_below_a_kilobyte_are_small_files_if_each_sample_reads_one():
    tiny = {"device_share": 1.0, "read_bytes_per_sample": 700, "files_seen": 256, "file_bytes": 800}
    assert names(evaluate(summary(HALF, READING, tiny))) == ["small_files"]
    for other in ({"files_seen": 3}, {"file_bytes": 600 << 20}):  # starting a worker reads as much
        assert "small_files" not in names(evaluate(summary(HALF, READING, {**tiny, **other})))


def test_samples_of_many_reads_are_no_small_files_if_no_opened_file_was_seen():
    unseen = {**SMALL, "read_bytes_per_sample": 90e3, "files_seen": 0}
    for reads, code in ((2.5, "small_files"), (24.0, "storage_latency")):
        assert names(evaluate(summary(HALF, READING, {**unseen, "reads_per_sample": reads}))) == [code]


def test_a_disk_that_is_full_of_requests_gets_another_fix_than_one_that_is_full_of_bytes():
    full = {**FROM_DISK, "disk_ceiling_bytes_per_s": 110e6, "disk_read_bytes": 256e3}
    fixes = {ms: evaluate(summary(HALF, READING, {**full, "disk_small_read_ms": ms})).verdicts[0] for ms in (0.1, 2.4)}
    assert {one.code for one in fixes.values()} == {"storage_bandwidth"}
    assert fixes[0.1].fix.startswith("Read fewer bytes") and "requests" in fixes[2.4].fix
    assert any("requests are slow" in sentence for sentence in fixes[2.4].evidence)


def test_what_a_cold_cache_costs_speaks_for_or_against_the_disk():
    known = {**FROM_DISK, "disk_ceiling_bytes_per_s": 900e6}
    cold = evaluate(summary(HALF, READING, {**known, "cold_share": 0.4})).verdicts[0]
    assert any("40% of the batches" in sentence for sentence in cold.evidence)
    same = evaluate(summary(HALF, READING, {**known, "cold_share": 0.98})).verdicts[0]
    assert any("98% of the batches" in sentence for sentence in same.against)


def test_a_spent_quota_is_what_its_tasks_wait_for():
    limited = {"throttled": 0.2, "quota_cpus": 0.5, "used_cpus": 0.49, "cpus": 0.5, "wanted_cpus": 3.0}
    spent = {v.code: v for v in evaluate(summary(HALF, {"delayed": 0.8}, limited)).verdicts}
    assert spent["cpu_quota"].share == pytest.approx(0.4) and "oversubscribed" not in spent
    # other programs use the CPUs: the quota does not limit the run
    shared = {v.code: v for v in evaluate(summary(HALF, {"delayed": 0.8}, {**limited, "used_cpus": 0.2})).verdicts}
    assert shared["cpu_quota"].share == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("quota", "throttled", "used", "machine", "others", "first", "confidence"),
    [
        # measured: the same script with quotas that the neighbours leave room for, or not
        (0.3, 0.47, 0.295, 2.0, 1.71, "cpu_quota", 0.9),
        (0.5, 0.095, 0.461, 2.0, 1.54, "cpu_quota", 0.9),
        (0.55, 0.051, 0.46, 2.0, 1.54, "oversubscribed", 0.6),
        (0.6, 0.01, 0.444, 2.0, 1.54, "oversubscribed", 0.6),
        (1.0, 0.0, 0.377, 2.0, 1.63, "oversubscribed", 0.6),
        # 64 CPUs, of which other programs use 10: they do not matter
        (0.55, 0.051, 0.46, 64.0, 10.0, "cpu_quota", 0.9),
    ],
)
def test_a_quota_is_the_cause_if_it_limits_the_run_more_than_other_programs_do(
    quota, throttled, used, machine, others, first, confidence
):
    host = {"quota_cpus": quota, "cpus": quota, "throttled": throttled, "used_cpus": used, "wanted_cpus": 4.9}
    host |= {"machine_cpus": machine, "others_cpus": others}
    found = {v.code: v for v in evaluate(summary(HALF, {"delayed": 0.9}, host)).verdicts}
    named = next(iter(found.values()))
    assert named.code == first and named.confidence == pytest.approx(confidence), found
    if "cpu_quota" in found and first != "cpu_quota":
        minor = found["cpu_quota"]
        assert minor.confidence < CERTAIN and minor.gain == (0.0, pytest.approx(throttled / (1 - throttled), abs=1e-3))
    if first == "cpu_quota" and machine == 2.0:
        assert named.gain[0] == pytest.approx(throttled / (1 - throttled), abs=1e-3) and named.gain[1] > 1
    if first == "oversubscribed":
        assert any(
            "the cgroup's quota of" in sentence and "is not the limit" in sentence for sentence in named.evidence
        )


def test_a_quotas_stops_are_not_taken_for_storage():
    stopped = summary(HALF, {"stages": stages(storage=0.6, python=0.4)}, {"throttled": 0.3, "quota_cpus": 1.5})
    shares = {v.code: v.share for v in evaluate(stopped).verdicts}
    assert shares["cpu_quota"] == pytest.approx(0.15) and shares["storage_latency"] == pytest.approx(0.15)


def test_memory_pressure_takes_what_the_kernel_spends_on_finding_pages():
    thrashing = {"memory_pressure": 0.2, "memory_events": 9, "io_pressure": 0.2, "in_kernel": 0.9}
    split = {"stages": stages(storage=0.5, python=0.5)}
    shares = {v.code: v.share for v in evaluate(summary(HALF, split, thrashing)).verdicts}
    assert shares["memory_pressure"] == pytest.approx(0.25 + 0.9 * 0.25)
    reading = {v.code: v.share for v in evaluate(summary(HALF, split, {**thrashing, "io_pressure": 0.8})).verdicts}
    assert reading["memory_pressure"] < shares["memory_pressure"]
    usual = {v.code: v.share for v in evaluate(summary(HALF, split, {**thrashing, "in_kernel": 0.05})).verdicts}
    assert usual["memory_pressure"] == pytest.approx(0.25)


share = st.floats(0, 1)


@st.composite
def summaries(draw):
    parts = [draw(st.floats(0, 1)) for _ in range(6)]
    whole = sum(parts) or 1.0
    waits = Waits(*(part / whole for part in parts)) if sum(parts) else Waits()
    split = [draw(st.floats(0.001, 1)) for _ in EVEN]
    by_stage = draw(st.sampled_from([None, dict(zip(EVEN, [s / sum(split) for s in split], strict=True))]))
    maybe = st.one_of(st.none(), share)
    making = {
        "stages": by_stage,
        "busy": draw(maybe),
        "delayed": draw(maybe),
        "wall_ms": draw(st.floats(0, 1e4)),
        "cpu_ms": draw(st.floats(0, 1e4)),
        "pickle_ms": draw(st.floats(0, 100)),
        "nested_pools": draw(st.integers(0, 3)),
    }
    host = {
        "cpus": draw(st.floats(0.1, 128)),
        "wanted_cpus": draw(st.one_of(st.none(), st.floats(0, 200))),
        "others_cpus": draw(st.one_of(st.none(), st.floats(0, 200))),
        "throttled": draw(maybe),
        "memory_pressure": draw(maybe),
        "shared_memory_used": draw(maybe),
        "in_kernel": draw(maybe),
        "memory_events": draw(st.sampled_from([None, 0, 5])),
        "quota_cpus": draw(st.one_of(st.none(), st.floats(0.1, 8))),
        "disk_ceiling_bytes_per_s": draw(st.one_of(st.none(), st.floats(0, 1e10))),
        "disk_read_bytes": draw(st.one_of(st.none(), st.floats(1, 1e6))),
        "disk_small_read_ms": draw(st.one_of(st.none(), st.floats(0.001, 100))),
        "cold_share": draw(maybe),
        "device_share": draw(maybe),
    }
    workers = draw(st.integers(0, 32))
    ranks = tuple(draw(st.lists(share, max_size=4)))
    missing = dict.fromkeys(draw(st.sets(st.sampled_from(["stages", "processes", "io", "host"]))), "why")
    kinds = draw(st.lists(st.tuples(st.floats(0, 100), st.booleans(), st.booleans(), st.booleans()), max_size=4))
    of_gpu = {
        "watched_steps": draw(st.integers(0, 100)),
        "copies": tuple(copied(ms, pinned, asked, other_stream=other) for ms, pinned, asked, other in kinds),
        "gpu": draw(st.one_of(st.none(), st.builds(replace, st.just(BUSY), utilisation=share, shared=st.booleans()))),
        "device": draw(st.sampled_from([{}, FLOAT32, {**FLOAT32, "capability": 60}])),
    }
    return summary(
        waits, making, host, **of_gpu, workers=workers, ranks=ranks, missing=missing, synchronising=draw(maybe),
        synchronising_calls=draw(st.floats(0, 1e4)), steps=draw(st.integers(1, 10**6)),
    )  # fmt: skip


@settings(max_examples=3 * settings.default.max_examples)
@given(summaries())
def test_whatever_was_measured_the_verdicts_are_sound(measured):
    diagnosis = evaluate(measured)
    assert sum(v.share for v in diagnosis.verdicts) <= 1.001
    assert [v.share for v in diagnosis.verdicts] == sorted((v.share for v in diagnosis.verdicts), reverse=True)
    assert len(set(names(diagnosis))) == len(diagnosis.verdicts)
    for verdict in diagnosis.verdicts:
        assert verdict.code in CAUSES and 0 <= verdict.confidence <= 1 and verdict.fix
        low, high = verdict.gain
        assert 0 <= low <= high
    rest_on_stages = {"cpu_decode", "cpu_transform", "collate", "storage_latency", "small_files", "storage_bandwidth"}
    if {"stages", "processes"} & set(measured.missing):
        assert not [v for v in diagnosis.verdicts if v.code in rest_on_stages and v.confidence >= CERTAIN]
