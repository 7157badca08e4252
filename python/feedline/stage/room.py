# SPDX-License-Identifier: Apache-2.0
"""Checks that there is room for the copies."""

from __future__ import annotations

import os
from pathlib import Path

from ..errors import ConfigError, StorageError
from ..machine import limits as host_limits
from ..machine.storage import storage_facts


def check_room(needed: int, folder: Path, limit: int | None) -> None:
    """Called before anything is copied.

    Raises:
        ConfigError: the size exceeds the user's limit.
        StorageError: the size exceeds the free disk space or, for a folder in memory, the memory left to the process.
    """
    if limit is not None and needed > limit:
        raise ConfigError(f"stage: {needed:,} bytes are to be copied, but --limit allows {limit:,}")
    status = os.statvfs(folder)
    free = status.f_bavail * status.f_frsize
    if needed > free:
        raise StorageError(
            f"stage: {needed:,} bytes are to be copied, but {folder} has {free:,} free; stage fewer shards, or choose "
            "another folder"
        )
    facts, _ = storage_facts(str(folder))
    left = host_limits.memory_left()
    if facts is not None and facts["kind"] == "memory" and needed > left:
        raise StorageError(
            f"stage: {needed:,} bytes are to be copied to {folder}, which is in memory, but this process has {left:,} "
            "bytes "
            f"left; choose a folder on a disk"
        )
