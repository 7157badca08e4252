# SPDX-License-Identifier: Apache-2.0
"""Finds the libraries for audio: libsndfile, which decodes FLAC, Ogg, Opus and MP3, and libsoxr, which resamples."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from .. import _engine


class Library(NamedTuple):
    """A library that the engine opens at run time.

    Attributes:
        name: ``"libsndfile"`` or ``"libsoxr"``.
        file: the name or path of the file; empty if the library is missing.
        version: as the library reports it: ``"libsndfile-1.2.0"``.
        problem: if the library is missing, a message that names the packages to install.
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


def libraries() -> list[Library]:
    use_packaged()
    return [Library(name, *_engine.audio_library(name == "libsoxr")) for name in ("libsndfile", "libsoxr")]


def _file_in(package: str, pattern: str) -> str:
    """Returns the library in an installed Python package, or an empty string. Does not import the package."""
    import importlib.util  # imports of this module should be fast
    from pathlib import Path

    found = importlib.util.find_spec(package)
    for folder in (found.submodule_search_locations or ()) if found is not None else ():
        for file in sorted(Path(folder).glob(pattern)):
            return str(file)
    return ""
