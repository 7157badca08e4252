# SPDX-License-Identifier: Apache-2.0
"""For the drop-in's tests: makes torch use the simulated CUDA driver (tests/fake_cuda) as a GPU."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import made_cuda
import pytest
import torch

from feedline.torch_loader.workers import page_lock
from feedline.torch_loader.workers.ring import Ring


class Gpu(made_cuda.Gpu):
    """The actions of a GPU that tests request, and its state. Reads stay in progress until `finish`."""

    def __init__(self, library: Path) -> None:
        super().__init__(library)
        self.hold(True)
        self.copies_to_pin = 0
        self.bad_punches: list[str] = []
        self._streams = [self.stream(0), self.stream(1)]
        self.use(0)

    def use(self, device: int) -> None:
        """Simulates that torch begins to use a device."""
        self.driver.fake_cuda_use(device)

    def read(self, tensor: torch.Tensor, device: int = 0) -> None:
        """Begins the same work as `tensor.to("cuda", non_blocking=True)`."""
        stream = ctypes.c_void_p(self._streams[device])
        self.driver.fake_cuda_take(stream, ctypes.c_void_p(tensor.data_ptr()), ctypes.c_size_t(tensor.nbytes))

    def finish(self, device: int = 0) -> None:
        self.driver.fake_cuda_finish(device)

    def capture(self, captures: bool) -> None:
        """Simulates that a thread captures a CUDA graph."""
        self.driver.fake_cuda_capture(ctypes.c_void_p(1), int(captures))

    def is_locked(self, address: int, size: int = 1) -> bool:
        """Whether any part of the range is locked."""
        return bool(self.driver.fake_cuda_is_pinned(ctypes.c_void_p(address), ctypes.c_size_t(size)))

    def is_pinned(self, tensor: torch.Tensor) -> bool:
        return self.is_locked(tensor.data_ptr())

    @property
    def ranges(self) -> int:
        return self.count("pinned")

    @property
    def locked(self) -> int:
        return self.count("pinned_bytes")

    def pinned(self, tensor: torch.Tensor) -> torch.Tensor:
        """Like torch's Tensor.pin_memory."""
        if self.is_pinned(tensor):
            return tensor
        self.copies_to_pin += 1
        return tensor.clone()

    def watched(self, punch: Any) -> Any:
        def watched_punch(ring: Ring, worker: int, start: int, size: int) -> None:
            for lock in page_lock._holding:
                if lock._ring is ring and self.is_locked(lock._address(worker) + start, size):
                    self.bad_punches.append(f"worker {worker}: {size} bytes at {start}")
            punch(ring, worker, start, size)

        return watched_punch


def install(library: Path, patch: pytest.MonkeyPatch) -> Gpu:
    gpu = Gpu(library)
    patch.setenv("FEEDLINE_CUDA_DRIVER", str(library))
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
