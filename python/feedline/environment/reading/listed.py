# SPDX-License-Identifier: Apache-2.0
"""A file that a package says it installed."""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
from dataclasses import dataclass

_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class Listed:
    """One file of a package.

    Attributes:
        path: where it lies.
        sha256: of its bytes, in hexadecimal; "": it is not told.
        size: bytes; None: it is not told.
    """

    path: str
    sha256: str = ""
    size: int | None = None


def sha256_of(path: str | os.PathLike[str]) -> str:
    """Of a file's bytes, in hexadecimal.

    Raises:
        OSError: it cannot be read.
    """
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
    return digest.hexdigest()


def from_base64(text: str) -> str:
    """A hash as RECORD has it, in hexadecimal; "": it is none."""
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).hex()
    except (ValueError, binascii.Error):
        return ""
