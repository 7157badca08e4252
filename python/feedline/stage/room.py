# SPDX-License-Identifier: Apache-2.0
"""Checks that there is enough space for the copies."""

from __future__ import annotations

import os
from pathlib import Path

from ..errors import ConfigError, StorageError
from ..machine import limits as host_limits
from ..machine.storage import storage_facts


def memory_note(total: int, folder: Path) -> str:
    """Returns a warning if `folder` is in memory and the copies, of `total` bytes, leave less memory than they occupy;
    "" otherwise.
    """
    facts, _ = storage_facts(str(folder))
    left = host_limits.memory_left()
    if facts is None or facts["kind"] != "memory" or total <= left:
        return ""
    return (
        f"{folder} is in memory: the copies occupy {total:,} bytes, and {left:,} are left for workers and the page "
        "cache; a folder on a local disk needs no memory, and the page cache stores files that are read often"
    )


def check_room(needed: int, folder: Path, limit: int | None) -> None:
    """Checks the size; called before anything is copied.

    Raises:
        ConfigError: the size exceeds the user's limit.
        StorageError: the size exceeds the free disk space or, for a folder in memory, the memory that the process may
            still use.
    """
    if limit is not None and needed > limit:
        raise ConfigError(f"stage: {needed:,} bytes must be copied, but --limit allows {limit:,}")
    status = os.statvfs(folder)
    free = status.f_bavail * status.f_frsize
    if needed > free:
        raise StorageError(
            f"stage: {needed:,} bytes must be copied, but {folder} has {free:,} free; stage fewer shards, or "
            "choose another folder"
        )
    facts, _ = storage_facts(str(folder))
    left = host_limits.memory_left()
    if facts is not None and facts["kind"] == "memory" and needed > left:
        raise StorageError(
            f"stage: {needed:,} bytes must be copied to {folder}, which is in memory, but this process has "
            f"{left:,} bytes left; choose a folder on a disk"
        )
