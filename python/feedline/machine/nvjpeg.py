# SPDX-License-Identifier: Apache-2.0
"""Finds nvJPEG in NVIDIA's Python packages in this environment."""

from __future__ import annotations

import ctypes
import importlib.util
from pathlib import Path


def packaged() -> list[Path]:
    """Returns the libraries of ``nvidia-nvjpeg`` and ``nvidia-nvjpeg-cu12`` on Python's import path."""
    found = importlib.util.find_spec("nvidia")
    places = [] if found is None else list(found.submodule_search_locations or ())
    return sorted(file for folder in places for file in Path(folder).glob("*/lib/libnvjpeg.so.*"))


def load_packaged() -> None:
    """Loads the libraries so that the engine finds them by name, since the dynamic linker does not search the folders
    of packages.

    Libraries that cannot be loaded are skipped; the engine then reports that nvJPEG is missing.
    """
    for file in packaged():
        try:
            ctypes.CDLL(str(file))
        except OSError:
            continue
