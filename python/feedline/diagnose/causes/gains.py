# SPDX-License-Identifier: Apache-2.0
"""What it would gain if a cause were gone altogether and all else stayed: what a verdict promises.

A cause's share of the time is not what its going gives back. Batches are made beside the loop, so what takes its place
as the slowest part sets the pace then: the step, another stage, or the CPUs. So what is left of a cycle comes from the
model wherever the cause is a part of it, and from the share only where the loop itself stood still meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from feedline.watching.model import loop_model, prediction, what_if
from feedline.watching.model.loop_model import Batch
from feedline.watching.summary.figures import Summary

Gain = tuple[float, float]
NOTHING: Gain = (0.0, 0.0)
_AGAIN = 1.1  # what the same script's cycles differ by, from run to run
_ONE_START = 0.25  # of the time: of one epoch a shorter start is not counted, and what is are workers that stop
_LATER = 0.5  # of a start: what an epoch begins later than that is no delay of the start itself
_FROM_DEVICE = 0.3  # of what is read
_MUCH_FASTER = 3.0
_LEFT_OVER = 0.05  # of a batch's making
_WARM = 0.5  # of the CPU of handing over: in planted loops 0.3 to 0.7 of it, where batches follow each other closely
_POOL = 2.5  # times what making it takes: the CPU of a pool of three threads, from first to last; of processes 1.3
_OBJECTS = 16384  # bytes of a message
_MOST_FREED = 1 / 3  # of what is left of a cycle: more would be a guess
_SHORTEST = 0.01  # of a cycle: what no share explains is not gone with all that are


def of_cause(cause: str, share: float, summary: Summary) -> Gain:
    """If this cause, which takes this share of the loop's time, were gone."""
    rule = _RULES.get(cause)
    return prediction.gain_of_share(share) if rule is None else rule(summary, share)


def of_share(summary: Summary, share: float) -> Gain:
    """The loop stood still for this share of its time, and now goes on. It was measured, and not modelled."""
    return _of_rest(1.0 - share / (1.0 - _first_start(summary)), _AGAIN, 1 / _AGAIN)


def without_stages(summary: Summary, *gone: str) -> Gain:
    """Batches are made without these of their stages; of "storage" goes what was waited for in files."""
    batch, stages = prediction.batch_of(summary), summary.making.stages or {}
    running = sum(part for name, part in stages.items() if name != "storage")
    kept = 1.0 - sum(stages.get(name, 0.0) for name in gone if name != "storage") / max(running, 1e-9)
    lighter = replace(batch, cpu=batch.cpu * kept)
    return of_reads(summary, lighter) if "storage" in gone else of_batch(summary, lighter)


def of_blocked(summary: Summary, _share: float) -> Gain:
    """Nothing is waited for outside of files: reading stays."""
    return of_batch(summary, what_if.without(summary, prediction.batch_of(summary), _in_files(summary, 0.0), 1.0))


def _in_files(summary: Summary, unseen: float) -> float:
    """Of the waiting, what was for files; `unseen`: where nobody looked."""
    seen = summary.making.waited_for
    return unseen if seen is None else seen.in_files


def of_reads(summary: Summary, batch: Batch) -> Gain:
    """Batches that cost this wait for no storage.

    A read that finds its bytes in memory takes the kernel less than one from a device: of the kernel's part of the CPU,
    which holds other work too, nothing goes at the low end, and all of it at the high one.
    """
    host, ready = summary.host, what_if.without(summary, batch, 1.0 - _in_files(summary, 1.0), 1.0)
    low, high = of_batch(summary, ready)
    if (host.device_share or 0.0) < _FROM_DEVICE or host.memory_events:
        return low, high
    return low, of_batch(summary, _without_kernel(summary, ready))[1]


def of_batch(summary: Summary, changed: Batch, cpus: float | None = None) -> Gain:
    """A batch costs this instead, or there are so many CPUs.

    What the run's cycle takes beyond the model's, as far as it is waits that have nothing to do with a batch, stays.
    Where the loop then goes round several times as fast, what it does for each batch takes less, as the CPU's caches
    still hold it, and a little waiting that was left over from booking the rest may have been none. How much that is
    nobody knows before.
    """
    available, prefetch = summary.host.cpus, prediction.prefetch_of(summary)
    workers = max(summary.workers, 1) if summary.native else summary.workers

    def cycle_ms(batch: Batch, cpus: float) -> float:
        return loop_model.cycle_ms(batch, workers, cpus, prefetch, workers)

    measured = prediction.batch_of(summary)
    now = cycle_ms(measured, available)
    then = min(cycle_ms(changed, cpus or available), now)
    quickest = then
    if then < now / _MUCH_FASTER:
        quickest = min(cycle_ms(_at_best(changed, measured), cpus or available), then)
    waits, first, current = summary.waits, _first_start(summary), prediction.current_ms(summary)
    beside = current * (waits.startup - first + waits.border + waits.straggler) / (1.0 - first)
    stays = min(beside, max(current - now, 0.0))
    low, high = (_of_rest((stays + one) / max(stays + now, 1e-9)) for one in (then, quickest))
    return low[0], high[1]


def _at_best(batch: Batch, measured: Batch) -> Batch:
    waiting = batch.waiting if measured.waiting > _LEFT_OVER * measured.made else 0.0
    return replace(
        batch,
        waiting=waiting,
        ahead=min(batch.ahead, waiting),
        packing=batch.packing * _WARM,
        unpacking=batch.unpacking * _WARM,
        drawing=batch.drawing * _WARM,
    )


