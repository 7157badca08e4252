# SPDX-License-Identifier: Apache-2.0
"""A label names a combination that never existed."""

from ..drivers import AS_OF, CUDA_OF_TORCH, FIRST_WITH_CUDNN_9
from ..labels import parts_of
from ..rules import AGAINST, Analysis, Check, Problems, page, problem


def _evaluate(analysis: Analysis) -> Problems:
    parts = parts_of(analysis.label)
    torch, cuda, cudnn = parts.get("torch", ""), parts.get("cuda", ""), parts.get("cudnn", "")
    numbers = torch.split(".")
    minor = int(numbers[1]) if len(numbers) > 1 and numbers[0] == "2" and numbers[1].isdigit() else -1
    why = []
    if (
        cuda
        and minor in CUDA_OF_TORCH
        and not any(one == cuda or one.startswith(f"{cuda}.") for one in CUDA_OF_TORCH[minor])
    ):
        why.append(f"torch {torch} was published for CUDA {', '.join(CUDA_OF_TORCH[minor])}, not {cuda}")
    if cudnn and minor >= 0 and (minor >= FIRST_WITH_CUDNN_9) != (cudnn.partition(".")[0] == "9"):
        why.append(f"torch {torch} comes with cuDNN {9 if minor >= FIRST_WITH_CUDNN_9 else 8}, not {cudnn}")
    if why:
        yield problem(
            "label_impossible", "error", *why,
            fix="Check the image's content: run feedline env snapshot inside, and compare", label=analysis.label,
        )  # fmt: skip


CHECK = Check(
    page(
        code="label_impossible",
        title="an image's label names versions that were never published together",
        means="PyTorch published no wheel of that version for that CUDA or cuDNN: the label is wrong, or the build is "
        "somebody's own.",
        recognised=f"The label is compared with the table of PyTorch's releases as of {AS_OF}.",
        to_do="Check the image's content instead of its label.",
        abstains="The table does not have that torch.",
        example="torch 2.9 was published for CUDA 12.6, 12.8, 13.0, not 11.8",
    ),
    AGAINST + 10,
    _evaluate,
)
