# SPDX-License-Identifier: Apache-2.0
"""Compares the model of a loop with a simulation, and tests predictions for other settings."""

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulated_loader import Load, batches_per_s
from summaries import BY_CAUSE, HALF, LOADER, but, stages, summary, waiting

from feedline.diagnose import report
from feedline.diagnose.more_workers import more_workers
from feedline.profiler.model import prediction
from feedline.profiler.model.loop_model import Batch, cycle_ms
from feedline.profiler.model.what_if import by_workers_and_depth, what_if, with_samples


def batch_of(load):
    return Batch(
        waiting=load.wait_ms,
        cpu=load.cpu_ms,
        packing=load.pack_ms,
        unpacking=load.unpack_ms,
        step=load.step_wait_ms + load.step_cpu_ms,
        step_cpu=load.step_cpu_ms,
        spread=load.spread,
    )


def predicted(load, workers, prefetch, cpus):
    return 1000 / cycle_ms(batch_of(load), workers, cpus, prefetch)


def test_the_model_is_what_a_simulated_loop_does():
    draw = random.Random(42)  # not the seed with which the model's only constant was determined
    off = []
    for case in range(80):
        made, waits = draw.uniform(5, 80), draw.random()
        workers = draw.choice([0, 1, 2, 3, 4, 8])
        load = Load(
            wait_ms=made * waits,
            cpu_ms=made * (1 - waits),
            pack_ms=draw.choice([0.0, 2.0]) if workers else 0.0,
            unpack_ms=draw.choice([0.0, 2.0]) if workers else 0.0,
            step_wait_ms=draw.uniform(0, 30),
            step_cpu_ms=draw.uniform(0, 20),
            spread=draw.choice([0.05, 0.2, 0.5, 1.0]),
        )
        prefetch, cpus = draw.choice([1, 2, 4]), draw.choice([2, 4, 8])
        real = batches_per_s(load, workers, prefetch, cpus, batches=300, seed=case)
        off.append(abs(predicted(load, workers, prefetch, cpus) / real - 1))
    assert sum(error <= 0.2 for error in off) >= 0.9 * len(off)
    assert max(off) < 0.5


def test_fifty_against_thirty_needs_two_producers_and_no_prefetching():
    """W1: a batch costs 50 ms and the device 30 ms. Prefetching does not remove the wait, a second worker does."""
    load = Load(wait_ms=0.0, cpu_ms=50.0, step_wait_ms=30.0, spread=0.05)
    for prefetch in (2, 8):
        assert batches_per_s(load, 1, prefetch) == pytest.approx(20.0, rel=0.05)
        assert predicted(load, 1, prefetch, 4) == pytest.approx(20.0, rel=0.05)
    assert batches_per_s(load, 2) == pytest.approx(1000 / 30, rel=0.05)
    assert predicted(load, 2, 2, 4) == pytest.approx(1000 / 30, rel=0.05)


def test_prefetching_evens_out_batches_that_differ():
    load = Load(wait_ms=30.0, cpu_ms=0.0, step_wait_ms=30.0, spread=0.8)
    real = [batches_per_s(load, 1, prefetch, batches=2000) for prefetch in (1, 8)]
    model = [predicted(load, 1, prefetch, 4) for prefetch in (1, 8)]
    assert real[1] > 1.15 * real[0] and model[1] > 1.15 * model[0]
    assert model == pytest.approx(real, rel=0.15)


def test_workers_in_turn_wait_for_the_slowest_of_them():
    load = Load(wait_ms=60.0, cpu_ms=0.0, step_wait_ms=2.0, spread=1.0)
    real = batches_per_s(load, 4, prefetch=1, batches=3000)
    assert real < 0.8 * 4000 / 60
    assert predicted(load, 4, 1, 4) == pytest.approx(real, rel=0.15)


