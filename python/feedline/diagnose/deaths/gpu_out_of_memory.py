# SPDX-License-Identifier: Apache-2.0
"""An allocation on the GPU failed."""

from __future__ import annotations

from feedline.diagnose.rules.death import DeadRun, Death, Died, page, raised_text

_TEXT = r"(CUDA|HIP|XPU) out of memory|CUDA error: out of memory|CUBLAS_STATUS_ALLOC_FAILED|NVML_SUCCESS == r INTERNAL"


def _evaluate(run: DeadRun) -> Died | None:
    error = run.error(_TEXT, "OutOfMemoryError")
    if error is None:
        return None
    evidence = [raised_text(error)]
    if "reserved by PyTorch but unallocated" in error.message:
        evidence.append("memory that PyTorch has reserved but not allocated is listed in the message: see the last fix")
    batch = run.setting("batch_size")
    smaller = f" (now {batch})" if batch else ""
    fixes = (
        f"Use a smaller batch_size{smaller}, and accumulate gradients over several batches to keep the effective size.",
        "Check that no other process uses the GPU: `feedline top` shows its memory and processes.",
        "Use autocast with bfloat16, activation checkpointing, or set_to_none=True in zero_grad().",
        "Do not keep losses or outputs with their graphs between steps: store loss.item() or loss.detach().",
        "If much memory is reserved but unallocated, set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.",
    )
    return Died(f"an allocation on the GPU failed{error.where}", tuple(evidence), fixes)


DEATH = Death(
    page(
        "gpu_out_of_memory",
        "the GPU's memory is exhausted",
        means="The model, its gradients, the optimiser's state and the activations of a batch do not fit into the "
        "memory that other processes leave.",
        recognised="The run ended with torch's OutOfMemoryError, or with a memory error from the driver or cuBLAS.",
        to_do="Use smaller batches with gradient accumulation; free memory of other processes; use lower precision or "
        "activation checkpointing; release graphs; defragment the allocator.",
        example="OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
    ),
    priority=20,
    evaluate=_evaluate,
)
