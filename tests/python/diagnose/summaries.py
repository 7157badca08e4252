# SPDX-License-Identifier: Apache-2.0
"""Generated summaries: an idle four-core machine, and the changes that each cause makes to its figures."""

from dataclasses import fields, replace

from feedline.profiler.summary.figures import Blocks, Copies, Gpu, Host, Making, Summary, WaitedFor, WaitLocation, Waits

LOADER = {"num_workers": 4, "batch_size": 32, "persistent_workers": False, "native": False, "cuda": False}
EVEN = {"storage": 0.0, "decode": 0.0, "transform": 0.0, "python": 0.0, "collate": 0.0}


def waiting(packed=None, packed_cpu=None, **shares):
    return Waits(**shares, step=1 - sum(shares.values()), packed=packed, packed_cpu=packed_cpu)


def stages(**shares):
    return {**EVEN, **shares}


IN_FILES = WaitedFor(60, {"file": 1.0})
OF_STORE = WaitedFor(60, {"store": 0.95, "sleep": 0.05}, (WaitLocation("store", "train.py:8 in __getitem__()", 0.95),))
ASLEEP = WaitedFor(60, {"sleep": 1.0}, (WaitLocation("sleep", "train.py:8 in __getitem__()", 1.0),))


GROUP_OF = {
    figure.name: group
    for group in ("loop", "on_device", "of_ranks", "ladder", "profiling")
    for figure in fields(getattr(Summary(), group))
}


def but(measured, **figures):
    """Returns the same summary with other figures, in any of its groups."""
    for name, value in figures.items():
        group = GROUP_OF.get(name)
        change = {name: value} if group is None else {group: replace(getattr(measured, group), **{name: value})}
        measured = replace(measured, **change)
    return measured


def summary(waits=None, making=None, host=None, **others):
    """200 steps of 10 ms; all waits are included in the loop's time."""
    waits = waits or waiting(production=0.02)
    step_s = 200 * 0.010
    made = {
        "batches": 200,
        "wall_ms": 80.0,
        "cpu_ms": 79.0,
        "stages": stages(decode=1.0),
        "busy": 0.95,
        "delayed": 0.05,
        "pickle_ms": 0.1,
        "unpickle_ms": 0.1,
        "message_bytes": 400.0,
        "sample_ms": 0.6,
        "waited_for": IN_FILES,
    }
    machine = {
        "cpus": 4.0,
        "used_cpus": 3.6,
        "wanted_cpus": 3.8,
        "others_cpus": 0.1,
        "step_delayed": 0.02,
        "throttled": 0.0,
        "memory_pressure": 0.0,
        "memory_events": 0,
        "io_pressure": 0.0,
        "read_bytes_per_s": 0.0,
        "read_bytes_per_sample": 100e3,
        "device_share": 0.0,
    }
    whole = {
        "steps": 200,
        "loop_s": step_s / max(waits.step, 0.01),
        "step_ms": 10.0,
        "wait_ms": 10.0 * waits.loader / max(waits.step, 0.01),
        "epochs": 2,
        "workers": 4,
        "loader": LOADER,
        "synchronising_calls": 0.0,
        "synchronising": 0.0,
        "overhead_share": 0.004,
    }
    measured = Summary(
        waits=waits,
        making=Making(**{**made, **(making or {})}),
        host=Host(**{**machine, **(host or {})}),
    )
    return but(measured, **{**whole, **others})


CUDA = {**LOADER, "cuda": True}
FLOAT32 = {"type": "cuda", "capability": 80, "elements": {"torch.float32": 25_000_000}, "matmul_precision": "highest"}
BUSY = Gpu((0,), "A100", 80, utilisation=0.96, lowest=0.9, highest=1.0, memory_bytes=80 << 30)
IDLE = Gpu((0,), "A100", 80, utilisation=0.3, lowest=0.1, highest=0.9, memory_bytes=80 << 30)


