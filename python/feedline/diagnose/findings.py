# SPDX-License-Identifier: Apache-2.0
"""What a diagnosis says: causes, and what could not be seen."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

CAUSES = (
    "compute_bound",
    "storage_latency",
    "storage_bandwidth",
    "small_files",
    "blocked_outside_files",
    "cpu_decode",
    "cpu_transform",
    "python_main_process",
    "collate",
    "worker_handover",
    "host_to_device",
    "unpinned_copy",
    "blocking_copy",
    "too_few_workers",
    "oversubscribed",
    "cpu_quota",
    "memory_pressure",
    "shared_memory_limit",
    "worker_startup",
    "epoch_border",
    "straggling_sample",
    "straggling_rank",
    "loop_synchronisation",
    "nested_pool",
    "precision_not_reduced",
)


@dataclass(frozen=True)
class Verdict:
    cause: str
    share: float  # of the loop's time
    confidence: float
    evidence: list[str]
    counter_evidence: list[str]
    fix: str
    predicted_gain: tuple[float, float]  # share more batches per second, [low, high]


@dataclass(frozen=True)
class Abstention:
    cause: str
    missing: str  # the signal, and the cheapest way to get it


@dataclass(frozen=True)
class Diagnosis:
    verdicts: list[Verdict] = field(default_factory=list)  # the largest share first
    abstained: list[Abstention] = field(default_factory=list)
    more_workers: str | None = None  # why more workers will not help, or how many will, or how many fewer
    drop_in: str | None = None  # what Feedline's loader in the place of torch's was measured to gain

    def as_dict(self) -> dict[str, Any]:
        return {
            "verdicts": [{**asdict(v), "predicted_gain": list(v.predicted_gain)} for v in self.verdicts],
            "abstained": [asdict(a) for a in self.abstained],
            "more_workers": self.more_workers,
            "drop_in": self.drop_in,
        }
