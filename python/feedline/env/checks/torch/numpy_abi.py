# SPDX-License-Identifier: Apache-2.0
"""A package was compiled for NumPy 1, but NumPy 2 is installed."""

import mmap
import os

from ...reading.wheels import Installed
from ...rules import NEEDS, Analysis, Check, Problems, names, page, problem

# Modules import NumPy's C API under these names. NumPy 2's headers have both, and NumPy 1's have only the first.
_OF_NUMPY_1, _OF_NUMPY_2 = b"numpy.core._multiarray_umath", b"numpy._core._multiarray_umath"
_ALSO = ("torch",)  # its metadata do not require NumPy


def _evaluate(analysis: Analysis) -> Problems:
    first = analysis.seen.first
    numpy = first.get("numpy")
    major = numpy.version.partition(".")[0] if numpy else ""
    if numpy is None or not major.isdigit() or int(major) < 2:
        return
    for one in first.values():
        if one is numpy or not _may_use_numpy(one):
            continue
        found = [file.path for file in one.files if ".so" in os.path.basename(file.path) and _is_for_numpy_1(file.path)]
        if found:
            yield problem(
                "numpy_abi", "error",
                f"{one.name} {one.version} was compiled for NumPy 1, but numpy {numpy.version} is installed: "
                f"{names([os.path.relpath(path, one.site) for path in found])}",
                fix=f'Install a newer {one.name}, or pip install "numpy<2"', package=one.name,
            )  # fmt: skip


def _may_use_numpy(one: Installed) -> bool:
    return one.name in _ALSO or any(line.lower().startswith("numpy") for line in one.requires)


def _is_for_numpy_1(path: str) -> bool:
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return data.find(_OF_NUMPY_1) >= 0 and data.find(_OF_NUMPY_2) < 0
    except (OSError, ValueError):  # missing, unreadable or empty; other checks report such files
        return False


CHECK = Check(
    page(
        code="numpy_abi",
        title="a package was compiled for NumPy 1, but NumPy 2 is installed",
        means="NumPy 2 changed its binary interface. Importing the module fails or prints `A module that was compiled "
        "using NumPy 1.x cannot be run in NumPy 2`; torch prints `Failed to initialize NumPy: _ARRAY_API not found`, "
        "and `tensor.numpy()` fails. Modules compiled for NumPy 2 also run with NumPy 1.",
        recognised="NumPy 2 is installed, and a shared library of a package that uses NumPy imports only NumPy 1's C "
        "API.",
        to_do="Install a version of the package that was built for NumPy 2, or NumPy 1.26.",
        example="torch 2.2.2 was compiled for NumPy 1, but numpy 2.1.0 is installed: torch/lib/libtorch_python.so",
    ),
    NEEDS + 5,
    _evaluate,
)
