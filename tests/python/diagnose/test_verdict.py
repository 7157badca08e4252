# SPDX-License-Identifier: Apache-2.0
"""Verdicts on hand-made summaries: every cause is named, alone and beside another, and nothing is certain unseen."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from summaries import BY_CAUSE, EVEN, HALF, LOADER, NOT_WATCHED, stages, summary, waiting, without

from feedline.diagnose.summary import Waits
from feedline.diagnose.verdict import CAUSES, CERTAIN, judge


def names(diagnosis):
    return [verdict.cause for verdict in diagnosis.verdicts]


def test_the_summaries_here_cover_every_cause_that_is_judged():
    assert set(BY_CAUSE) | set(NOT_WATCHED) == set(CAUSES)


@pytest.mark.parametrize("cause", BY_CAUSE)
def test_a_planted_cause_comes_first(cause):
    diagnosis = judge(BY_CAUSE[cause])
    assert names(diagnosis)[0] == cause
    first = diagnosis.verdicts[0]
    assert first.evidence and first.fix
    low, high = first.predicted_gain
    assert 0 <= low <= high


@pytest.mark.parametrize("cause", BY_CAUSE)
def test_what_is_not_planted_is_not_certain(cause):
    for verdict in judge(BY_CAUSE[cause]).verdicts[1:]:
        assert verdict.confidence < CERTAIN or verdict.cause in ("compute_bound", "cpu_decode"), verdict


def test_a_loop_that_waits_for_another_rank_is_not_certainly_computing():
    verdicts = {v.cause: v for v in judge(BY_CAUSE["straggling_rank"]).verdicts}
    assert verdicts["compute_bound"].confidence < CERTAIN


def test_two_causes_are_both_named_with_their_shares():
    diagnosis = judge(summary(HALF, {"stages": stages(storage=0.6, decode=0.4), "cpu_ms": 9.0}))
    shares = {verdict.cause: verdict.share for verdict in diagnosis.verdicts}
    assert shares["storage_latency"] == pytest.approx(0.3)
    assert shares["cpu_decode"] == pytest.approx(0.2)


def test_waits_of_different_kinds_are_told_apart():
    diagnosis = judge(summary(waiting(production=0.3, startup=0.2, border=0.1), {"startup_ms": 500.0}))
    assert names(diagnosis) == ["cpu_decode", "worker_startup", "epoch_border"]


def test_no_loop_abstains_from_everything():
    diagnosis = judge(None)
    assert diagnosis.verdicts == [] and [a.cause for a in diagnosis.abstained] == list(CAUSES)


def test_few_steps_are_no_ground_for_certainty():
    assert all(v.confidence < CERTAIN for v in judge(replace(BY_CAUSE["cpu_decode"], steps=5)).verdicts)


@pytest.mark.parametrize(
    ("signal", "causes", "host"),
    [
        ("throttled", {"cpu_quota"}, {"throttled": None}),
        ("pressure", {"memory_pressure"}, {"memory_pressure": None}),
        ("io", {"small_files", "storage_bandwidth"}, {"read_bytes_per_s": None, "device_share": None}),
        ("processes", {"oversubscribed", "too_few_workers"}, {"wanted_cpus": None, "used_cpus": None}),
    ],
)
def test_a_missing_signal_is_an_abstention(signal, causes, host):
    diagnosis = judge(without(BY_CAUSE["storage_latency"], signal, **host))
    assert causes <= {a.cause for a in diagnosis.abstained}
    assert all(a.missing for a in diagnosis.abstained)


def test_a_gpu_that_is_not_watched_is_an_abstention():
    diagnosis = judge(summary(loader={**LOADER, "cuda": True}))
    assert {a.cause for a in diagnosis.abstained} == set(NOT_WATCHED)


def test_without_stages_no_stage_is_blamed():
    diagnosis = judge(without(summary(HALF, {"stages": None}), "stages"))
    assert not {"cpu_decode", "cpu_transform", "collate", "storage_latency"} & set(names(diagnosis))
    assert {"cpu_decode", "cpu_transform", "collate", "storage_latency"} <= {a.cause for a in diagnosis.abstained}


def test_other_programs_make_no_cause():
    """A machine full of other work: finished batches wait for a CPU, and the loader is not to blame."""
    waits = waiting(handover=0.3)
    busy = summary(waits, {"busy": 0.2}, {"others_cpus": 3.9, "used_cpus": 0.2, "wanted_cpus": 0.9})
    assert names(judge(busy)) == ["compute_bound"]
    assert all(v.confidence < CERTAIN for v in judge(busy).verdicts)
    quiet = summary(waits, {"busy": 0.2}, {"others_cpus": 0.0, "used_cpus": 0.2, "wanted_cpus": 0.3})
    assert names(judge(quiet)) == ["worker_handover"]


def test_batches_that_arrive_late_from_busy_workers_wait_for_their_making():
    """The sending thread shares the interpreter with the next batch's Python: late, but not what sets the pace."""
    late = summary(waiting(handover=0.5), {"stages": stages(python=1.0), "busy": 0.96, "delayed": 0.02})
    assert names(judge(late)) == ["cpu_transform"]
    idle = summary(waiting(handover=0.5), {"stages": stages(python=1.0), "busy": 0.3, "delayed": 0.02})
    assert names(judge(idle)) == ["worker_handover"]
    packing = {"stages": stages(python=1.0), "busy": 0.96, "pickle_ms": 3.0, "unpickle_ms": 3.0}
    assert names(judge(summary(waiting(handover=0.5), packing))) == ["worker_handover"]


