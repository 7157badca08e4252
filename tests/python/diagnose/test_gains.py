# SPDX-License-Identifier: Apache-2.0
"""Compares promised gains with simulated loops, and with loops calculated by hand."""

import random
import statistics
from dataclasses import replace

import pytest
from simulated_loader import Load, batches_per_s
from summaries import BY_CAUSE, HALF, LOADER, but, stages, summary, waiting

from feedline.diagnose.causes import named
from feedline.diagnose.rules import gains
from feedline.diagnose.verdict import evaluate
from feedline.profiler.model import prediction

NEAR = 0.2


def summary_of(load, parts, workers, cpus):
    """Returns the summary of a simulated loop; `parts`: the stages of making a batch."""
    made = load.wait_ms + load.cpu_ms
    shares = {name: part * load.cpu_ms / made for name, part in parts.items()}
    step = load.step_wait_ms + load.step_cpu_ms
    making = {
        "wall_ms": made,
        "cpu_ms": load.cpu_ms,
        "stages": stages(storage=load.wait_ms / made, **shares),
        "pickle_ms": load.pack_ms,
        "unpickle_ms": load.unpack_ms,
        "spread": load.spread,
    }
    others = {"workers": workers, "step_ms": step, "step_cpu_ms": load.step_cpu_ms}
    return summary(waiting(production=0.9), making, {"cpus": float(cpus)}, **others)


def simulated():
    """Returns (promised, measured) of random loops from which one stage is removed."""
    draw = random.Random(7)
    for case in range(60):
        made, waits, decode = draw.uniform(10, 80), draw.random(), draw.uniform(0.1, 0.9)
        workers, cpus = draw.choice([0, 1, 2, 4]), draw.choice([2, 4])
        load = Load(
            wait_ms=made * waits,
            cpu_ms=made * (1 - waits),
            pack_ms=draw.choice([0.0, 1.0]) if workers else 0.0,
            unpack_ms=draw.choice([0.0, 1.0]) if workers else 0.0,
            step_wait_ms=draw.uniform(1, 30),
            step_cpu_ms=draw.uniform(0, 10),
            spread=draw.choice([0.05, 0.2]),
        )
        seen = summary_of(load, {"decode": decode, "transform": 1 - decode}, workers, cpus)
        gone = draw.choice(["storage", "decode", "transform"])
        left = {"decode": 1 - decode, "transform": decode}.get(gone, 1.0)
        lighter = replace(load, wait_ms=0.0 if gone == "storage" else load.wait_ms, cpu_ms=load.cpu_ms * left)
        rates = [batches_per_s(one, workers, cpus=cpus, batches=200, seed=case) for one in (load, lighter)]
        yield gains.without_stages(seen, gone), rates[1] / rates[0] - 1


def test_a_promise_is_what_a_simulated_loop_gains():
    found = list(simulated())
    inside = [low - 0.02 <= measured <= high + 0.02 for (low, high), measured in found]
    near = [abs(((1 + low) * (1 + high)) ** 0.5 / (1 + measured) - 1) <= NEAR for (low, high), measured in found]
    assert statistics.mean(near) >= 0.9 and statistics.mean(inside) >= 0.8, (
        statistics.mean(near),
        statistics.mean(inside),
    )
    assert max((1 + high) / (1 + low) for (low, high), _ in found) < 1.4  # otherwise it could not be wrong
    assert sum(measured > 0.5 for _, measured in found) > 10  # the promise is also not that nothing is gained


def test_what_keeps_the_cpus_busy_is_not_hidden_by_faster_reads():
    """Three workers, each half waiting, fully use two CPUs: the share of waiting is not a gain."""
    load = Load(wait_ms=40.0, cpu_ms=40.0, step_wait_ms=1.0, spread=0.05)
    seen = summary_of(load, {"python": 1.0}, workers=3, cpus=2)
    before, after = (batches_per_s(one, 3, cpus=2) for one in (load, replace(load, wait_ms=0.0)))
    low, high = gains.without_stages(seen, "storage")
    assert low <= after / before - 1 <= high + 0.02 < 0.6
    assert 0.9 * 0.5 / (1 - 0.9 * 0.5) > 0.8  # the gain that the share would promise


