# SPDX-License-Identifier: Apache-2.0
"""What the engine is told of an object that a library of Python's reads."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

Found = tuple[str, int, int, bool]  # path, bytes, tag of the version or 0, whether it is a folder

# What libraries call the version of an object, the surest first; a size says the rest.
_VERSIONS = (
    "ETag", "etag", "e_tag", "version_id", "generation", "md5Hash", "content_md5", "checksum", "sha256", "blob_id",
    "LastModified", "last_modified", "last_commit", "mtime", "modified", "updated", "created",
)  # fmt: skip


def tag_of(info: Mapping[str, Any]) -> int:
    """Another number for every other version of the object; 0: nothing says which one it is."""
    version = next((str(info[name]) for name in _VERSIONS if info.get(name) not in (None, "")), "")
    if not version:
        return 0
    return int.from_bytes(hashlib.blake2b(version.encode(), digest_size=8).digest(), "little") or 1
