# SPDX-License-Identifier: Apache-2.0
"""The simulated CUDA driver (tests/fake_cuda), built and loaded, and the actions of a GPU that tests request."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

_ROOT = Path(__file__).parents[2]
_SOURCE = _ROOT / "tests" / "fake_cuda" / "fake_cuda.cpp"
_KINDS = {0: "i", 1: "u", 2: "f", 4: "u", 6: "b"}  # DLPack's type codes, by NumPy's names; bfloat16 as its bits


def build(folder: Path) -> Path:
    """Builds the library in `folder`; skips the test if no compiler is installed."""
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler for the stand-in of CUDA's driver")
    library = folder / "libfake_cuda.so"
    command = [compiler, "-std=c++20", "-shared", "-fPIC", f"-I{_ROOT}", "-o", library, _SOURCE, "-ljpeg"]
    subprocess.run(command, check=True)
    return library


class _Tensor(ctypes.Structure):
    """DLPack's structure before version 1."""

    _fields_ = [
        ("data", ctypes.c_uint64),
        ("device_kind", ctypes.c_int32),
        ("device_index", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Lent:
    """An array received by DLPack, read from the simulated GPU. Holds the capsule."""

    def __init__(self, gpu: Gpu, capsule: Any) -> None:
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        tensor = _Tensor.from_address(pointer(capsule, b"dltensor"))
        self.capsule, self._gpu = capsule, gpu
        self.device = (tensor.device_kind, tensor.device_index)
        self.address = tensor.data
        self.shape = tuple(tensor.shape[: tensor.ndim])
        self.dtype = np.dtype(f"{_KINDS[tensor.code]}{tensor.bits // 8}")

    def content(self) -> npt.NDArray[Any]:
        """Copies the data back from the GPU; it is a violation if the data has not arrived yet."""
        array = np.empty(self.shape, self.dtype)
        if array.nbytes:
            assert self._gpu.driver.fake_cuda_read(
                ctypes.c_uint64(self.address), array.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(array.nbytes)
            )
        return array


class Gpu:
    """Two GPUs with a gigabyte each, which do all work immediately unless they are held."""

    def __init__(self, library: Path) -> None:
        self.library = library
        self.driver = ctypes.CDLL(str(library), mode=os.RTLD_LOCAL | os.RTLD_NOW)
        self.driver.fake_cuda_stream.restype = ctypes.c_void_p
        self.driver.fake_cuda_words.restype = ctypes.c_char_p
        self.driver.fake_cuda_count.restype = ctypes.c_long
        self.driver.fake_cuda_calls.restype = ctypes.c_long
        self.was_lost = False
        self.reset()

    def reset(self) -> None:
        self.driver.fake_cuda_reset(2, ctypes.c_size_t(1 << 30), 12060)

    def lose(self) -> None:
        """From now on, every call for the first GPU fails."""
        self.was_lost = True
        self.driver.fake_cuda_lose(0, 719)

    def mend(self) -> None:
        self.driver.fake_cuda_lose(0, 0)

    def hold(self, held: bool) -> None:
        self.driver.fake_cuda_hold(int(held))

    def stream(self, device: int = 0) -> int:
        return int(self.driver.fake_cuda_stream(device))

    def finish(self) -> None:
        while self.driver.fake_cuda_step(ctypes.c_uint64(0)):
            pass

    def calls(self, name: str) -> int:
        """Returns how often a function of the driver was called so far."""
        return int(self.driver.fake_cuda_calls(name.encode()))

    def count(self, what: str) -> int:
        return int(self.driver.fake_cuda_count(what.encode()))

    def fail(self, call: str | None, nth: int = 1, status: int = 2) -> None:
        self.driver.fake_cuda_fail(None if call is None else call.encode(), nth, status)

    def take(self, array: Any, stream: int | None = None) -> Lent:
        """Receives an array like a library that works on this stream."""
        return Lent(self, array.__dlpack__(stream=stream))

    def forgive(self) -> None:
        """Ignores the rules that were broken intentionally."""
        self.driver.fake_cuda_forgive()

    def expect(self, stream: int, address: int, value: int) -> None:
        """Runs a kernel on this stream, which expects a byte with this value when it runs."""
        self.driver.fake_cuda_expect(
            ctypes.c_void_p(stream), ctypes.c_uint64(address), ctypes.c_size_t(1), ctypes.c_int(value)
        )

    @property
    def broken_rules(self) -> str:
        return self.driver.fake_cuda_words().decode()