@pytest.mark.parametrize("wait", ["border", "straggler"])
def test_what_the_loop_waits_for_besides_stays(wait):
    """One worker takes 40 ms per batch, steps take 10, and other work takes as long as decoding: removing decoding
    gains less than the factor two.
    """
    made = {"wall_ms": 40.0, "cpu_ms": 40.0, "pickle_ms": 0.0, "unpickle_ms": 0.0}
    seen = summary(waiting(production=0.75), made, workers=1, loop_s=200 * 0.04)
    assert gains.without_stages(seen, "decode")[0] > 2
    waits = waiting(production=0.375, **{wait: 0.5})
    low, high = gains.without_stages(but(seen, waits=waits, loop_s=200 * 0.08), "decode")
    assert 1 + low < 80 / (40 + 10) < 1 + high < 2


@pytest.mark.parametrize(("epochs", "start_s", "work_s"), [(2, 1.0, 1.0), (4, 0.5, 2.0), (20, 0.1, 0.5)])
def test_workers_that_persist_start_once(epochs, start_s, work_s):
    """Steps per second are measured without the first epoch's start, before and after."""
    whole = epochs * (start_s + work_s)
    seen = but(BY_CAUSE["worker_startup"], epochs=epochs, waits=waiting(startup=epochs * start_s / whole))
    low, high = named("worker_startup").gain(seen, seen.waits.startup)
    gained = (whole - start_s) / (epochs * work_s) - 1
    assert low < gained < high and (1 + high) / (1 + low) < 1.3
    once = replace(seen, loader={**LOADER, "persistent_workers": True})
    assert named("worker_startup").gain(once, 0.5)[0] == 0.0


def test_a_start_after_an_order_that_takes_longer_comes_back_for_its_forks_only():
    """The order is drawn while workers start: its 600 ms hide 230 ms of the start, except for 30 ms of forking."""
    epochs, steps_ms, start_ms, rest_ms = 10, 100.0, 230.0, 400.0
    whole = epochs * (steps_ms + start_ms) + (epochs - 1) * rest_ms
    waits = waiting(startup=epochs * start_ms / whole, border=(epochs - 1) * rest_ms / whole)
    loop_s = (whole - start_ms) / 1000
    seen = summary(waits, {"wall_ms": 1.0, "startup_ms": 200.0}, epochs=epochs, loop_s=loop_s)
    low, high = named("worker_startup").gain(seen, seen.waits.startup)
    assert low <= 1000 * loop_s / (1000 * loop_s - 30 * (epochs - 1)) - 1 <= high < 0.2
    quick = replace(seen, waits=waiting(startup=0.8, border=0.08))  # drawing the order did not take that long
    assert named("worker_startup").gain(quick, 0.8)[0] > 1
    filling = replace(seen, making=replace(seen.making, wall_ms=500.0))  # the loop waits for the first batch
    assert named("worker_startup").gain(filling, filling.waits.startup)[0] > 0.3


def test_a_full_shared_memory_that_costs_nothing_promises_nothing():
    """The cause is reported for its possible effect, not for its time."""
    costly = BY_CAUSE["shared_memory_limit"]
    (found,) = (v for v in evaluate(costly).verdicts if v.code == "shared_memory_limit")
    assert found.gain[0] > 0.2
    free = replace(costly, waits=waiting(production=0.02))
    (found,) = (v for v in evaluate(free).verdicts if v.code == "shared_memory_limit")
    assert found.gain == (0.0, 0.0)


