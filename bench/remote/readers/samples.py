# SPDX-License-Identifier: Apache-2.0
"""Yields the samples of a folder's tars: a photo's file and its class."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import Path


def samples(folder: Path) -> Iterator[tuple[bytes, int]]:
    for path in sorted(folder.glob("*.tar")):
        with tarfile.open(path) as tar:
            files = [tar.extractfile(member).read() for member in tar]  # type: ignore[union-attr]
        for jpg, cls in zip(files[::2], files[1::2], strict=True):
            yield jpg, int(cls)
