# SPDX-License-Identifier: Apache-2.0
"""Causes on the GPU's side, with generated summaries: reported, not reported, abstained, and together with others."""

from dataclasses import replace

import pytest
from summaries import BESIDE_COMPUTING, BUSY, CUDA, FLOAT32, IDLE, but, copied, on_gpu, summary, waiting

from feedline.diagnose import gpu_text
from feedline.diagnose.verdict import CERTAIN, evaluate
from feedline.profiler.summary.figures import Copies

COPY_CAUSES = {"unpinned_copy", "blocking_copy", "host_to_device"}
GPU_CAUSES = {*COPY_CAUSES, "precision_not_reduced"}


def verdicts(measured):
    return {verdict.code: verdict for verdict in evaluate(measured).verdicts}


def abstained(measured):
    return {a.code: a.missing for a in evaluate(measured).abstained}


def test_a_script_without_a_gpu_is_asked_nothing():
    assert not GPU_CAUSES & (set(abstained(summary())) | set(verdicts(summary())))


def test_a_share_is_the_time_on_the_device_and_not_in_the_call():
    """Steps of 10 ms whose copies take 3 ms of the stream, in calls that wait 9 ms, most of it for kernels."""
    found = verdicts(on_gpu(copied(3.0)))
    assert found["unpinned_copy"].share == pytest.approx(0.3 * 0.98, abs=0.01)
    assert found["compute_bound"].share == pytest.approx(0.98 - 0.3, abs=0.02)
    assert "block the loop for 9.00 ms" in found["unpinned_copy"].evidence[1]
    assert "6.67 GB/s" in found["unpinned_copy"].evidence[0]


@pytest.mark.parametrize(
    ("pinned", "asked", "cause", "certain"),
    [
        (False, False, "unpinned_copy", True),
        (False, True, "unpinned_copy", True),
        (True, False, "blocking_copy", True),
        (True, True, "host_to_device", False),
    ],
)
def test_each_kind_of_copy_has_its_cause(pinned, asked, cause, certain):
    found = verdicts(on_gpu(copied(4.0, pinned, asked)))
    assert set(found) & GPU_CAUSES == {cause}
    assert (found[cause].confidence >= CERTAIN) == certain
    assert not set(abstained(on_gpu(copied(4.0, pinned, asked)))) & GPU_CAUSES


def test_the_step_on_the_device_is_reported_next_to_the_wait():
    timed = but(on_gpu(copied(3.0)), device_step_ms=7.25, timed_steps=40)
    assert any("takes 7.25 ms per step (stream events, 40 steps timed)" in line for line in gpu_text.lines(timed))
    few = but(timed, timed_steps=2)
    assert not any("7.25" in line for line in gpu_text.lines(few))


def test_small_copies_and_those_next_to_the_computing_are_no_cause():
    beside = copied(6.0, pinned=True, asked=True, other_stream=True)
    for copies in (copied(0.3), copied(0.3, pinned=True), beside):
        assert not GPU_CAUSES & (set(verdicts(on_gpu(copies))) | set(abstained(on_gpu(copies))))


def test_two_kinds_of_copies_are_both_named():
    found = verdicts(on_gpu(copied(4.0), copied(2.0, pinned=True)))
    assert found["unpinned_copy"].share == pytest.approx(0.39, abs=0.01)
    assert found["blocking_copy"].share == pytest.approx(0.196, abs=0.01)


def test_copies_longer_than_the_step_take_the_step_and_no_more():
    diagnosis = evaluate(on_gpu(copied(40.0), copied(40.0, pinned=True), waits=waiting(production=0.4)))
    assert sum(v.share for v in diagnosis.verdicts) <= 1.0001
    assert {v.code: v.share for v in diagnosis.verdicts}["unpinned_copy"] == pytest.approx(0.6)


