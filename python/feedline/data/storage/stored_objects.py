# SPDX-License-Identifier: Apache-2.0
"""Metadata for the engine about objects that a Python library reads."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

Found = tuple[str, int, int, bool]  # path, bytes, version tag or 0, whether it is a folder

# The libraries' names for an object's version, the most reliable first.
_VERSIONS = (
    "ETag", "etag", "e_tag", "version_id", "generation", "md5Hash", "content_md5", "checksum", "sha256", "blob_id",
    "LastModified", "last_modified", "last_commit", "mtime", "modified", "updated", "created",
)  # fmt: skip


def tag_of(info: Mapping[str, Any]) -> int:
    """Returns a number that identifies the object's version; 0 if the version is unknown."""
    version = next((str(info[name]) for name in _VERSIONS if info.get(name) not in (None, "")), "")
    if not version:
        return 0
    return int.from_bytes(hashlib.blake2b(version.encode(), digest_size=8).digest(), "little") or 1