@pytest.mark.parametrize("workers", [0, 1, 2, 4])
@pytest.mark.parametrize("prefetch", [1, 2, 6])
def test_one_long_batch_holds_up_all_after_it(workers, prefetch):
    """One of 40 batches takes 30 times as long: workers that could make 4 times as many in total make far fewer."""
    usual = 40 / 69
    times = tuple(30 * usual if number == 23 else usual for number in range(40))
    load = Load(wait_ms=40.0, cpu_ms=0.0, step_wait_ms=5.0, times=times)
    real = batches_per_s(load, workers, prefetch, batches=800)
    batch = replace(batch_of(load), times=times)
    assert 1000 / cycle_ms(batch, workers, 4, prefetch) == pytest.approx(real, rel=0.03)
    if workers == 4 and prefetch < 6:
        assert real < 0.75 * 1000 / 10


def test_an_epoch_begins_with_its_order_and_a_whole_batch():
    batch = Batch(waiting=10.0, order=30.0, epoch=4)
    # two workers prefetch one batch each: order, two batches at once, and two more
    assert cycle_ms(batch, 2, 4, prefetch=1) == pytest.approx((30 + 10 + 10) / 4)
    assert cycle_ms(batch, 4, 4, prefetch=1) == pytest.approx((30 + 10) / 4)
    assert cycle_ms(batch, 0, 4) == pytest.approx(10 + 30 / 4)
    stepping = replace(batch, step=20.0)
    # the next batch is made during a step; the loop waits for the first one in every epoch
    assert cycle_ms(stepping, 1, 4, prefetch=2) == pytest.approx((30 + 10 + 4 * 20) / 4)
    long = replace(batch, epoch=5000)  # too long to simulate
    assert cycle_ms(long, 1, 4) == pytest.approx(10 + 30 / 5000)


def test_fewer_cpus_than_one_slow_every_number_of_workers():
    batch = Batch(cpu=15.0, step=3.0, step_cpu=3.0)
    for workers in (0, 1, 4):
        assert cycle_ms(batch, workers, 0.3) == pytest.approx(18 / 0.3)


def test_what_experiments_saw_of_the_hand_over_is_the_loops_and_the_workers():
    measured = summary(making={"wall_ms": 4.0, "cpu_ms": 4.0, "sent_ms": 3.0, "received_ms": 2.0, "exchange_ms": 6.0})
    assert prediction.loader_rate(measured, 8) == pytest.approx(1000 / 8, rel=0.02)  # the loop receives one at a time
    assert prediction.loader_rate(measured, 0) == pytest.approx(1000 / 4, rel=0.02)  # none is sent


def test_a_full_disk_gives_no_more_to_more_workers():
    disk = {"read_bytes_per_s": 23e6, "disk_ceiling_bytes_per_s": 24e6, "device_share": 1.0}
    reading = {"wall_ms": 500.0, "cpu_ms": 5.0, "stages": stages(storage=1.0)}
    full = summary(HALF, reading, disk, workers=3)
    rates = [prediction.loader_rate(full, workers) for workers in (1, 3, 6)]
    assert rates == pytest.approx([6.0, 6.0, 6.0], rel=0.05)
    assert "will not help: the disk is saturated" in more_workers(full, [])
    free = replace(full, host=replace(full.host, read_bytes_per_s=5e6))
    assert prediction.loader_rate(free, 6) == pytest.approx(12.0, rel=0.05)


def test_cpu_of_a_datasets_own_threads_is_not_waiting():
    own = {"wall_ms": 50.0, "cpu_ms": 5.0, "stages": stages(python=0.9, storage=0.1)}
    measured = summary(HALF, own, {"cpus": 2.0}, workers=2)
    assert prediction.batch_of(measured).waiting == pytest.approx(5.0)
    assert prediction.loader_rate(measured, 8) == pytest.approx(2 * 1000 / 45, rel=0.05)


