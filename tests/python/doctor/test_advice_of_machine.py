# SPDX-License-Identifier: Apache-2.0
"""How many workers and batches ahead to begin with, by CPUs, ranks, storage, and the size of a sample."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_hosts import GB, GROUP, IN_GROUP, Host, allowed, cpus, examined, meminfo

from feedline.doctor.advice import enough_ahead
from feedline.doctor.examination import Request

SPINS = {"sys/dev/block/8:1/queue/rotational": "1\n"}
FEW = {"a.tar": 10**6}


@pytest.mark.parametrize(
    ("host", "workers", "prefetch"),
    [
        (Host(), 15, 2),
        (Host(cpus(1)), 1, 2),
        (Host({"proc/self/status": allowed("0-5")}), 5, 2),
        (Host({**IN_GROUP, f"{GROUP}/cpu.max": "250000 100000\n"}), 2, 2),
        (Host(cpus(64), request=Request(ranks=8, workers=1)), 7, 2),
        (Host(mount="nfs4 server:/x rw", source_files=FEW), 15, 2),
        (Host(mount="fuse.s3fs s3fs rw", source_files=FEW), 30, 2),
        (Host(SPINS, mount="ext4 /dev/sda1 rw", source_files=FEW), 4, 2),
        (Host(request=Request(batch_bytes=100_000, batch_size=64)), 15, 4),
        (Host(request=Request(batch_bytes=400_000_000, batch_size=4)), 15, 1),
        (Host({"proc/meminfo": meminfo(MemAvailable=38 * GB)}, request=Request(batch_bytes=500_000_000)), 15, 1),
        (Host({"proc/meminfo": meminfo(MemAvailable=8 * GB)}, request=Request(batch_bytes=500_000_000)), 4, 1),
    ],
    ids=(
        *("16 CPUs", "1 CPU", "a mask", "a quota", "8 ranks", "NFS", "s3fs", "a disk that spins", "tiny samples"),
        *("large samples", "less ahead where memory is short", "fewer workers where it is shorter"),
    ),
)
def test_begin_at(host: Host, workers: int, prefetch: int, tmp_path: Path) -> None:
    advice = examined(host, tmp_path).advice
    assert (advice.workers, advice.prefetch) == (workers, prefetch)
    assert advice.why and "usable CPU" in advice.why[0]


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