def on_gpu(*copies, waits=None, gpu=BUSY, device=None, **others):
    """200 steps of 10 ms on a GPU, 100 of them watched; in lower precision unless `device` has other values."""
    reduced = {**FLOAT32, "autocast": ["torch.bfloat16"]}
    return summary(waits, loader=CUDA, watched_steps=100, copies=copies, gpu=gpu, device=device or reduced, **others)


def copied(device_ms, pinned=False, asked=False, **others):
    """Copies two tensors of 20 MB in total per step."""
    return Copies(pinned, asked, per_step=2, bytes_per_step=20e6, host_ms=9.0, device_ms=device_ms, timed=200, **others)


HALF = waiting(production=0.5)
BY_CAUSE = {
    "compute_bound": summary(),
    "storage_latency": summary(HALF, {"stages": stages(storage=1.0), "cpu_ms": 2.0}),
    "storage_bandwidth": summary(
        HALF,
        {"stages": stages(storage=1.0), "cpu_ms": 2.0},
        {"read_bytes_per_s": 480e6, "disk_ceiling_bytes_per_s": 500e6, "device_share": 1.0},
    ),
    "small_files": summary(
        HALF,
        {"stages": stages(storage=1.0), "cpu_ms": 2.0},
        {"read_bytes_per_sample": 9e3, "device_share": 0.9, "read_bytes_per_s": 3e6},
    ),
    "blocked_outside_files": summary(HALF, {"stages": stages(storage=1.0), "cpu_ms": 2.0, "waited_for": ASLEEP}),
    "remote_storage": summary(HALF, {"stages": stages(storage=1.0), "cpu_ms": 2.0, "waited_for": OF_STORE}),
    "compressed_blocks": summary(
        HALF, {"reading": 0.9, "blocks": Blocks(120 * 10**9, 10**9)}, loader={**LOADER, "native": True}
    ),
    "cpu_decode": summary(HALF),
    "cpu_transform": summary(HALF, {"stages": stages(transform=0.6, python=0.4)}),
    "python_main_process": summary(HALF, {"busy": None}, workers=0, loader={**LOADER, "num_workers": 0}),
    "collate": summary(HALF, {"stages": stages(collate=1.0)}),
    "worker_handover": summary(waiting(handover=0.5), {"pickle_ms": 4.0, "unpickle_ms": 4.0, "message_bytes": 5e5}),
    "too_few_workers": summary(
        HALF, {"wall_ms": 40.0, "cpu_ms": 39.0}, {"used_cpus": 2.0, "wanted_cpus": 2.1}, workers=2
    ),
    "oversubscribed": summary(HALF, {"delayed": 0.7}, {"wanted_cpus": 12.0}, workers=16),
    "cpu_quota": summary(HALF, host={"throttled": 0.5, "quota_cpus": 1.5}),
    "memory_pressure": summary(HALF, host={"memory_pressure": 0.4, "memory_events": 12}),
    "shared_memory_limit": summary(waiting(handover=0.3), {"busy": 0.2}, {"shared_memory_used": 0.97}),
    "worker_startup": summary(waiting(startup=0.5), {"startup_ms": 900.0}),
    "epoch_border": summary(waiting(border=0.5)),
    "straggling_sample": summary(waiting(straggler=0.5), {"slowest_sample_ms": 400.0, "slowest_sample": 7}),
    "straggling_rank": summary(waiting(production=0.02), ranks=(0.02, 0.6, 0.02, 0.03)),
    "loop_synchronisation": summary(synchronising=0.6, synchronising_calls=500.0),
    "nested_pool": summary(HALF, {"stages": stages(python=0.8, decode=0.2), "nested_pools": 40}),
    "host_to_device": on_gpu(copied(6.0, pinned=True, asked=True)),
    "unpinned_copy": on_gpu(copied(6.0)),
    "blocking_copy": on_gpu(copied(6.0, pinned=True)),
}
# reported together with compute_bound, which comes first
BESIDE_COMPUTING = {"precision_not_reduced": on_gpu(device=FLOAT32)}


def without(measured, signal, **host):
    """Returns the same summary with one signal missing."""
    return replace(measured, missing={signal: "not here"}, host=replace(measured.host, **host))