def of_startup(summary: Summary, share: float) -> Gain:
    """Workers start once instead of in each epoch; what is paid once already comes back only from lighter starts.

    The loop's process draws the order while they start. Where an epoch begins clearly later than that and the making of
    a batch explain, it is the order that is waited for, and of a start only what precedes the worker's first line comes
    back.
    """
    waits, making, epochs = summary.waits, summary.making, summary.epochs
    if epochs < 2 or summary.loader.get("persistent_workers"):
        return 0.0, of_share(summary, share)[1]
    share -= _first_start(summary)
    whole_ms = 1000 * summary.loop_s / (1.0 - _first_start(summary))
    start_ms, border_ms = waits.startup * whole_ms / epochs, waits.border * whole_ms / (epochs - 1)
    if border_ms > max(_LATER * start_ms, making.wall_ms) and making.startup_ms is not None:
        share *= 1.0 - min(making.startup_ms / max(start_ms, 1e-9), 1.0)
    return of_share(summary, share)


def of_pools(summary: Summary, _share: float) -> Gain:
    """Workers do themselves what their pools did, without the waits for them. That work stays, and no pool is made.

    At the high end goes what a pool's own threads and its end cost, too, which nothing has told of.
    """
    waiting = (summary.making.stages or {}).get("storage", 0.0)
    running = summary.making.wall_ms * (1.0 - waiting)  # with the CPU of other threads
    batch, pools = prediction.batch_of(summary), summary.making.pools_ms
    own = _without_waiting(summary, replace(batch, cpu=max(batch.cpu, running)))
    low, high = (replace(own, cpu=max(own.cpu - pools * times, 0.0)) for times in (1.0, _POOL))
    return of_batch(summary, low)[0], of_batch(summary, high)[1]


def of_calls(summary: Summary, share: float) -> Gain:
    """A step without the calls that take this share of the time, and the loader at the pace that was measured alone."""
    batch, gone = prediction.batch_of(summary), share * prediction.current_ms(summary)
    step = max(batch.step - gone, 0.0)
    measured, modelled = summary.rungs.get(summary.workers), prediction.loader_rate(summary, summary.workers)
    if measured and modelled:
        batch = prediction.slower(batch, modelled / measured)
    return of_batch(summary, replace(batch, step=step, step_cpu=min(batch.step_cpu, step)))


def of_handover(summary: Summary, share: float) -> Gain:
    """Batches arrive at once. Objects that were unpacked are let go of too, in the step, for as much CPU at most."""
    low, high = of_share(summary, share)
    if summary.making.message_bytes < _OBJECTS:  # of tensors, it says where they lie
        return low, high
    unpacking = prediction.batch_of(summary).unpacking
    freed = min(summary.step_cpu_ms, unpacking) / max(prediction.current_ms(summary), 1e-9)
    left = 1.0 - share / (1.0 - _first_start(summary))
    return low, of_share(summary, share + min(freed, _MOST_FREED * left))[1]


def of_quota(summary: Summary, _share: float) -> Gain:
    """As many CPUs as there are processes to use them."""
    return of_batch(summary, prediction.batch_of(summary), cpus=summary.workers + 1.0)


def of_memory(summary: Summary, _share: float) -> Gain:
    """Pages stay: nothing is read again, and the kernel does not look for pages to let go."""
    running = _without_kernel(summary, prediction.batch_of(summary))
    return of_batch(summary, _without_waiting(summary, running))


def of_drawing(summary: Summary, _share: float) -> Gain:
    return of_batch(summary, replace(prediction.batch_of(summary), drawing=0.0))


def of_shared_memory(summary: Summary, share: float) -> Gain:
    """It is named for what it may do. What it takes is hand-over, or nothing."""
    return of_share(summary, share) if summary.waits.handover >= share else NOTHING


def _without_kernel(summary: Summary, batch: Batch) -> Batch:
    return replace(batch, cpu=batch.cpu * (1.0 - (summary.host.in_kernel or 0.0)))


def _without_waiting(summary: Summary, batch: Batch) -> Batch:
    return what_if.without(summary, batch, waiting=0.0, decoding=1.0)


def _stages(*gone: str) -> Callable[[Summary, float], Gain]:
    return lambda summary, _share: without_stages(summary, *gone)


# Causes whose rule promises what a number of workers gives bring their own; others keep half to all of their share.
_RULES: dict[str, Callable[[Summary, float], Gain]] = {
    "collate": _stages("collate"),
    "cpu_decode": _stages("decode"),
    "cpu_transform": _stages("transform", "python"),
    "storage_latency": _stages("storage"),
    "storage_bandwidth": _stages("storage"),
    "small_files": _stages("storage"),
    "blocked_outside_files": of_blocked,
    "worker_handover": of_handover,
    "epoch_border": of_share,
    "straggling_sample": of_share,
    "straggling_rank": of_share,
    "worker_startup": of_startup,
    "nested_pool": of_pools,
    "loop_synchronisation": of_calls,
    "cpu_quota": of_quota,
    "memory_pressure": of_memory,
    "python_main_process": of_drawing,
    "shared_memory_limit": of_shared_memory,
}


def _first_start(summary: Summary) -> float:
    """Share of the workers' very first start, which the steps per second leave out."""
    startup = summary.waits.startup
    if summary.epochs < 2 and startup <= _ONE_START:
        return 0.0
    return min(startup / max(summary.epochs, 1), 1.0 - _SHORTEST)


def _of_rest(rest: float, longer: float = prediction.LONGER, shorter: float = prediction.SHORTER) -> Gain:
    """Of a cycle, this part is left, and it may be so much longer or shorter."""
    rest = max(rest, _SHORTEST)
    return max(1 / (rest * longer) - 1, 0.0), max(1 / (rest * shorter) - 1, 0.0)