def test_copies_after_a_slow_loader_promise_nothing_certain():
    found = verdicts(on_gpu(copied(4.0), waits=waiting(production=0.5)))
    assert found["unpinned_copy"].gain[0] == 0.0
    assert any("loader" in sentence for sentence in found["unpinned_copy"].against)
    assert verdicts(on_gpu(copied(4.0)))["unpinned_copy"].gain[0] > 0.1


def test_copies_that_no_one_timed_are_abstained_from():
    measured = on_gpu(replace(copied(None), timed=0))
    assert "unpinned_copy" not in verdicts(measured)
    assert "20 MB per step" in abstained(measured)["unpinned_copy"]
    assert "feedline trace" in abstained(measured)["unpinned_copy"]
    assert not {"blocking_copy", "host_to_device"} & set(abstained(measured))


TINY = Copies(True, True, per_step=1, bytes_per_step=1024, host_ms=0.2, device_ms=0.39, timed=1)


def test_a_copy_takes_no_longer_than_its_bytes_do():
    """Measured on an H200: 0.39 ms between the events of 1 kB, in a step of 7.12 ms, while the stream waited."""
    for timed in (TINY, replace(TINY, timed=200), replace(TINY, device_ms=None, timed=0)):
        measured = but(on_gpu(timed), steps=80, loop_s=80 * 0.00712, step_ms=7.12)
        assert not COPY_CAUSES & (set(verdicts(measured)) | set(abstained(measured)))


def test_many_small_copies_are_named_as_far_as_they_can_take_time():
    many = replace(TINY, per_step=200, bytes_per_step=200 * 1024, device_ms=8.0, timed=200)
    found = verdicts(on_gpu(many))["host_to_device"]
    assert found.share == pytest.approx((200 * 0.02 + 200 * 1024 / 0.25e6) / 10 * 0.98, abs=0.01)
    assert found.confidence <= 0.6 and any("8.00 ms apart" in sentence for sentence in found.evidence)


# -- gains: a loop that copies and then computes, and its time without the copy


def of_loop(copy_ms, compute_ms, size, pinned, asked, host_ms=None):
    """Returns the summary of a loop with such steps, whose calls block the host unless they are non-blocking."""
    cycle = copy_ms + compute_ms
    held = (0.05 if asked else copy_ms) if host_ms is None else host_ms
    copies = Copies(pinned, asked, False, 1.0, size, held, copy_ms, 50)
    waits = waiting(production=0.0)
    return but(on_gpu(copies, waits=waits), steps=100, loop_s=100 * cycle / 1000, step_ms=cycle, wait_ms=0.0)


@pytest.mark.parametrize(("pinned", "asked"), [(False, False), (True, False), (True, True)])
def test_a_gain_holds_what_the_loop_would_gain_and_no_more_than_it_can(pinned, asked):
    """The link transfers 53 GB/s and pageable memory 9.6, as on an H200. Page-locked bytes take time on the link,
    too.
    """
    for megabytes in (4, 16, 64, 256):
        for compute_ms in (0.01, 0.3, 2.0, 8.0):
            size = megabytes * 1e6
            crosses = size / 53e6
            copy_ms = crosses if pinned else size / 9.6e6
            after = max(crosses, compute_ms) if pinned else crosses + compute_ms
            gained = (copy_ms + compute_ms) / after - 1
            found = verdicts(of_loop(copy_ms, compute_ms, size, pinned, asked))
            for cause in COPY_CAUSES & set(found):
                low, high = found[cause].gain
                assert low <= gained + 0.01 and gained <= high + 0.01, (megabytes, compute_ms)
                possible = (copy_ms + compute_ms) / max(size / 64e6, compute_ms) - 1
                assert low <= high <= possible + 0.01, (megabytes, compute_ms)
    assert found  # of the largest