def test_the_work_of_a_pool_stays():
    """Two workers whose threads fully use two CPUs: only waiting for CPUs can be saved, and the time for creating
    pools.
    """
    making = {"wall_ms": 48.0, "cpu_ms": 8.0, "stages": stages(python=0.75, storage=0.25), "nested_pools": 40}
    for pools in (0.0, 4.0):
        made = {**making, "pools_ms": pools}
        seen = summary(HALF, made, {"cpus": 2.0, "used_cpus": 1.8}, workers=2, step_ms=1.0)
        (found,) = (v for v in evaluate(seen).verdicts if v.code == "nested_pool")
        low, high = found.gain
        assert low == pytest.approx(48 / (36 - pools) / prediction.LONGER - 1, abs=0.02)
        assert high == pytest.approx(48 / (36 - 2.5 * pools) / prediction.SHORTER - 1, abs=0.02)


@pytest.mark.parametrize(("message_bytes", "objects"), [(400_000.0, True), (400.0, False)])
def test_objects_that_are_not_unpacked_need_not_be_let_go_of(message_bytes, objects):
    """Half of each cycle of 10 ms is hand-over; the step runs for 1 ms, which may or may not be spent freeing
    objects.
    """
    seen = summary(HALF, {"message_bytes": message_bytes, "unpickle_ms": 3.0}, step_cpu_ms=1.0, steps=100, loop_s=1.0)
    low, high = named("worker_handover").gain(seen, 0.5)
    assert (low, high) == (gains.of_share(seen, 0.5)[0], gains.of_share(seen, 0.6 if objects else 0.5)[1])


def test_reads_that_wait_for_no_device_may_take_the_kernel_less():
    """Two workers wait 96 of 100 ms for a disk and run for 4, half of it in the kernel; a step takes 1 ms."""
    made = {"wall_ms": 100.0, "cpu_ms": 4.0, "stages": stages(python=0.04, storage=0.96), "pickle_ms": 0.0}
    host = {"cpus": 4.0, "in_kernel": 0.5, "device_share": 1.0}
    seen = summary(HALF, {**made, "unpickle_ms": 0.0}, host, workers=2, step_ms=0.5)
    low, high = gains.without_stages(seen, "storage")
    assert 1 + low == pytest.approx(50 / 2 / prediction.LONGER, rel=0.05)
    assert 1 + high == pytest.approx(50 / 1 / prediction.SHORTER, rel=0.05)
    # for pages in the page cache and for other waits, the kernel's time remains
    cached = replace(seen, host=replace(seen.host, device_share=0.0))
    assert 1 + gains.without_stages(cached, "storage")[1] == pytest.approx(50 / 2 / prediction.SHORTER, rel=0.05)


@pytest.mark.parametrize(("made_ms", "much_faster"), [(40.0, True), (6.0, False)])
def test_a_loop_that_goes_round_much_faster_may_hand_over_in_less(made_ms, much_faster):
    """Two workers only transform; a step takes 1 ms, and receiving batches takes the loop's process 1 ms."""
    made = {
        "wall_ms": made_ms,
        "cpu_ms": made_ms,
        "stages": stages(transform=1.0),
        "pickle_ms": 0.0,
        "unpickle_ms": 1.0,
    }
    seen = summary(HALF, made, {"cpus": 8.0}, workers=2, step_ms=1.0, step_cpu_ms=0.0)
    low, high = gains.without_stages(seen, "transform")
    assert 1 + low == pytest.approx(made_ms / 2 / 2.0 / prediction.LONGER, rel=0.05)
    assert 1 + high == pytest.approx(made_ms / 2 / (1.5 if much_faster else 2.0) / prediction.SHORTER, rel=0.05)


@pytest.mark.parametrize(("waits", "left_over"), [(0.04, True), (0.08, False)])
def test_a_little_waiting_may_be_none_where_all_else_goes(waits, left_over):
    made = {"wall_ms": 50.0, "cpu_ms": 50 * (1 - waits), "stages": stages(transform=1 - waits, storage=waits)}
    seen = summary(HALF, {**made, "pickle_ms": 0.0, "unpickle_ms": 0.0}, {"cpus": 8.0}, workers=2, step_ms=0.2)
    low, high = gains.without_stages(seen, "transform")
    assert 1 + low == pytest.approx(25 / (25 * waits) / prediction.LONGER, rel=0.05)
    assert 1 + high == pytest.approx(25 / (0.2 if left_over else 25 * waits) / prediction.SHORTER, rel=0.25)


