# SPDX-License-Identifier: Apache-2.0
"""Tests which findings must never be reported as certain. Each case depends on a single limit, which is shown to be
decisive.
"""

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from summaries import BY_CAUSE, HALF, but, stages, summary, waiting, without
from test_verdict import summaries

from feedline.diagnose.causes import registered
from feedline.diagnose.rules import certainty
from feedline.diagnose.verdict import CAUSES, CERTAIN, evaluate
from feedline.profiler.summary.figures import Waits

SLOW = BY_CAUSE["cpu_decode"]  # half of the time, certain
PACKED = {"pickle_ms": 4.0, "unpickle_ms": 4.0, "busy": 0.2}
CROWD = {"others_cpus": 3.0}

# Reason for a limit: (a run in which nothing else contradicts the cause, the cause)
CASES = {
    "a signal is missing": (without(SLOW, "stages"), "cpu_decode"),
    "few steps": (but(SLOW, steps=12), "cpu_decode"),
    "a busy machine": (summary(waiting(production=0.25), host=CROWD), "cpu_decode"),
    "a small share": (summary(waiting(startup=0.08, border=0.04)), "worker_startup"),
    "the share of the time is small": (summary(waiting(handover=0.25, packed=0.25), PACKED), "worker_handover"),
    "CPU time under memory pressure": (
        summary(HALF, {"stages": stages(collate=1.0)}, {"memory_pressure": 0.1, "memory_events": 4}),
        "collate",
    ),
    "profiling was expensive": (but(SLOW, overhead_share=0.08), "cpu_decode"),
    "the kernel's CPU time": (summary(HALF, {"stages": stages(python=1.0)}, {"in_kernel": 0.7}), "cpu_transform"),
}


def confidence(measured, cause):
    (found,) = [verdict for verdict in evaluate(measured).verdicts if verdict.code == cause]
    return found.confidence


OWN_LIMITS = {name: cause.limits for cause in registered() for name in cause.limits}


def test_every_limit_has_a_case():
    assert set(CASES) == {*certainty.LIMITS, *OWN_LIMITS}


@pytest.mark.parametrize("name", CASES)
def test_a_limit_keeps_its_case_from_being_certain_and_no_other_does(name, monkeypatch):
    measured, cause = CASES[name]
    assert confidence(measured, cause) < CERTAIN
    monkeypatch.delitem(OWN_LIMITS.get(name, certainty.LIMITS), name)
    assert confidence(measured, cause) >= CERTAIN


SHORT = {"memory_pressure": 0.3, "memory_events": 20}


@pytest.mark.parametrize("rungs", [{}, {2: 20.0, 4: 40.0}])
@pytest.mark.parametrize("short", [True, False])
def test_where_memory_is_short_only_a_measurement_speaks_for_more_workers(short, rungs):
    """Two busy workers on eight CPUs, half working and half waiting: each additional worker would need its own
    memory.
    """
    host = {"cpus": 8.0, "wanted_cpus": 2.0, "used_cpus": 2.0, **(SHORT if short else {})}
    split = {"stages": stages(storage=0.5, python=0.5), "busy": 0.98}
    diagnosis = evaluate(summary(waiting(production=0.95), split, host, workers=2, rungs=rungs))
    proposed = [v.code for v in diagnosis.verdicts if v.fix.startswith("num_workers=")]
    assert bool(proposed) is (bool(rungs) or not short)
    assert ("memory is already short" in diagnosis.more_workers) is (short and not rungs)
    assert ("would help" in diagnosis.more_workers) is bool(proposed)


def test_more_workers_are_never_certain_to_help_where_memory_is_short():
    pressed = {"memory_pressure": 0.1, "memory_events": 4, "wanted_cpus": 1.5}
    measured = summary(HALF, {"stages": stages(python=1.0)}, pressed, workers=1, rungs={1: 10.0, 2: 20.0})
    assert confidence(measured, "too_few_workers") < CERTAIN
    pressed = {**pressed, "memory_pressure": 0.0, "memory_events": 0}
    assert confidence(replace(measured, host=replace(measured.host, **pressed)), "too_few_workers") >= CERTAIN


