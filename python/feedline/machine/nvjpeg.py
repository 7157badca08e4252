# SPDX-License-Identifier: Apache-2.0
"""nvJPEG, where one of NVIDIA's packages of this environment has it."""

from __future__ import annotations

import ctypes
import importlib.util
from pathlib import Path


def packaged() -> list[Path]:
    """The libraries of ``nvidia-nvjpeg`` and ``nvidia-nvjpeg-cu12``, wherever Python imports packages from."""
    found = importlib.util.find_spec("nvidia")
    places = [] if found is None else list(found.submodule_search_locations or ())
    return sorted(file for place in places for file in Path(place).glob("*/lib/libnvjpeg.so.*"))


def load_packaged() -> None:
    """Loads them, so that the engine finds them by their names: a package's folder is not one that the system seeks
    libraries in. One that does not load is left: the engine says that it has none."""
    for file in packaged():
        try:
            ctypes.CDLL(str(file))
        except OSError:
            continue