def test_memory_that_suffices_gives_back_the_kernels_search_for_pages_and_reading_again():
    """Two workers take 60 ms for a batch: 40 of waiting, 20 of CPU, three quarters of it in the kernel."""
    made = {"wall_ms": 60.0, "cpu_ms": 20.0, "stages": stages(python=1 / 3, storage=2 / 3), "pickle_ms": 0.0}
    host = {"cpus": 4.0, "in_kernel": 0.75, "memory_pressure": 0.4, "memory_events": 900, "io_pressure": 0.4}
    seen = summary(HALF, {**made, "unpickle_ms": 0.0}, host, workers=2, step_ms=1.0)
    (found,) = (v for v in evaluate(seen).verdicts if v.code == "memory_pressure")
    low, high = found.gain
    assert 1 + low < 30 / 2.5 < 1 + high and (1 + high) / (1 + low) < 1.4


def test_a_quota_that_is_raised_gives_what_the_workers_can_use():
    making = {"wall_ms": 16.0, "cpu_ms": 16.0, "stages": stages(python=1.0), "delayed": 0.7}
    seen = summary(
        waiting(production=0.9), making, {"cpus": 0.5, "quota_cpus": 0.5, "throttled": 0.6}, workers=2, step_ms=1.0
    )
    (found,) = (v for v in evaluate(seen).verdicts if v.code == "cpu_quota")
    assert 1 + found.gain[0] < 32 / 8 < 1 + found.gain[1]  # 0.5 CPUs, then two workers


def test_a_loop_without_its_synchronisation_waits_for_its_loader():
    quick = summary(synchronising=0.9, synchronising_calls=500.0)
    slow = replace(
        quick, making=replace(quick.making, wall_ms=36.0, cpu_ms=36.0)
    )  # four workers: 9 ms of the step's 10
    found = [
        evaluate(one).verdicts[0].gain
        for one in (replace(quick, workers=40, host=replace(quick.host, cpus=40.0)), slow)
    ]
    assert found[0][1] > 3 and found[1][1] < 0.35


def test_a_loop_without_its_synchronisation_goes_no_faster_than_its_loader_was_measured():
    """A step of 10 ms, nine of them in calls, and batches that take 1 ms in the model and 4 ms in a rung."""
    making = {"wall_ms": 1.0, "cpu_ms": 1.0, "stages": stages(python=1.0)}
    seen = summary(synchronising=0.9, synchronising_calls=500.0, workers=1, step_ms=10.0)
    seen = replace(seen, making=replace(seen.making, **making), host=replace(seen.host, cpus=4.0))
    modelled, measured = (evaluate(one).verdicts[0] for one in (seen, but(seen, rungs={1: 250.0})))
    assert modelled.code == measured.code == "loop_synchronisation"
    low, high = measured.gain
    assert 1 + low < 10 / 4 < 1 + high and high < modelled.gain[0]


@pytest.mark.parametrize("cause", sorted(set(BY_CAUSE) - {"unpinned_copy", "blocking_copy", "host_to_device"}))
def test_no_promise_is_too_wide_to_be_wrong(cause):
    """The gain for copies is undecided: how much a side stream hides is unknown until it is tried."""
    for verdict in evaluate(BY_CAUSE[cause]).verdicts:
        low, high = verdict.gain
        assert 0 <= low <= high and (1 + high) / (1 + low) < 2, (cause, verdict)


def test_half_of_the_time_is_twice_the_steps():
    low, high = gains.of_share(summary(HALF), 0.5)
    assert low < 1.0 < high and high - low < 0.5
    (found,) = evaluate(summary(HALF, {"stages": stages(collate=1.0), "wall_ms": 80.0}, {"cpus": 16.0})).verdicts
    assert found.code == "collate" and found.gain[1] > 0.5