def test_a_full_disk_is_never_certain_where_memory_is_short():
    disk = {"device_share": 1.0, "read_bytes_per_s": 9e7, "disk_ceiling_bytes_per_s": 1e8, "read_bytes_per_sample": 5e5}
    measured = summary(HALF, {"stages": stages(storage=1.0), "cpu_ms": 1.0}, disk)
    assert confidence(measured, "storage_bandwidth") >= CERTAIN
    pressed = replace(measured.host, memory_pressure=0.1, memory_events=4, io_pressure=0.9)
    assert confidence(replace(measured, host=pressed), "storage_bandwidth") < CERTAIN


@pytest.mark.parametrize(
    ("certain", "doubtful", "cause"),
    [
        (waiting(startup=0.15), waiting(startup=0.14), "worker_startup"),
        (waiting(border=0.15), waiting(border=0.14), "epoch_border"),
        (waiting(handover=0.30, packed=0.30), waiting(handover=0.29, packed=0.29), "worker_handover"),
        (  # by CPU
            waiting(handover=0.70, packed=0.70, packed_cpu=0.30),
            waiting(handover=0.70, packed=0.70, packed_cpu=0.29),
            "worker_handover",
        ),
    ],
)
def test_the_shares_from_which_on_a_cause_may_be_certain(certain, doubtful, cause):
    assert confidence(summary(certain, PACKED), cause) >= CERTAIN > confidence(summary(doubtful, PACKED), cause)


@pytest.mark.parametrize("cause", [c for c in BY_CAUSE if confidence(BY_CAUSE[c], c) >= CERTAIN])
@pytest.mark.parametrize("signal", ["host", "consumer", "recording"])
def test_nothing_is_certain_without_the_machine_the_consumer_or_the_recording(signal, cause):
    blind = replace(BY_CAUSE[cause], missing={signal: "nobody looked"})
    assert confidence(blind, cause) < CERTAIN
    (found,) = [verdict for verdict in evaluate(blind).verdicts if verdict.code == cause]
    assert any("nobody looked" in sentence for sentence in found.against)


@pytest.mark.parametrize("cause", BY_CAUSE)
def test_few_steps_make_nothing_certain(cause):
    assert all(v.confidence < CERTAIN for v in evaluate(but(BY_CAUSE[cause], steps=19)).verdicts)


def test_a_thread_that_fetches_for_another_promises_no_gain():
    """The other process may work on the batches for as long."""
    assert evaluate(SLOW).verdicts[0].gain[0] > 0
    assert evaluate(replace(SLOW, missing={"consumer": "who"})).verdicts[0].gain[0] == 0


def test_a_stream_that_divides_itself_promises_no_gain_of_more_workers():
    measured = BY_CAUSE["storage_latency"]
    assert evaluate(measured).verdicts[0].gain[0] > 0
    making = replace(measured.making, fewest=8, most=31)
    stream = replace(measured, loader={**measured.loader, "iterable": True}, making=making)
    first = evaluate(stream).verdicts[0]
    assert first.code == "storage_latency" and first.gain[0] == 0
    assert any("IterableDataset" in sentence for sentence in first.against)
    assert any("produced 31 batches, while another ran out of work after 8" in sentence for sentence in first.against)
    assert "up to" in evaluate(stream).more_workers


@pytest.mark.parametrize(
    ("host", "named"),
    [
        ({"memory_events": 0, "major_faults_per_s": 1.0}, False),  # other programs use all CPUs
        ({"memory_events": 0, "major_faults_per_s": 400.0}, True),
        ({"memory_events": 0, "major_faults_per_s": 1.0, "in_kernel": 0.6}, True),  # the cause checks for pages itself
        ({"memory_events": 3, "major_faults_per_s": 1.0}, True),
        ({"memory_events": None, "major_faults_per_s": None}, True),  # unknown: reported, but not as certain
    ],
)
def test_pressure_on_the_memory_of_others_is_not_this_runs(host, named):
    found = {v.code: v for v in evaluate(summary(HALF, host={"memory_pressure": 0.4, **host})).verdicts}
    assert ("memory_pressure" in found) is named
    assert not named or host["memory_events"] or found["memory_pressure"].confidence < CERTAIN


