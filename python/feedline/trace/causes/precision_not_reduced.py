# SPDX-License-Identifier: Apache-2.0
"""Matrix products and convolutions do not use the GPU's Tensor Cores."""

from __future__ import annotations

from ...findings import Entry, Threshold
from ..intervals import EMPTY
from ..rules import Analysis, Cause

VOLTA = Threshold(7, "lowest major version of the compute capability with Tensor Cores")
MOST_PLAIN = Threshold(0.5, "fraction of the matrix time on Tensor Cores above which the precision is already reduced")


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
            f"{facts['plain_matrix_ms']:.1f} ms in matrix products and convolutions whose kernel names do not "
            "indicate Tensor Cores, "
            f"{1 - facts['share_of_matrix_time']:.0%} of the time of such kernels (inferred from names)"
        ],
        "use torch.autocast with bfloat16 (float16 and GradScaler before Ampere), and channel counts that are "
        "multiples of 8",
        gained=(0.3, 0.8),
        per_step=per_step,
    )


CAUSE = Cause(
    Entry(
        code="precision_not_reduced",
        verb="trace",
        title="matrix products and convolutions do not use the GPU's Tensor Cores",
        means="Tensor Cores multiply bfloat16, float16 and TF32 matrices several times as fast as float32 matrices. "
        "Autocast does not silently fall back to float32 because of a library's version; a trace shows the "
        "kernels that ran.",
        recognised="Inferred from the kernel names of cuBLAS, cuDNN and CUTLASS, as the finding notes.",
        to_do="Use autocast, and channel counts that are multiples of 8.",
        abstains="The trace does not contain the GPU's compute capability.",
        example="387.7 ms in matrix products and convolutions whose kernel names do not indicate Tensor Cores, 100% "
        "of the time of such kernels.",
    ),
    priority=80,
    evaluate=_evaluate,
    of_device=True,
)
