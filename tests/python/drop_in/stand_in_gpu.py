# SPDX-License-Identifier: Apache-2.0
"""A GPU for tests on machines without one: `stand_in_cuda.c` in the driver's place, and torch told that it is there."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch

from feedline.drop_in import cuda_driver, page_lock
from feedline.drop_in.ring import Ring

SOURCE = Path(__file__).parent / "stand_in_cuda.c"


def build(folder: Path, *options: str) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler for the stand-in of the CUDA driver")
    library = folder / "libstand_in_cuda.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", *options, "-o", library, SOURCE], check=True)
    return library


class Gpu:
    """What a test does as the GPU, and asks about it. Reads stay under way until `finish`."""

    def __init__(self, library: Path) -> None:
        self.driver = ctypes.CDLL(str(library))
        self.driver.stand_in_locked.restype = ctypes.c_size_t
        self.driver.stand_in_calls.restype = ctypes.c_long
        self.copies_to_pin = 0
        self.bad_punches: list[str] = []

    def read(self, tensor: torch.Tensor, device: int = 0) -> None:
        """Begins what `tensor.to("cuda", non_blocking=True)` does."""
        address, size = ctypes.c_void_p(tensor.data_ptr()), ctypes.c_size_t(tensor.nbytes)
        assert self.driver.stand_in_copy(device, address, size) == 0

    def finish(self, device: int = 0) -> None:
        self.driver.stand_in_finish(device)

    def is_pinned(self, tensor: torch.Tensor) -> bool:
        return bool(self.driver.stand_in_is_pinned(ctypes.c_void_p(tensor.data_ptr())))

    def fail(self, call: str | None, status: int = 2) -> None:
        self.driver.stand_in_fail(None if call is None else call.encode(), status)

    @property
    def ranges(self) -> int:
        return self.driver.stand_in_ranges()

    @property
    def locked(self) -> int:
        return self.driver.stand_in_locked()

    def pinned(self, tensor: torch.Tensor) -> torch.Tensor:
        """As torch's Tensor.pin_memory."""
        if self.is_pinned(tensor):
            return tensor
        self.copies_to_pin += 1
        return tensor.clone()

    def watched(self, punch: Any) -> Any:
        def watched_punch(ring: Ring, worker: int, start: int, size: int) -> None:
            for lock in page_lock._holding:
                if lock._ring is ring:
                    address = ctypes.c_void_p(lock._address(worker) + start)
                    if self.driver.stand_in_overlaps(address, ctypes.c_size_t(size)):
                        self.bad_punches.append(f"worker {worker}: {size} bytes at {start}")
            punch(ring, worker, start, size)

        return watched_punch


def install(library: Path, patch: pytest.MonkeyPatch) -> Gpu:
    gpu = Gpu(library)
    cuda_driver.open_driver.cache_clear()
    patch.setattr(cuda_driver, "LIBRARY", str(library))
    patch.setattr(torch.accelerator, "is_available", lambda: True)
    patch.setattr(torch.accelerator, "current_accelerator", lambda *_: torch.device("cuda"))
    patch.setattr(torch.cuda, "is_available", lambda: True)
    patch.setattr(torch.cuda, "is_initialized", lambda: True)
    patch.setattr(torch.cuda, "current_device", lambda: 0)
    patch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    patch.setattr(torch.Tensor, "is_pinned", lambda tensor: gpu.is_pinned(tensor))
    patch.setattr(torch.Tensor, "pin_memory", lambda tensor: gpu.pinned(tensor))
    patch.setattr(Ring, "punch", gpu.watched(Ring.punch))
    return gpu
