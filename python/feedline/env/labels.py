# SPDX-License-Identifier: Apache-2.0
"""Parses image labels and the versions in guides, and finds the installed versions of the packages that they name."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..machine.packages import normalised
from .scan import Environment

_VERSION = r"v?\d+(?:\.\d+)*"
_PART = re.compile(
    r"(?<![\w.])(?!v\d)([A-Za-z][A-Za-z0-9_.]*(?:-[A-Za-z0-9_]+)*?)(?:\s*(?:==|(>=)|=|:)\s*|\s+|-)?"
    rf"({_VERSION}(?:\s*(?:/|\||\bor\b)\s*{_VERSION})*(?:\+(?![\w.]))?)?(?=[\s,;+/|()]|-[A-Za-z]|$)"
)
# Forms that are rewritten to names and versions separated by spaces.
_REWRITTEN = (
    (r"\b([A-Za-z]+)-([A-Za-z]+)-v(\d+(?:\.\d+)*)\b", r"\1 \3, \2"),  # PyTorch-CUDA-v2.9 is torch 2.9 with CUDA
    # Names of environments: vision_torch2.9_cu128
    (r"\b[A-Za-z][\w-]*_((?:py)?torch\d+(?:\.\d+)*)(?:_(cu\d+)|_cpu|_mps)?(?![\w.])", r"\1 \2"),
    (r"\bpytorch-cuda(?=\s*[=:\d])", "cuda"),  # conda's package for the version of CUDA
    (r"\bnvidia-(cudnn|nccl)-cu\d+\b", r"\1"),
    (r"\bcu(1\d)(\d)\b", r"cuda \1.\2"),  # as in the tags of wheels
    (r"\b(pytorch|torch|cuda|cudnn|nccl|python|py)(\d+(?:\.\d+)*)\b", r"\1 \2"),  # as in the tags of images: cuda12.8
)
_WORDS = ("or", "and", "with", "for", "on", "the", "plus", "runtime", "devel", "latest")
_ALSO = {
    "pytorch": "torch", "opencv": "opencv-python", "cuda-toolkit": "cuda", "py": "python",
}  # fmt: skip


@dataclass(frozen=True)
class Wanted:
    """The versions that a label allows: one of `choices` (any version if empty), or a later one if `or_later`."""

    choices: tuple[str, ...] = ()
    or_later: bool = False

    @property
    def text(self) -> str:
        return " or ".join(self.choices) + ("+" if self.or_later else "")

    def allows(self, version: str) -> bool:
        """Whether a version is one of the choices, which may be shorter: 2.9 allows 2.9.1+cu128."""
        if not self.choices:
            return True
        if self.or_later:
            return _numbers(version) >= _numbers(self.choices[0])
        return any(version == one or version.startswith((f"{one}.", f"{one}+")) for one in self.choices)


def parts_of(label: str) -> dict[str, Wanted]:
    """Parses ``torch 2.9, CUDA 11.8/12.1, pandas`` into the wanted versions of torch, cuda and pandas.

    A name and its version may be separated by a space, ``=``, ``:`` or ``-``, and entries by a space, comma, ``+``,
    ``/`` or ``-``. ``11.8/12.1`` and ``11.8 or 12.1`` are alternatives, ``11+`` and ``>=11`` are 11 or later,
    ``PyTorch-CUDA-v2.9``, the name of an image, is torch 2.9 with CUDA, ``2.9.1-cuda12.8-cudnn9`` is a tag, and
    ``vision_torch2.9_cu128`` the name of an environment.
    """
    found = {}
    for pattern, form in _REWRITTEN:
        label = re.sub(pattern, form, label, flags=re.IGNORECASE)
    for name, least, version in _PART.findall(label):
        plain = normalised(name)
        if plain not in _WORDS:
            choices = tuple(re.findall(r"\d+(?:\.\d+)*", version))
            or_later = bool(choices) and (least == ">=" or version.endswith("+"))
            found[_ALSO.get(plain, plain)] = Wanted(choices, or_later)
    return found


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version.partition("+")[0])))


def content_of(seen: Environment) -> dict[str, str]:
    """Returns the installed versions of Python and conda packages by the names used in labels."""
    found = {one.name: one.version for one in seen.packages}
    found |= {one.name: one.version for one in seen.first.values()}
    for name in ("opencv-python-headless", "opencv-contrib-python", "py-opencv"):
        if name in found:
            found.setdefault("opencv-python", found[name])
    if seen.place.python:
        found["python"] = seen.place.python
    if seen.torch is not None:
        found["torch"] = seen.torch.version
        if seen.torch.cuda:
            found["cuda"] = seen.torch.cuda
    cudnn = next((found[name] for name in found if re.fullmatch(r"(nvidia-)?cudnn(-cu\d+)?", name)), None)
    if cudnn:
        found["cudnn"] = cudnn
    return found