def test_cpu_of_a_pool_inside_a_worker_is_not_waiting():
    """The worker waits for its child processes: the run used 1.5 CPUs, and its workers and its loop a tenth of one."""
    pool = {"wall_ms": 40.0, "cpu_ms": 4.0, "stages": stages(python=0.1, storage=0.9), "nested_pools": 2}
    measured = summary(making=pool, host={"cpus": 2.0, "used_cpus": 1.5}, workers=2, loop_s=4.0)  # 20 ms per step
    batch = prediction.batch_of(measured)
    assert batch.waiting == pytest.approx(10.2, abs=0.5) and batch.cpu == pytest.approx(29.8, abs=0.5)
    assert prediction.loader_rate(measured, 8) == pytest.approx(2 * 1000 / 30, rel=0.03)
    storage = replace(measured, making=replace(measured.making, nested_pools=0))
    assert prediction.loader_rate(storage, 8) == pytest.approx(8 * 1000 / 40, rel=0.05)


def test_threads_begin_an_epoch_by_no_clock_of_the_loops():
    loader = {**LOADER, "native": True}
    own = summary(waiting(border=0.2), {"wall_ms": 10.0, "cpu_ms": 10.0}, loader=loader, workers=1, epochs=20)
    border = 0.2 * 1000 * own.loop.loop_s / 19  # ms at the start of each further epoch; ten batches of 10 ms each
    assert prediction.loader_rate(own, 1) == pytest.approx(10_000 / (100 + border), rel=0.1)


def test_a_measured_rung_leaves_the_start_of_workers_to_the_loop():
    anew = summary(waiting(startup=0.5), making={"wall_ms": 10.0, "cpu_ms": 10.0}, rungs={4: 1000 / 15})
    assert prediction.cycle_ms(anew, 4) == pytest.approx(25.0, rel=0.05)  # a second per epoch of 100 batches


@given(st.floats(0.2, 5), st.integers(0, 8), st.lists(st.floats(0.1, 9), max_size=30), st.integers(0, 20))
def test_a_loader_that_is_slower_by_a_factor_gives_so_many_batches_fewer(factor, workers, times, epoch):
    batch = Batch(waiting=9.0, cpu=5.0, packing=1.0, unpacking=0.5, exchange=0.2, drawing=0.1, order=20.0, epoch=epoch)
    batch = replace(batch, times=tuple(times))
    cycle = cycle_ms(prediction.with_loader_taking(batch, factor), workers, 2)
    assert cycle == pytest.approx(factor * cycle_ms(batch, workers, 2))


def test_a_measured_rung_sets_the_pace_of_the_loop():
    fast = summary(making={"wall_ms": 40.0, "cpu_ms": 2.0}, rungs={4: 1000 / 30, 8: 1000 / 4})  # steps of 10 ms
    assert prediction.cycle_ms(fast, 4) == pytest.approx(30.0, rel=0.05)
    assert prediction.cycle_ms(fast, 8) == pytest.approx(10.0, rel=0.05)
    assert prediction.cycle_ms(but(fast, rungs={}), 4) == pytest.approx(10.5, rel=0.1)
    assert prediction.cycle_ms(but(fast, rungs={0: 1000 / 30}), 0) == pytest.approx(40.0, rel=0.01)


def test_what_next_does_itself_no_number_of_workers_shortens():
    measured = summary(making={"next_cpu_ms": 40.0, "wall_ms": 20.0, "cpu_ms": 20.0})
    assert prediction.loader_rate(measured, 4) == pytest.approx(1000 / 40, rel=0.02)
    assert prediction.loader_rate(measured, 0) == pytest.approx(1000 / 60, rel=0.02)
    borders = but(measured, order_ms=500.0)
    assert prediction.loader_rate(borders, 4) < prediction.loader_rate(measured, 4)


ms = st.floats(0, 500)