def test_copies_that_seem_longer_than_the_step_promise_no_miracle():
    """Measured on an H200: 67.1 MB in 7.94 ms, timed once, with steps of 6.74 ms."""
    measured = but(of_loop(7.94, 0.0, 67.1e6, False, False, host_ms=7.67), loop_s=100 * 0.00674, step_ms=6.74)
    found = verdicts(measured)["unpinned_copy"]
    assert found.share > 0.95 and found.gain[1] <= 6.74 / (67.1 / 64) - 1 + 0.01
    assert any("at least 1.05 ms" in sentence and "64 GB/s" in sentence for sentence in found.evidence)
    slower = verdicts(of_loop(7.94, 0.0, 67.1e6, False, False, host_ms=4.94))["unpinned_copy"]
    assert slower.gain[1] == pytest.approx(7.94 / 3.0 - 1, abs=0.01)
    assert any("the loop still takes 3.00 ms outside of the calls" in sentence for sentence in slower.evidence)


def test_few_timed_copies_and_a_shared_gpu_are_not_certain():
    assert verdicts(on_gpu(replace(copied(4.0), timed=3)))["unpinned_copy"].confidence <= 0.6
    shared = on_gpu(copied(4.0), gpu=replace(BUSY, shared=True))
    assert verdicts(shared)["unpinned_copy"].confidence < CERTAIN


def test_steps_that_were_not_watched_are_abstained_from():
    measured = summary(loader=CUDA, gpu=BUSY, missing={"synchronising": "torch.compile"})
    assert set(abstained(measured)) >= GPU_CAUSES
    assert "torch.compile" in abstained(measured)["blocking_copy"]


# -- precision


def test_float32_on_a_busy_gpu_with_tensor_cores():
    found = verdicts(BESIDE_COMPUTING["precision_not_reduced"])
    first, second = evaluate(BESIDE_COMPUTING["precision_not_reduced"]).verdicts
    assert (first.code, second.code) == ("compute_bound", "precision_not_reduced")
    assert found["precision_not_reduced"].confidence < CERTAIN
    assert found["precision_not_reduced"].gain[0] == 0
    assert any("assumed" in sentence for sentence in found["precision_not_reduced"].against)


@pytest.mark.parametrize(
    "change",
    [
        {"device": {**FLOAT32, "autocast": ["torch.float16"]}},
        {"device": {**FLOAT32, "elements": {"torch.bfloat16": 100, "torch.float32": 10}}},
        {"device": {**FLOAT32, "matmul_precision": "high"}},
        {"device": {**FLOAT32, "capability": 61}},
        {"gpu": IDLE},
        {"waits": waiting(production=0.3)},
    ],
    ids=["autocast", "bfloat16", "tf32", "no tensor cores", "idle", "waits for data"],
)
def test_precision_is_no_cause_where_it_is_reduced_or_does_not_matter(change):
    measured = on_gpu(**{"device": FLOAT32, **change})
    assert "precision_not_reduced" not in verdicts(measured)
    assert "precision_not_reduced" not in abstained(measured)


def test_tf32_means_nothing_before_ampere():
    volta = {**FLOAT32, "capability": 70, "matmul_precision": "high"}
    assert "precision_not_reduced" in verdicts(on_gpu(device=volta))


@pytest.mark.parametrize(
    ("change", "missing"),
    [
        ({"gpu": None, "missing": {"gpu": "there is no libnvidia-ml.so.1"}}, "libnvidia-ml"),
        ({"device": {**FLOAT32, "elements": {}}}, "optimizer"),
        ({"watched_steps": 2}, "only 2 steps were observed"),
        ({"gpu": replace(BUSY, shared=True)}, "other programs"),
        ({"device": {**FLOAT32, "capability": None}, "gpu": replace(BUSY, capability=None)}, "capability"),
    ],
    ids=["no NVML", "no optimizer", "few steps", "shared", "unknown GPU"],
)
def test_precision_is_abstained_from_where_something_was_not_seen(change, missing):
    measured = but(on_gpu(device=FLOAT32), **change)
    assert "precision_not_reduced" not in verdicts(measured)
    assert missing in abstained(measured)["precision_not_reduced"]


# -- synchronisation


def test_calls_that_wait_for_a_busy_gpu_are_no_loss():
    busy = on_gpu(synchronising=0.9, synchronising_calls=1.0)
    assert "loop_synchronisation" not in verdicts(busy)
    assert list(verdicts(busy)) == ["compute_bound"]


