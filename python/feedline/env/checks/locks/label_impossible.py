# SPDX-License-Identifier: Apache-2.0
"""A label names a combination that never existed."""

from ....findings import Abstention
from ...drivers import AS_OF, CUDA_OF_TORCH, CUDA_UNKNOWN, FIRST_WITH_CUDNN_9
from ...labels import Wanted, parts_of
from ...rules import AGAINST, Analysis, Check, Problems, page, problem

_NOTHING = Wanted()


def _evaluate(analysis: Analysis) -> Problems:
    parts = parts_of(analysis.label)
    cuda, cudnn = parts.get("cuda", _NOTHING), parts.get("cudnn", _NOTHING)
    if not (cuda.choices or cudnn.choices) or cuda.or_later or cudnn.or_later:
        return
    for torch in parts.get("torch", _NOTHING).choices:
        minor = _minor_of(torch)
        if minor not in CUDA_OF_TORCH:
            yield Abstention(
                "label_impossible", f"torch {torch} is not in the table of PyTorch's releases as of {AS_OF}"
            )
            continue
        why = []
        published, unknown = CUDA_OF_TORCH[minor], (*CUDA_UNKNOWN.get(minor, ()), *_newer(minor, cuda.choices))
        if wrong := [one for one in cuda.choices if not _is_in(one, (*published, *unknown))]:
            why.append(f"torch {torch} was published for CUDA {', '.join(published)}, not {' or '.join(wrong)}")
        own = "9" if minor >= FIRST_WITH_CUDNN_9 else "8"
        if wrong := [one for one in cudnn.choices if one.partition(".")[0] != own]:
            why.append(f"torch {torch} comes with cuDNN {own}, not {' or '.join(wrong)}")
        if why:
            yield problem(
                "label_impossible", "error", *why,
                fix="Check the image's content: run feedline env snapshot in the image, and compare the versions",
                label=analysis.label,
            )  # fmt: skip
        elif missing := [one for one in cuda.choices if not _is_in(one, published)]:
            build = f"a build of torch {torch} for CUDA {' or '.join(missing)}"
            yield Abstention("label_impossible", f"{build} is neither in the table as of {AS_OF} nor excluded by it")


def _minor_of(torch: str) -> int:
    numbers = torch.split(".")
    return int(numbers[1]) if len(numbers) > 1 and numbers[0] == "2" else -1


def _is_in(version: str, known: tuple[str, ...]) -> bool:
    return any(one == version or one.startswith(f"{version}.") or version.startswith(f"{one}.") for one in known)


def _newer(minor: int, choices: tuple[str, ...]) -> tuple[str, ...]:
    """Returns versions of CUDA that are newer than all known builds of the newest torch: later wheels may have them."""
    newest = max(tuple(map(int, one.split("."))) for one in CUDA_OF_TORCH[minor])
    return tuple(one for one in choices if minor == max(CUDA_OF_TORCH) and tuple(map(int, one.split("."))) > newest)


CHECK = Check(
    page(
        code="label_impossible",
        title="an image's label names versions that were never published together",
        means="PyTorch published no wheel of that version for that CUDA or cuDNN: the label is wrong, or the build "
        "is not from PyTorch.",
        recognised=f"The label is compared with the table of PyTorch's releases as of {AS_OF}.",
        to_do="Check the image's content instead of its label.",
        abstains="The table does not contain that version of torch, or is not complete for that CUDA.",
        example="torch 2.9 was published for CUDA 12.6, 12.8, 13.0, not 11.8",
    ),
    AGAINST + 10,
    _evaluate,
)