@given(ms, ms, ms, ms, st.floats(0, 2), st.integers(1, 16), st.integers(1, 8), st.floats(0.5, 64))
def test_nothing_that_helps_makes_slower(reads, cpu, step, packing, spread, workers, prefetch, cpus):
    batch = Batch(waiting=reads, cpu=cpu, step=step, packing=packing, spread=spread)
    cycle = cycle_ms(batch, workers, cpus, prefetch)
    assert cycle >= 0.98 * max(step, (reads + cpu + packing) / workers) - 1e-6  # the window may divide a round
    assert cycle_ms(batch, workers, cpus, prefetch + 1) <= 1.02 * cycle + 1e-6
    assert cycle_ms(batch, workers, 2 * cpus, prefetch) <= cycle + 1e-6
    assert cycle_ms(replace(batch, waiting=0.0), workers, cpus, prefetch) <= cycle + 1e-6


@given(ms, ms, st.integers(1, 12), st.integers(1, 4), st.integers(0, 40), ms)
def test_more_workers_with_cpus_of_their_own_harm_nothing(made, step, workers, prefetch, epoch, order):
    batch = Batch(waiting=made, step=step, order=order, epoch=epoch)
    cycles = [cycle_ms(batch, n, 1000, prefetch) for n in (0, workers, workers + 1)]
    assert cycles[0] >= cycles[1] - 1e-6 and cycles[1] >= cycles[2] - 1e-6
    if epoch == 0:
        assert cycles[1] == pytest.approx(max(step, made / workers), rel=0.02, abs=1e-6)


@given(st.lists(st.floats(0, 10), min_size=1, max_size=60), st.integers(0, 6), st.integers(1, 6), st.integers(0, 30))
def test_measured_times_of_any_kind_stay_within_the_limits(times, workers, prefetch, epoch):
    mean = sum(times) / len(times)
    batch = Batch(waiting=10.0, step=7.0, times=tuple(times), epoch=epoch)
    cycle = cycle_ms(batch, workers, 1000, prefetch)
    most = 7.0 + 10.0 * max([*times, mean, 1.0])
    assert 7.0 - 1e-6 <= cycle <= most + 1e-6
    assert cycle_ms(batch, workers, 1000, prefetch + 1) <= 1.02 * cycle


def changes_of(measured):
    return {change.change: change for change in what_if(measured)}


def test_each_kind_of_change_is_answered():
    parts = stages(storage=0.5, decode=0.3, transform=0.2)
    measured = summary(HALF, {"stages": parts, "wall_ms": 80.0, "cpu_ms": 40.0}, workers=2)
    found = changes_of(measured)
    assert {"num_workers=1", "num_workers=3", "num_workers=4", "num_workers=8", "prefetch_factor=4",
            "batch_size=16", "batch_size=64",
            "packed into shards", "decoded once (--raw, or a cache)"} == set(found)  # fmt: skip
    assert prediction.advised_workers(measured, prediction.within_reach(measured)) == 8
    assert found["num_workers=4"].gain[0] == pytest.approx(1.0, abs=0.05)  # 40 ms per batch become 20
    shards = found["packed into shards"]
    assert (shards.low, shards.high) == pytest.approx((1000 / 22, 1000 / 20), rel=0.02)
    # 24 ms of CPU and the reading are removed, or all but a fifth of the CPU time
    once = found["decoded once (--raw, or a cache)"]
    assert (once.low, once.high) == pytest.approx((1000 / 10.5, 1000 / 10.1), rel=0.06)


def test_larger_batches_gain_only_where_the_step_does_not_grow():
    bound = changes_of(summary(making={"wall_ms": 2.0, "cpu_ms": 2.0}))["batch_size=64"]
    assert bound.gain == pytest.approx((0.0, 1.0), abs=0.05)
    # four workers make 32 samples in 20 ms, whatever the batch size
    starved = changes_of(summary(HALF))["batch_size=64"]
    assert starved.gain == pytest.approx((0.0, 0.0), abs=0.05)


def test_a_batch_of_twice_the_samples_costs_twice_as_much_to_make():
    batch = Batch(waiting=3.0, cpu=5.0, packing=1.0, unpacking=0.5, step=7.0, spread=0.4)
    twice = with_samples(batch, 2.0)
    assert twice.made == pytest.approx(16.0) and twice.step == 7.0 and twice.spread < batch.spread


