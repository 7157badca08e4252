# SPDX-License-Identifier: Apache-2.0
"""Reads torch's build information from the text of torch/version.py."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ..torch_indexes import label_of
from .wheels import read_text

_MACRO = re.compile(r"^#define AT_(\w+?)(?:_ENABLED)?(?:\(\))? ([01])\b", re.MULTILINE)
_HEADERS = ("include/ATen/Config.h", "include/ATen/cuda/CUDAConfig.h")
_SETTINGS = ("cudnn", "mkl", "mkldnn", "magma", "nnpack", "parallel_openmp", "build_with_blas", "build_with_lapack")
_LINE = re.compile(r"^(\w+)(?:\s*:[^=]+)?\s*=\s*(None|'[^']*'|\"[^\"]*\")", re.MULTILINE)


@dataclass(frozen=True)
class TorchBuild:
    """A build of torch.

    Attributes:
        version: version of torch, such as ``2.13.0+cu130``.
        cuda: version of CUDA, such as ``13.0``; None for builds without CUDA. `hip` alike.
        folder: folder of the package.
    """

    version: str
    cuda: str | None
    hip: str | None
    folder: Path

    @cached_property
    def settings(self) -> Mapping[str, bool]:
        """Whether torch was built with cuDNN, MKL, oneDNN (``mkldnn``) and others, from its headers; empty without
        headers.
        """
        text = "\n".join(read_text(self.folder / name) or "" for name in _HEADERS)
        found = {name.lower(): value == "1" for name, value in _MACRO.findall(text)}
        return {name: found[name] for name in _SETTINGS if name in found}

    @property
    def is_cpu(self) -> bool:
        return self.cuda is None and self.hip is None

    @property
    def release(self) -> tuple[int, int] | None:
        """The version as a tuple such as (2, 13), or None if it cannot be parsed."""
        found = re.match(r"(\d+)\.(\d+)", self.version)
        return (int(found[1]), int(found[2])) if found else None

    @property
    def device(self) -> str:
        """The label of the version, such as ``cpu``, ``cu130``, ``rocm6.2`` or ``xpu``."""
        if label := label_of(self.version):
            return label
        if self.cuda:
            return f"cu{self.cuda.replace('.', '')}"
        return f"rocm{'.'.join(self.hip.split('.')[:2])}" if self.hip else "cpu"


def built_version(package: Path) -> str:
    """Returns ``__version__`` in a package's version.py, or "". This version contains the label that PyPI's wheel names
    omit.
    """
    found = dict(_LINE.findall(read_text(package / "version.py") or ""))
    return found.get("__version__", "").strip("'\"")


def torch_in(site: Iterable[Path]) -> TorchBuild | None:
    """Returns the torch that would be imported, or None."""
    for folder in site:
        text = read_text(folder / "torch" / "version.py")
        if text is not None:
            found = {name: value.strip("'\"") for name, value in _LINE.findall(text) if value != "None"}
            version = found.get("__version__", "")
            return TorchBuild(version, found.get("cuda"), found.get("hip"), folder / "torch")
    return None
