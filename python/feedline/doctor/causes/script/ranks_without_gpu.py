# SPDX-License-Identifier: Apache-2.0
"""The launcher starts more processes than there are GPUs."""

from __future__ import annotations

from collections.abc import Iterator

from ...rules import BROKEN, Analysis, Cause, Found, page


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    gpus = len(analysis.machine.gpus)
    listed = analysis.machine.environment.get("CUDA_VISIBLE_DEVICES")
    if listed:
        gpus = min(gpus, sum(bool(name.strip()) for name in listed.split(",")))
    if gpus and analysis.ranks is not None and analysis.ranks > gpus:
        has = f"{gpus} GPU{'s' if gpus > 1 else ''} can be used"
        yield Found("critical", (f"the launcher starts {analysis.ranks} processes, but {has}",))


CAUSE = Cause(
    page(
        "ranks_without_gpu",
        "the launcher starts more processes than there are GPUs",
        means="--nproc_per_node does not detect GPUs: a number N starts N processes. torch.cuda.set_device(rank) "
        "fails with `invalid device ordinal` in those without a GPU, or several processes share one GPU, which NCCL "
        "refuses. NCCL itself is selected by init_process_group('nccl').",
        recognised="The launcher's number of processes per node exceeds the GPUs of this machine, or those in "
        "CUDA_VISIBLE_DEVICES.",
        to_do="torchrun --nproc_per_node=gpu, which counts the GPUs.",
        example="the launcher starts 8 processes, but 4 GPUs can be used.",
    ),
    priority=BROKEN + 35,
    evaluate=_evaluate,
)