def test_larger_batches_have_fewer_borders_and_even_out():
    batch = Batch(waiting=10.0, disk=2.0, order=30.0, epoch=9, times=(1.0, 3.0, 0.0, 0.0, 1.0))
    twice = with_samples(batch, 2.0)
    assert (twice.disk, twice.order, twice.epoch, twice.times) == (4.0, 30.0, 4, (2.0, 0.0))
    assert with_samples(batch, 0.5).epoch == 18 and with_samples(batch, 0.5).times == batch.times
    assert with_samples(replace(batch, epoch=0), 2.0).epoch == 0


def test_workers_that_start_in_every_epoch_are_part_of_the_loop_and_not_of_the_ladder():
    anew = summary(waiting(startup=0.5), making={"wall_ms": 10.0, "cpu_ms": 10.0})  # 2 epochs of 100 steps of 10 ms
    assert prediction.cycle_ms(anew, 4) == pytest.approx(20.0, rel=0.05)
    assert prediction.cycle_ms(replace(anew, waits=waiting()), 4) == pytest.approx(10.0, rel=0.05)
    assert prediction.loader_rate(anew, 4) == prediction.loader_rate(replace(anew, waits=waiting()), 4)


@pytest.mark.parametrize("cause", BY_CAUSE)
def test_whatever_was_measured_the_changes_are_rates(cause):
    for change in what_if(BY_CAUSE[cause]):
        assert 0 < change.low <= change.high and change.now > 0


def test_threads_are_not_prefetched():
    own = summary(HALF, loader={**LOADER, "class": "feedline.Loader", "native": True})
    assert not any(change.startswith("prefetch") for change in changes_of(own))


def test_the_text_and_nothing_for_nothing():
    lines = report._changes(BY_CAUSE["too_few_workers"])
    assert "what if" in lines[1] and any("num_workers=4" in line and "+" in line for line in lines)
    assert report._changes(but(BY_CAUSE["cpu_decode"], steps=0)) == []


def test_the_table_by_workers_and_depth_has_the_present_and_the_advised_number():
    for cause, measured in BY_CAUSE.items():
        rates = by_workers_and_depth(measured, {7})
        if measured.native:
            assert rates == {}, cause
            continue
        assert measured.workers in rates and 7 in rates, cause
        advised = prediction.advised_workers(measured, prediction.within_reach(measured))
        assert advised is None or advised in rates
        now = what_if(measured)[0].now
        present = rates[measured.workers]
        assert present[prediction.prefetch_of(measured) if measured.workers else 0] == pytest.approx(now)
        for workers, row in rates.items():
            assert list(row) == ([0] if workers == 0 else [1, 2, 4, 8])


def test_a_loop_without_workers_is_predicted_for_several():
    measured = replace(BY_CAUSE["cpu_decode"], workers=0)
    assert {0, 1, 2, 4} <= set(by_workers_and_depth(measured))
    assert {"num_workers=1", "num_workers=2", "num_workers=4"} <= {one.change for one in what_if(measured)}


def test_the_table_agrees_with_the_predictions_of_single_changes():
    measured = BY_CAUSE["cpu_decode"]
    rates = by_workers_and_depth(measured)
    singles = {one.change: one.low for one in what_if(measured)}
    for workers, row in rates.items():
        if f"num_workers={workers}" in singles:
            assert row[prediction.prefetch_of(measured)] == pytest.approx(singles[f"num_workers={workers}"])


def test_the_report_prints_the_table_with_marks():
    measured = BY_CAUSE["cpu_decode"]
    lines = report._by_depth(measured, {measured.workers + 1})
    assert lines[1].endswith("by num_workers (rows) and prefetch_factor (columns)")
    assert lines[2].split() == ["1", "2", "4", "8"]
    assert [line.split()[-1] for line in lines if line.endswith(("now", "advised"))].count("now") == 1
    assert any(line.endswith("advised") and line.split()[0] == str(measured.workers + 1) for line in lines)
    assert report._by_depth(replace(measured, loop=replace(measured.loop, steps=0)), set()) == []
