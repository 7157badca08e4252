# SPDX-License-Identifier: Apache-2.0
"""Finds nvJPEG in NVIDIA's packages of this environment."""

from __future__ import annotations

import ctypes
import importlib.util
from pathlib import Path


def packaged() -> list[Path]:
    """Returns the libraries of ``nvidia-nvjpeg`` and ``nvidia-nvjpeg-cu12`` on Python's import path."""
    found = importlib.util.find_spec("nvidia")
    places = [] if found is None else list(found.submodule_search_locations or ())
    return sorted(file for place in places for file in Path(place).glob("*/lib/libnvjpeg.so.*"))


def load_packaged() -> None:
    """Loads the libraries so that the engine finds them by name, since the system does not search packages' folders.

    Libraries that cannot be loaded are skipped; the engine then reports that nvJPEG is missing.
    """
    for file in packaged():
        try:
            ctypes.CDLL(str(file))
        except OSError:
            continue
