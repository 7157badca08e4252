# SPDX-License-Identifier: Apache-2.0
"""Parses image labels and looks up the installed versions by the same names."""

from __future__ import annotations

import re

from ..machine.packages import normalised
from .scan import Environment

_PART = re.compile(
    r"([A-Za-z][A-Za-z0-9_.]*(?:-[A-Za-z0-9_]+)*?)(?:\s*(?:==|=|:)\s*|\s+|-)?v?(\d+(?:\.\d+)*)?(?=[\s,;+/]|-[A-Za-z]|$)"
)
_ALSO = {"pytorch": "torch", "opencv": "opencv-python", "cuda-toolkit": "cuda", "py": "python"}


def parts_of(label: str) -> dict[str, str]:
    """Parses ``torch 2.9, CUDA 12.8, pandas`` into {"torch": "2.9", "cuda": "12.8", "pandas": ""}.

    Names and versions may be separated by a space, ``=``, ``:`` or ``-``; entries by a space, comma, ``+`` or ``-``.
    """
    found = {}
    for name, version in _PART.findall(label):
        plain = normalised(name)
        found[_ALSO.get(plain, plain)] = version
    return found


def content_of(seen: Environment) -> dict[str, str]:
    """Returns the installed versions by label name, including conda packages."""
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