def test_more_workers_will_not_help_when_the_cpus_are_used_up():
    full = judge(BY_CAUSE["cpu_decode"]).more_workers  # 4 workers on 4 CPUs, 79 ms of CPU per batch
    assert full is not None and full.startswith("more workers will not help") and "79.2 ms of CPU" in full
    room = judge(BY_CAUSE["too_few_workers"]).more_workers  # 2 workers
    assert room == "4 workers instead of 2 would help: 99% more batches per second"


def test_the_measured_ladder_overrules_the_model():
    flat = replace(BY_CAUSE["too_few_workers"], rungs={1: 26.0, 2: 50.0, 4: 51.0})
    diagnosis = judge(flat)
    assert diagnosis.more_workers is not None and diagnosis.more_workers.startswith("more workers will not help")
    assert names(diagnosis) == ["cpu_decode"]
    steep = judge(replace(flat, rungs={1: 25.0, 2: 50.0, 4: 97.0}))
    first = steep.verdicts[0]
    assert first.cause == "too_few_workers" and first.confidence >= CERTAIN and first.fix == "num_workers=4."


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
        "device_share": draw(maybe),
    }
    workers = draw(st.integers(0, 32))
    ranks = tuple(draw(st.lists(share, max_size=4)))
    missing = dict.fromkeys(draw(st.sets(st.sampled_from(["stages", "processes", "io", "host"]))), "why")
    return summary(
        waits, making, host, workers=workers, ranks=ranks, missing=missing, synchronising=draw(maybe),
        synchronising_calls=draw(st.floats(0, 1e4)), steps=draw(st.integers(1, 10**6)),
    )  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(summaries())
def test_whatever_was_measured_the_verdicts_are_sound(measured):
    diagnosis = judge(measured)
    assert sum(v.share for v in diagnosis.verdicts) <= 1.001
    assert [v.share for v in diagnosis.verdicts] == sorted((v.share for v in diagnosis.verdicts), reverse=True)
    assert len(set(names(diagnosis))) == len(diagnosis.verdicts)
    for verdict in diagnosis.verdicts:
        assert verdict.cause in CAUSES and 0 <= verdict.confidence <= 1 and verdict.fix
        low, high = verdict.predicted_gain
        assert 0 <= low <= high
    rest_on_stages = {"cpu_decode", "cpu_transform", "collate", "storage_latency", "small_files", "storage_bandwidth"}
    if {"stages", "processes"} & set(measured.missing):
        assert not [v for v in diagnosis.verdicts if v.cause in rest_on_stages and v.confidence >= CERTAIN]
