# SPDX-License-Identifier: Apache-2.0
"""Is there room for what is to be copied?"""

from __future__ import annotations

import os
from pathlib import Path

from ..errors import ConfigError, StorageError
from ..machine import limits as host_limits
from ..machine.storage import storage_facts


def check_room(needed: int, folder: Path, limit: int | None) -> None:
    """Before anything is copied.

    Raises:
        ConfigError: it is more than the user allows.
        StorageError: it is more than the disk has free, or where the folder is memory, than the process may use.
    """
    if limit is not None and needed > limit:
        raise ConfigError(f"stage: {needed:,} bytes are to be copied, and --limit allows {limit:,}")
    status = os.statvfs(folder)
    free = status.f_bavail * status.f_frsize
    if needed > free:
        raise StorageError(
            f"stage: {needed:,} bytes are to be copied, and {folder} has {free:,} free; stage fewer shards, or choose "
            "another folder"
        )
    facts, _ = storage_facts(str(folder))
    left = host_limits.memory_left()
    if facts is not None and facts["kind"] == "memory" and needed > left:
        raise StorageError(
            f"stage: {needed:,} bytes are to be copied into memory, as {folder} is, and {left:,} bytes of it are left "
            f"to this process; choose a folder on a disk"
        )
