# SPDX-License-Identifier: Apache-2.0
"""A file listed by a package."""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
from dataclasses import dataclass

_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class Listed:
    """A file of a package.

    Attributes:
        path: its location.
        sha256: hash of the content, in hexadecimal; "" if unknown.
        size: size in bytes; None if unknown.
    """

    path: str
    sha256: str = ""
    size: int | None = None


def sha256_of(path: str | os.PathLike[str]) -> str:
    """Returns the SHA-256 of a file, in hexadecimal.

    Raises:
        OSError: the file cannot be read.
    """
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
    return digest.hexdigest()


def from_base64(text: str) -> str:
    """Converts a hash in RECORD to hexadecimal; "" if it is invalid."""
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).hex()
    except (ValueError, binascii.Error):
        return ""
