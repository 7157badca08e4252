# SPDX-License-Identifier: Apache-2.0
"""The advised numbers of workers and prefetched batches, by CPUs, ranks, storage and sample size."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from made_hosts import GB, GPU, GPU_HOST, GROUP, IN_GROUP, Host, allowed, cpus, examined, meminfo

from feedline.doctor import screen
from feedline.doctor.advice import enough_ahead
from feedline.doctor.examination import Request
from feedline.machine.worker_count import worker_count

SPINS = {"sys/dev/block/8:1/queue/rotational": "1\n"}
SSD = {"sys/dev/block/8:1/queue/rotational": "0\n"}
FEW = {"a.tar": 10**6}
LOCAL = "ext4 /dev/sda1 rw"


def one_thread_per_core(count: int) -> dict[str, str]:
    siblings = "sys/devices/system/cpu/cpu{0}/topology/thread_siblings_list"
    return {**cpus(count), **{siblings.format(cpu): f"{cpu}\n" for cpu in range(count)}}


@pytest.mark.parametrize(
    ("host", "workers", "prefetch", "why"),
    [
        (Host(), 10, 2, "16 usable CPUs on 8 physical cores; one thread is left for the training loop, and workers"),
        (Host(one_thread_per_core(16)), 15, 2, "16 usable CPUs; one thread is left for the training loop"),
        (Host(cpus(1)), 1, 2, "1 usable CPU, which the worker and the training loop must share"),
        (Host(cpus(2)), 1, 2, "2 usable CPUs on 1 physical core;"),
        (Host({"proc/self/status": allowed("0-5")}), 5, 2, "6 usable CPUs; one thread is left"),
        (Host({**IN_GROUP, f"{GROUP}/cpu.max": "250000 100000\n"}), 2, 2, "3 usable CPUs;"),
        (Host(cpus(64), request=Request(ranks=8, workers=1)), 5, 2, "64 usable CPUs on 32 physical cores for 8 ranks;"),
        (Host(mount="nfs4 server:/x rw", source_files=FEW), 12, 2, "the file server, not the CPUs, may limit the rate"),
        (Host(mount="fuse.s3fs s3fs rw", source_files=FEW), 30, 2, "two workers per other thread wait for object"),
        (Host(SPINS, mount=LOCAL, source_files=FEW), 4, 2, "a spinning disk seeks more often"),
        (Host({**SPINS, **cpus(4)}, mount=LOCAL, source_files=FEW), 2, 2, "4 usable CPUs on 2 physical cores; one"),
        (Host(SSD, mount=LOCAL, source_files=FEW), 12, 2, "workers use half of the cores' second threads"),
        (Host(mount="tmpfs tmpfs rw", source_files=FEW), 12, 2, "second threads, which is advised for memory"),
        (Host(request=Request(batch_bytes=100_000, batch_size=64)), 10, 4, "one thread is left"),
        (Host(request=Request(batch_bytes=400_000_000, batch_size=4)), 10, 1, "one thread is left"),
        (Host({"proc/meminfo": meminfo(MemAvailable=20 * GB)}, request=Request(batch_bytes=500_000_000)), 10, 1, "one"),
        (Host({"proc/meminfo": meminfo(MemAvailable=8 * GB)}, request=Request(batch_bytes=500_000_000)), 4, 1, "one"),
    ],
    ids=(
        *("two threads per core", "one thread per core", "1 CPU", "one core", "a mask", "a quota", "8 ranks", "NFS"),
        *("s3fs", "a disk that spins", "a disk and few cores", "an SSD", "memory", "tiny samples", "large samples"),
        *("less ahead where memory is short", "fewer workers where it is shorter"),
    ),
)
def test_begin_at(host: Host, workers: int, prefetch: int, why: str, tmp_path: Path) -> None:
    advice = examined(host, tmp_path).advice
    assert (advice.workers, advice.prefetch) == (workers, prefetch)
    assert advice.why and "usable CPU" in advice.why[0] and why in advice.why[0]


def test_fast_storage_has_more_workers_and_the_loop_has_a_thread() -> None:
    assert [worker_count(16, 8, 1, kind).workers for kind in ("disk", None, "ssd", "nvme", "remote")] == [
        4,
        10,
        12,
        12,
        30,
    ]
    for threads in range(2, 130):
        for cores in {threads, threads // 2}:
            assert 1 <= worker_count(threads, cores, 1, "nvme").workers < threads


@pytest.mark.parametrize(
    ("names", "pin", "words"),
    [
        (["NVIDIA H100 80GB HBM3"], True, "over PCIe, which is faster from page-locked memory"),
        (["NVIDIA H100 80GB HBM3"] * 8, True, "NVLink connects only the GPUs with each other, so it does not change"),
        (["NVIDIA GH200 480GB"], True, "NVLink-C2C, several times as fast as PCIe"),
        (["Orin (nvgpu)"], False, "shares the CPU's memory"),
    ],
)
def test_the_link_to_the_gpu_changes_the_advice_or_is_said_not_to(names, pin, words, tmp_path: Path) -> None:
    gpus = tuple(replace(GPU, index=index, name=name) for index, name in enumerate(names))
    seen = examined(GPU_HOST.but(gpus=gpus), tmp_path)
    assert seen.advice.pin is pin and words in seen.advice.link
    assert any(words in line.text for line in screen.lines(seen))
    assert any(f"pin_memory={pin} (" in line.text for line in screen.lines(seen))


def test_a_machine_without_a_gpu_has_no_advice_on_pinning(tmp_path: Path) -> None:
    seen = examined(Host(), tmp_path)
    assert seen.advice.pin is None and not seen.advice.link
    assert not any("pin_memory" in line.text for line in screen.lines(seen))


def test_a_bucket_is_known_by_its_url(tmp_path: Path) -> None:
    from made_hosts import MadeGpus, build

    from feedline.doctor.examination import examine

    root, _ = build(Host(), tmp_path)
    seen = examine(root, MadeGpus(Host()), {}, "s3://bucket/{000..146}.tar")
    assert seen.advice.workers == 30 and seen.analysis.source is not None and seen.analysis.source.scheme == "s3"
    assert any("the size of" in sentence for sentence in seen.unseen)


@pytest.mark.parametrize(("size", "ahead"), [(None, 2), (1_000, 4), (600_000, 2), (50_000_000, 1)])
def test_what_is_enough_ahead(size: int | None, ahead: int) -> None:
    assert enough_ahead(size) == ahead