def test_calls_next_to_an_idle_gpu_are_named_as_far_as_it_is_idle():
    found = verdicts(on_gpu(synchronising=0.9, synchronising_calls=300.0, gpu=IDLE))["loop_synchronisation"]
    assert found.share == pytest.approx(0.68)  # 1 - 0.30 - 0.02, although the calls take 0.88
    assert 0.6 < found.confidence < CERTAIN


def test_without_nvml_calls_stay_uncertain():
    found = verdicts(on_gpu(synchronising=0.5, synchronising_calls=300.0, gpu=None))["loop_synchronisation"]
    assert found.confidence == 0.6


def test_without_nvml_one_call_per_step_is_abstained_from():
    measured = on_gpu(synchronising=0.9, synchronising_calls=1.0, gpu=None)
    assert "loop_synchronisation" not in verdicts(measured)
    assert "the step's own work" in abstained(measured)["loop_synchronisation"]


# -- statements about GPU-Util


@pytest.mark.parametrize(
    ("gpu", "waits", "words"),
    [
        (IDLE, 0.6, "idle while the loop waits for the loader (60% of its time), alternating with work"),
        (replace(BUSY, utilisation=0.93), 0.4, "is high whenever any kernel runs"),
        (IDLE, 0.02, "is not the cause"),
        (BUSY, 0.02, "not how much of the GPU"),
    ],
)
def test_what_gpu_util_is_worth(gpu, waits, words):
    first, second = gpu_text.lines(on_gpu(gpu=gpu, waits=waiting(production=waits)))
    assert first.startswith(f"  GPU 0: GPU-Util {gpu.utilisation:.0%}")
    assert words in second


def test_a_gpu_that_waits_for_the_step_is_reported_next_to_compute_bound():
    idle = replace(IDLE, memory_used_bytes=8 << 30)
    (evidence,) = (v.evidence for v in evaluate(on_gpu(gpu=idle)).verdicts if v.code == "compute_bound")
    assert any("GPU-Util is 30%: the GPU mostly waits" in sentence for sentence in evidence)
    low = replace(idle, utilisation=0.2)
    assert any("larger batch" in hint for hint in gpu_text.hints(on_gpu(gpu=low)))
    assert "larger batch" not in " ".join(gpu_text.hints(on_gpu(gpu=low, waits=waiting(production=0.5))))
    assert not gpu_text.hints(on_gpu(gpu=replace(low, memory_used_bytes=70 << 30)))


def test_one_of_pinning_and_non_blocking_alone_is_mentioned():
    assert gpu_text.hints(on_gpu(copied(0.1))) == []
    assert gpu_text.hints(on_gpu(copied(0.1, pinned=True, asked=True))) == []
    assert "without non_blocking=True" in gpu_text.hints(on_gpu(copied(0.1, pinned=True)))[0]
    assert "not pinned" in gpu_text.hints(on_gpu(copied(0.1, asked=True)))[0]
    assert "clocks" in gpu_text.hints(on_gpu(gpu=replace(BUSY, slowed=0.6)))[0]


def test_an_unfed_gpu_is_joined_with_what_the_host_shows():
    low = replace(IDLE, utilisation=0.2, memory_used_bytes=8 << 30)
    waits = waiting(production=0.5)
    for used, words in (
        (0.4, "wait for storage or the network"),
        (3.9, "producing batches is CPU-bound"),
        (2.5, "producing batches and waiting"),
    ):
        (hint,) = gpu_text.hints(on_gpu(gpu=low, waits=waits, host={"used_cpus": used}))
        assert "in a sawtooth and half of the GPU's memory is free, while the loop waits for data" in hint
        assert f"4 workers and the loop use {used} of 4 CPUs" in hint
        assert words in hint
    assert not gpu_text.hints(on_gpu(gpu=replace(low, memory_used_bytes=70 << 30), waits=waits))
