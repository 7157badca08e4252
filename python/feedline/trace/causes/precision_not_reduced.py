# SPDX-License-Identifier: Apache-2.0
"""Matrix products and convolutions do not use the GPU's Tensor Cores."""

from __future__ import annotations

from ...findings import Entry, Threshold
from ..intervals import EMPTY
from ..rules import Analysis, Cause

VOLTA = Threshold(7, "compute capability's major number: the first with Tensor Cores")
MOST_PLAIN = Threshold(0.5, "of the matrix time on Tensor Cores: above this, precision is already reduced")


def _evaluate(analysis: Analysis) -> None:
    assert analysis.device is not None
    facts = analysis.device.tensor_cores()
    majors = [p.get("computeMajor") for p in analysis.trace.device_properties]
    major = max((major for major in majors if isinstance(major, int)), default=0)
    if not major:
        analysis.findings.abstain("the GPU's compute capability (deviceProperties)", "precision_not_reduced")
        return
    if major < VOLTA or facts["share_of_matrix_time"] is None or facts["share_of_matrix_time"] >= MOST_PLAIN:
        return
    spent = facts["plain_matrix_ms"] * 1e6
    per_step = analysis.durations / analysis.durations.sum() * spent
    analysis.findings.add(
        "precision_not_reduced",
        EMPTY,
        0.6,
        [
            f"{facts['plain_matrix_ms']:.1f} ms in products and convolutions whose names show no Tensor Cores, "
            f"{1 - facts['share_of_matrix_time']:.0%} of such time (inferred from names)"
        ],
        "torch.autocast with bfloat16 (float16 and GradScaler before Ampere); channels a multiple of 8",
        gained=(0.3, 0.8),
        per_step=per_step,
    )


CAUSE = Cause(
    Entry(
        code="precision_not_reduced",
        verb="trace",
        title="matrix products and convolutions do not use the GPU's Tensor Cores",
        means="Tensor Cores multiply bfloat16, float16 and TF32 matrices several times faster than float32.",
        recognised="Inferred from kernel names of cuBLAS, cuDNN and CUTLASS, which is noted in the finding.",
        to_do="Use autocast; make channels a multiple of 8.",
        abstains="The trace does not have the GPU's compute capability.",
        example="387.7 ms in products and convolutions whose names show no Tensor Cores, 100% of such time.",
    ),
    priority=80,
    evaluate=_evaluate,
    of_device=True,
)
