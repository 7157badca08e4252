# SPDX-License-Identifier: Apache-2.0
"""Finds the mapped copies of libraries that a process should load only once."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

# Copies in wheels have a hash in their names: libgomp-a34b3233.so.1.0.0.
_FAMILIES = {
    "OpenMP": re.compile(r"lib(?:gomp|iomp5|omp)(?:-[0-9a-f]+)?\.so"),
    "cuDNN": re.compile(r"libcudnn\.so"),
    "cuBLAS": re.compile(r"libcublas\.so"),
    "NCCL": re.compile(r"libnccl\.so"),
    "MKL": re.compile(r"libmkl_(?:core|rt)\.so"),
    "CUDA runtime": re.compile(r"libcudart(?:-[0-9a-f]+)?\.so"),
}


@dataclass(frozen=True)
class Library:
    """A copy of a library. `family` is a name such as "OpenMP"."""

    family: str
    path: str


def family_of(path: str | os.PathLike[str]) -> str | None:
    """Returns the family of a library file, or None for other libraries."""
    name = os.path.basename(path)
    return next((family for family, pattern in _FAMILIES.items() if pattern.match(name)), None)


def mapped_by(pid: int, proc: Path = Path("/proc")) -> list[Library]:
    """Returns the copies that a process has mapped, sorted by family and path.

    Raises:
        OSError: the process does not exist or belongs to another user.
    """
    found = set()
    for line in (proc / str(pid) / "maps").read_text(errors="replace").splitlines():
        path = line.split(None, 5)[5:]
        family = family_of(path[0].removesuffix(" (deleted)")) if path else None
        if family is not None:
            found.add((family, path[0].removesuffix(" (deleted)")))
    return [Library(*one) for one in sorted(found)]


def variables_of(pid: int, proc: Path = Path("/proc")) -> dict[str, str]:
    """Returns the environment variables with which a process was started.

    Raises:
        OSError: the process does not exist or belongs to another user.
    """
    parts = (proc / str(pid) / "environ").read_bytes().decode(errors="replace").split("\0")
    return {name: value for name, equals, value in (part.partition("=") for part in parts) if equals}