# The requirements for a cause to be certain, written here independently of the rules.
MAKING = {"stages", "processes"}
NEEDED = {
    **dict.fromkeys(("cpu_decode", "cpu_transform", "collate"), MAKING),
    **{cause: {*MAKING, "io"} for cause in ("storage_latency", "storage_bandwidth", "small_files")},
    "too_few_workers": MAKING,
    "python_main_process": {"workers"},
    "straggling_sample": {"samples"},
    "cpu_quota": {"throttled"},
    "memory_pressure": {"pressure"},
}
SIGNALS = ("stages", "processes", "io", "host", "throttled", "pressure", "disk", "samples", "synchronising", "gpu",
           "workers", "consumer", "recording")  # fmt: skip


@st.composite
def blinded(draw):
    """Any summary, with any signals missing, and any share of packing in the hand-over."""
    measured = draw(summaries())
    missing = dict.fromkeys(draw(st.sets(st.sampled_from(SIGNALS), max_size=4)), "why")
    packed = draw(st.one_of(st.none(), st.floats(0, 1).map(lambda part: part * measured.waits.handover)))
    overhead = draw(st.one_of(st.none(), st.floats(0, 0.2)))
    return but(measured, missing=missing, waits=replace(measured.waits, packed=packed), overhead_share=overhead)


@settings(max_examples=3 * settings.default.max_examples)
@given(blinded())
def test_nothing_is_certain_without_what_could_speak_against_it(measured):
    diagnosis = evaluate(measured)
    assert sum(v.share for v in diagnosis.verdicts) <= 1.001
    assert [v.share for v in diagnosis.verdicts] == sorted((v.share for v in diagnosis.verdicts), reverse=True)
    for verdict in [v for v in diagnosis.verdicts if v.confidence >= CERTAIN]:
        needed = NEEDED.get(verdict.code, set()) | {"host", "consumer", "recording"}
        assert not needed & set(measured.missing), verdict
        assert measured.loop.steps >= 20 and verdict.share >= 0.15, verdict
        assert (measured.profiling.overhead_share or 0.0) <= 0.05
    if "workers" in measured.missing:
        assert not {"python_main_process", "worker_handover", "cpu_decode"} & {v.code for v in diagnosis.verdicts}
    assert not {v.code for v in diagnosis.verdicts} & {a.code for a in diagnosis.abstained}


@given(blinded())
def test_the_json_object_is_as_documented(measured):
    found = json.loads(json.dumps(evaluate(measured).as_dict(), allow_nan=False))
    assert set(found) == {"verdicts", "abstained", "death", "more_workers", "drop_in"}
    for verdict in found["verdicts"]:
        assert set(verdict) == {
            "cause", "share", "confidence", "evidence", "counter_evidence", "fix", "predicted_gain"
        }  # fmt: skip
        low, high = verdict["predicted_gain"]
        assert verdict["cause"] in CAUSES and 0 <= verdict["share"] <= 1 and 0 <= low <= high
        for sentences in (verdict["evidence"], verdict["counter_evidence"]):
            assert all(isinstance(sentence, str) and sentence for sentence in sentences)
    for abstained in found["abstained"]:
        assert set(abstained) == {"cause", "missing"} and abstained["cause"] in CAUSES and abstained["missing"]
    assert found["more_workers"] is None or isinstance(found["more_workers"], str)


def test_shares_of_a_run_of_nothing_but_waits_are_sound():
    everything = Waits(0.2, 0.2, 0.2, 0.2, 0.2, 0.0, packed=0.2)
    found = evaluate(summary(everything, PACKED)).verdicts
    assert sum(v.share for v in found) == pytest.approx(1.0) and len(found) == 5
