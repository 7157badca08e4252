# SPDX-License-Identifier: Apache-2.0
"""Finds the libraries that the engine opens at run time. Audio: libsndfile, which decodes Ogg, Opus and MP3, and
libsoxr, which resamples. Videos: FFmpeg.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from .. import _engine
from ..errors import ConfigError


class Library(NamedTuple):
    """A library that the engine opens at run time.

    Attributes:
        name: ``"libsndfile"``, ``"libsoxr"`` or ``"FFmpeg"``.
        file: the name or path of the file; empty if it was not found, and for FFmpeg, which has several.
        version: the version that the library reports, such as ``"libsndfile-1.2.0"``; empty if it cannot be used.
        problem: why it cannot be used, and the package to install; otherwise empty.
    """

    name: str
    file: str
    version: str
    problem: str


@cache
def use_packaged() -> None:
    """Passes the libraries in the packages soundfile and soxr to the engine, which uses them if the system has none."""
    _engine.set_audio_library(False, _file_in("_soundfile_data", "libsndfile*.so*"))
    _engine.set_audio_library(True, _file_in("soxr", "soxr_ext*.so"))


def for_audio() -> list[Library]:
    use_packaged()
    return [Library(name, *_engine.audio_library(name == "libsoxr")) for name in ("libsndfile", "libsoxr")]


def for_videos() -> Library:
    """Loads FFmpeg's libraries into this process."""
    try:
        return Library("FFmpeg", "", _engine.ffmpeg_version(), "")
    except ConfigError as error:
        return Library("FFmpeg", "", "", str(error))


def _file_in(package: str, pattern: str) -> str:
    """Returns the library in an installed Python package, or an empty string. Does not import the package."""
    import importlib.util  # imports of this module should be fast
    from pathlib import Path

    found = importlib.util.find_spec(package)
    for folder in (found.submodule_search_locations or ()) if found is not None else ():
        for file in sorted(Path(folder).glob(pattern)):
            return str(file)
    return ""
