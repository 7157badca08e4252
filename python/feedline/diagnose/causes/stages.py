# SPDX-License-Identifier: Apache-2.0
"""What making a batch takes: decoding, transforms, collation."""

from __future__ import annotations

from feedline.diagnose.causes import storage
from feedline.diagnose.causes.case import Case, stage_sentence


def stages(case: Case) -> None:
    making = case.summary.making
    per_batch = f"a batch takes {making.wall_ms:.1f} ms to make, {making.cpu_ms:.1f} ms of it CPU"
    split = stage_sentence(case.summary.making.stages)
    needs = ("stages", "processes")
    collate = case.stage_share("collate")
    case.name("collate", collate, 0.92, [per_batch, split], needs=needs)
    storage.storage(case, [per_batch, split])
    transform = case.stage_share("transform", "python")
    evidence = [per_batch, split]
    if making.transforms:
        slowest = ", ".join(f"{name} {ms:.2f} ms" for name, ms in list(making.transforms.items())[:3])
        evidence.append(f"per sample: {slowest}")
    case.name("cpu_decode", case.stage_share("decode"), 0.92, [per_batch, split], needs=needs)
    case.name("cpu_transform", transform, 0.9, evidence, needs=needs)
