# SPDX-License-Identifier: Apache-2.0
"""Which copies of the libraries that exist once, or should, a running process has mapped."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

# Wheels carry copies under names with a hash: libgomp-a34b3233.so.1.0.0.
_FAMILIES = {
    "OpenMP": re.compile(r"lib(?:gomp|iomp5|omp)(?:-[0-9a-f]+)?\.so"),
    "cuDNN": re.compile(r"libcudnn\.so"),
    "cuBLAS": re.compile(r"libcublas\.so"),
    "NCCL": re.compile(r"libnccl\.so"),
    "CUDA runtime": re.compile(r"libcudart(?:-[0-9a-f]+)?\.so"),
}


@dataclass(frozen=True)
class Library:
    """A copy of a library. `family`: what it is, as "OpenMP"."""

    family: str
    path: str


def family_of(path: str | os.PathLike[str]) -> str | None:
    """Of a library's file; None: it is none of those."""
    name = os.path.basename(path)
    return next((family for family, pattern in _FAMILIES.items() if pattern.match(name)), None)


def mapped_by(pid: int, proc: Path = Path("/proc")) -> list[Library]:
    """The copies that a process has mapped now, by family and path.

    Raises:
        OSError: there is no such process, or it is another user's.
    """
    found = set()
    for line in (proc / str(pid) / "maps").read_text(errors="replace").splitlines():
        path = line.split(None, 5)[5:]
        family = family_of(path[0].removesuffix(" (deleted)")) if path else None
        if family is not None:
            found.add((family, path[0].removesuffix(" (deleted)")))
    return [Library(*one) for one in sorted(found)]


def variables_of(pid: int, proc: Path = Path("/proc")) -> dict[str, str]:
    """The environment variables that a process was started with.

    Raises:
        OSError: there is no such process, or it is another user's.
    """
    parts = (proc / str(pid) / "environ").read_bytes().decode(errors="replace").split("\0")
    return {name: value for name, equals, value in (part.partition("=") for part in parts) if equals}
