# SPDX-License-Identifier: Apache-2.0
"""Reads a process's resource limits (`ulimit`) from /proc/self/limits."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .system_files import SystemFiles

_ROWS = {
    "open_files": "Max open files",
    "processes": "Max processes",
    "locked_bytes": "Max locked memory",
    "address_space": "Max address space",
}


@dataclass(frozen=True)
class ProcessLimits:
    """Soft limits. None: unlimited or unknown."""

    open_files: int | None = None
    processes: int | None = None
    locked_bytes: int | None = None
    address_space: int | None = None
    is_known: bool = False


def process_limits(root: SystemFiles) -> ProcessLimits:
    text = root.text("proc/self/limits")
    if text is None:
        return ProcessLimits()
    found = {}
    for name, row in _ROWS.items():
        match = re.search(rf"^{row}\s+(\d+)\s", text, re.MULTILINE)
        found[name] = int(match[1]) if match else None
    return ProcessLimits(**found, is_known=True)
