# SPDX-License-Identifier: Apache-2.0
"""Sources that consist of video files: one, several, or a list of lines ``path label``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

from .. import _engine
from ..errors import ConfigError


class Videos(NamedTuple):
    paths: list[str]
    labels: list[int] | None = None
    root: str = ""


def of(source: Any) -> Videos | None:
    """Returns the videos that a source of :func:`feedline.open` consists of; None if it is another source.

    Raises:
        ConfigError: a line of a list is not a path and a number.
        StorageError: the file cannot be read.
    """
    paths = [source] if isinstance(source, str | os.PathLike) else source
    if not isinstance(paths, Sequence) or not paths:
        return None
    names = [os.fspath(path) for path in paths if isinstance(path, str | os.PathLike)]
    if len(names) != len(paths) or not all(isinstance(name, str) for name in names):
        return None
    if len(names) == 1 and names[0].endswith((".txt", ".list")) and os.path.isfile(names[0]):
        return _of_lines(names[0])
    if not all(is_video(name) for joined in names for name in joined.split("::")):
        return None
    if any(os.path.isdir(name) for name in names):
        return None
    return Videos([name.decode() for name in _engine.StoredSource("::".join(names)).names])


def is_video(name: str) -> bool:
    """Whether the name ends in the extension of a video."""
    return name.partition("?")[0].rpartition(".")[2].lower() in _engine.video_extensions()


def _of_lines(path: str) -> Videos | None:
    """Reads a list with a video and its class number in each line, as used for Kinetics; None for other files."""
    with open(path, encoding="utf-8", errors="replace") as file:
        first = file.readline().split()
        if not first or not any(is_video(word) for word in first):
            return None
        file.seek(0)
        paths: list[str] = []
        labels: list[int] = []
        for number, line in enumerate(file, 1):
            words = line.strip().rsplit(maxsplit=1)
            if not words:
                continue
            if len(words) == 2 and not is_video(line.strip()):
                if not words[1].lstrip("-").isdecimal():
                    raise ConfigError(
                        f"open: line {number} of {path!r} is {line.strip()!r:.200}; expected a path and a class number"
                    )
                labels.append(int(words[1]))
            paths.append(words[0] if len(words) == 2 and not is_video(line.strip()) else line.strip())
    if labels and len(labels) != len(paths):
        raise ConfigError(f"open: only {len(labels)} of the {len(paths)} lines of {path!r} have a class number")
    return Videos(paths, labels or None, os.path.dirname(path))
