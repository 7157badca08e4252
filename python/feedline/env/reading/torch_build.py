# SPDX-License-Identifier: Apache-2.0
"""Reads the build information of torch from the text of torch/version.py."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ..torch_indexes import label_of
from .wheels import read_text

_LINE = re.compile(r"^(\w+)(?:\s*:[^=]+)?\s*=\s*(None|'[^']*'|\"[^\"]*\")", re.MULTILINE)


@dataclass(frozen=True)
class TorchBuild:
    """A build of torch.

    Attributes:
        version: such as ``2.13.0+cu130``.
        cuda: such as ``13.0``; None for builds without CUDA. `hip` alike.
        folder: of the package.
    """

    version: str
    cuda: str | None
    hip: str | None
    folder: Path

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
        """The label of the version: ``cpu``, ``cu130``, ``rocm6.2``, ``xpu``."""
        if label := label_of(self.version):
            return label
        if self.cuda:
            return f"cu{self.cuda.replace('.', '')}"
        return f"rocm{'.'.join(self.hip.split('.')[:2])}" if self.hip else "cpu"


def built_version(package: Path) -> str:
    """Returns ``__version__`` in a package's version.py, which has the label that PyPI's wheel names omit, or ""."""
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
