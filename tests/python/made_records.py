# SPDX-License-Identifier: Apache-2.0
"""Run records for tests, as the commands create them, with generated figures."""

from __future__ import annotations

import copy
import functools
from typing import Any

from feedline import record
from feedline.bench.record import BATCH_STAGES, of_bench
from feedline.profiler.summary.figures import Host, Loop, Making, Summary, Waits

STAGE_MS = {"storage": 20.0, "decode": 60.0, "transform": 20.0, "batch": 2.0}
BATCH = 50


def bench(
    rate: float = 1000.0,
    spread: float = 0.02,
    stages: dict[str, float] | None = None,
    machine: dict[str, Any] | None = None,
    storage: dict[str, Any] | None = None,
    software: dict[str, Any] | None = None,
    threads: int = 4,
    subject: str = "photos",
) -> dict[str, Any]:
    """A record of ``feedline bench``: `stages` in ms of all threads per batch of 50."""
    made = {**_envelope(), "subject": subject}
    made["machine"] = {"host": "a", "cpu": "X", "cpus": 8, "cpus_allowed": 4, "quota_cpus": None, "usable_cpus": 4.0}
    made["machine"] |= machine or {}
    made["storage"] = {"kind": "nvme", "file_system": "ext4"} | (storage or {})
    made["packages"] = {}
    made["software"] = {"python": "3.11.7", "pillow": "13.0.0"} | (software or {})
    times = STAGE_MS | (stages or {})
    result = {
        "source": subject,
        "samples": 2000,
        "batch_size": BATCH,
        "size": 224,
        "feedline": {
            "threads": threads,
            "images": 100 * BATCH,
            "images_per_s": rate,
            "cpu_s_per_1000_images": 1.5,
            "first_batch_s": 0.2,
            "held_bytes_peak": 1 << 20,
            "stages": {name: _stage(name, ms) for name, ms in times.items()},
        },
        "decode_limit": {"images_per_s": 2 * rate},
        "share_of_limit": 0.5,
    }
    waits = [BATCH / rate * (1 + spread * (-1) ** (i // 10)) for i in range(100)]
    arrivals = [(sum(waits[: i + 1]), BATCH, wait) for i, wait in enumerate(waits)]
    return of_bench({**made, "wall_s": 12.5}, result, arrivals)


@functools.cache
def _envelope() -> dict[str, Any]:
    return record.envelope("bench", ["feedline", "bench", "photos"], "photos", began=1.8e9)


def _stage(name: str, ms: float) -> dict[str, float]:
    batches, each = 100, 1 if name in BATCH_STAGES else BATCH
    return {
        "items": batches * each,
        "bytes": 1e6 * batches,
        "busy_s": ms * batches / 1000,
        "us_per_item": 1000 * ms / each,
        "items_per_s_and_thread": each / ms * 1000,
        "blocked_s": 0.25,
        "starved_s": 0.5,
    }


def diagnosis() -> dict[str, Any]:
    """The output of ``feedline diagnose --json``."""
    stages = {"storage": 0.5, "decode": 0.3, "transform": 0.1, "python": 0.05, "collate": 0.05}
    summary = Summary(
        loop=Loop(
            steps=200,
            loop_s=10.0,
            step_ms=20.0,
            wait_ms=30.0,
            wait_percentiles_ms={"p50": 12.0, "p90": 70.0, "p99": 150.0, "max": 180.0},
            epochs=2,
        ),
        workers=4,
        loader={"batch_size": 32, "num_workers": 4, "pid": 7, "cuda": True, "transforms": ["Resize"]},
        waits=Waits(production=0.5, straggler=0.06, handover=0.04, step=0.4),
        making=Making(batches=200, wall_ms=120.0, cpu_ms=60.0, stages=stages, pickle_ms=2.0),
        host=Host(cpus=4.0, read_bytes_per_s=5e7),
    )
    rung = {"batches_per_s": 20.0, "low": 19.0, "high": 21.0, "batches": 40, "kept": True}
    verdict = {
        "cause": "storage_latency",
        "share": 0.5,
        "confidence": 0.95,
        "evidence": ["a batch takes 120 ms to make"],
        "counter_evidence": ["other programs used 1.2 CPUs"],
        "fix": "Have more reads under way.",
        "predicted_gain": [0.4, 0.9],
    }
    return copy.deepcopy(
        {
            "schema": "feedline.diagnosis/1",
            "command": ["python", "train.py"],
            "exit_status": 0,
            "wall_s": 14.0,
            "verdicts": [verdict],
            "answer": {
                "text": "set num_workers=8: 40% to 90% more batches per second, for the loader over Photos",
                "change": "set num_workers=8",
                "loader": "the loader over Photos",
                "gain": [0.4, 0.9],
                "basis": "predicted",
            },
            "abstained": [{"cause": "host_to_device", "missing": "no GPU"}],
            "more_workers": "8 workers would help",
            "step_ms": 20.0,
            "wait_ms": 30.0,
            "overhead_share": 0.004,
            "summary": summary.as_dict(),
            "experiments": {
                "rungs": [{"workers": 1, **rung}, {"workers": 4, **rung, "batches_per_s": 60.0, "high": 63.0}],
                "refused": None,
            },
            "what_if": [{"workers": 1, "batches_per_s": 18.0}],
            "notes": ["this kernel has no /proc/pressure"],
        }
    )


STEPS = [(0.05 * i, 30.0 + i % 7, 20.0) for i in range(200)]
