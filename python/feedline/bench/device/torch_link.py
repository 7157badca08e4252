# SPDX-License-Identifier: Apache-2.0
"""Implements the device interface with torch: copies are timed by events, and the loop resembles that of a training
script.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

from feedline.errors import ConfigError

from ... import _engine
from .link import BYTES, Way

_SLOTS = 2  # batches on the device: one being copied, one in use
_MOST_REPEATS = 20_000


def find_device(name: str, torch: ModuleType | None = None) -> tuple[ModuleType, Any]:
    """Returns torch and its device called `name`, such as "cuda" or "cuda:1".

    Raises:
        ConfigError: torch is not installed, has no CUDA support, or does not find this GPU.
    """
    if torch is None:
        try:
            torch = importlib.import_module("torch")
        except ImportError as error:
            raise ConfigError(
                "bench --device: torch, which runs the training steps, is not installed; install it"
            ) from error
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ConfigError(f'bench --device: "{name}" is not a device; pass a name such as cuda or cuda:1') from error
    if device.type != "cuda":
        raise ConfigError(
            f'bench --device: "{name}" is not a GPU, so no copies are needed; pass a name such as cuda or cuda:1'
        )
    if not torch.cuda.is_available():
        raise ConfigError(f"bench --device: {_why_not(torch)}")
    if device.index is not None and device.index >= torch.cuda.device_count():
        raise ConfigError(
            f"bench --device: there is no device {name}; GPUs that torch finds: {torch.cuda.device_count()} (check "
            "CUDA_VISIBLE_DEVICES)"
        )
    return torch, torch.device("cuda", torch.cuda.current_device() if device.index is None else device.index)


def _why_not(torch: ModuleType) -> str:
    if torch.version.cuda is None:
        return f"torch {torch.__version__} is built without CUDA; install a build with CUDA (pytorch.org/get-started)"
    reader = _engine.GpuReader()
    reader.driver()
    return reader.unavailable or (
        "torch finds no GPU although NVML does; check CUDA_VISIBLE_DEVICES and the error of torch.cuda.init()"
    )


class TorchLink:
    """Implements `bench.device.link.Link`.

    Args:
        module: torch.cuda, or a replacement in tests.
    """

    def __init__(self, torch: ModuleType, device: Any, batch_size: int, size: int, module: Any = None) -> None:
        self._torch, self._device = torch, device
        self._module = torch.cuda if module is None else module
        self._shape = (batch_size, size, size, 3)
        self._copied: dict[tuple[int, bool], tuple[Any, Any]] = {}
        self._batches: dict[Way, tuple[list[Any], list[Any]]] = {}
        self._networks: dict[bool, Callable[[Any], Any]] = {}
        self._repeats = 1
        self._copies = self._module.Stream(device)
        properties = self._module.get_device_properties(device)
        self.name = str(properties.name)
        self.uuid = str(getattr(properties, "uuid", ""))
        self.unified = bool(getattr(properties, "is_integrated", False))

    def copy_s(self, size: int, pinned: bool) -> float:
        if (size, pinned) not in self._copied:
            self._copied[size, pinned] = (
                self._host((size,), self._torch.uint8, pinned),
                self._torch.empty(size, dtype=self._torch.uint8, device=self._device),
            )
            self._timed(lambda: self._copy(size, pinned))
        return self._timed(lambda: self._copy(size, pinned))

    def set_step(self, seconds: float) -> None:
        way = Way("", pinned=True, stream=False)
        self._copied.clear()  # the large copies of the limit
        self._repeats = 1
        self.step_s(way)
        once = min(self.step_s(way) for _ in range(3))
        self._repeats = min(max(1, -int(-seconds // max(once, 1e-6))), _MOST_REPEATS)

    def step_s(self, way: Way) -> float:
        images = self._of(way)[1][0]
        return self._timed(lambda: self._step(way, images))

    def loop_s(self, way: Way, batches: int) -> float:
        hosts, targets = self._of(way)
        self._module.synchronize()
        begin = time.perf_counter()
        self._ahead(way, hosts, targets, batches) if way.stream else self._at_once(way, hosts, targets, batches)
        self._module.synchronize()
        return time.perf_counter() - begin

    def _at_once(self, way: Way, hosts: list[Any], targets: list[Any], batches: int) -> None:
        for batch in range(batches):
            slot = batch % _SLOTS
            targets[slot].copy_(hosts[slot], non_blocking=way.pinned)
            self._step(way, targets[slot])

    def _ahead(self, way: Way, hosts: list[Any], targets: list[Any], batches: int) -> None:
        steps = self._module.current_stream()
        there = [self._module.Event() for _ in range(_SLOTS)]
        free = [self._module.Event() for _ in range(_SLOTS)]

        def begin(batch: int) -> None:
            slot = batch % _SLOTS
            with self._module.stream(self._copies):
                if batch >= _SLOTS:
                    self._copies.wait_event(free[slot])
                targets[slot].copy_(hosts[slot], non_blocking=True)
                there[slot].record(self._copies)

        begin(0)
        for batch in range(batches):
            slot = batch % _SLOTS
            steps.wait_event(there[slot])
            self._step(way, targets[slot])
            free[slot].record(steps)
            # the step runs or is queued; the next batch is copied concurrently
            if batch + 1 < batches:
                begin(batch + 1)

    def _step(self, way: Way, images: Any) -> None:
        """Converts the batch to floats and runs a small network repeatedly until the intended duration of the step is
        reached.
        """
        images = images.permute(0, 3, 1, 2)  # the batch is channels_last already
        if not way.channels_last:
            images = images.contiguous()
        images = images.to(self._dtype())
        if way.elements == "uint8":
            images = images / 255
        network = self._network(way.channels_last)
        with self._torch.no_grad():
            for _ in range(self._repeats):
                network(images)

    def _dtype(self) -> Any:
        return self._torch.float16 if self._device.type == "cuda" else self._torch.float32

    def _network(self, channels_last: bool) -> Callable[[Any], Any]:
        if channels_last not in self._networks:
            nn = self._torch.nn
            network = nn.Sequential(
                nn.Conv2d(3, 32, 3, stride=4, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3, padding=1)
            )
            layout = self._torch.channels_last if channels_last else self._torch.contiguous_format
            self._networks[channels_last] = network.to(self._device, self._dtype(), memory_format=layout)
        return self._networks[channels_last]

    def _of(self, way: Way) -> tuple[list[Any], list[Any]]:
        """Allocates batches on the host and on the device, one per slot."""
        if way not in self._batches:
            dtype = getattr(self._torch, way.elements)
            assert dtype.itemsize == BYTES[way.elements]
            self._batches[way] = (
                [self._host(self._shape, dtype, way.pinned) for _ in range(_SLOTS)],
                [self._torch.ones(self._shape, dtype=dtype, device=self._device) for _ in range(_SLOTS)],
            )
        return self._batches[way]

    def _host(self, shape: tuple[int, ...], dtype: Any, pinned: bool) -> Any:
        tensor = self._torch.ones(shape, dtype=dtype)  # written, so that its pages are allocated
        return tensor.pin_memory() if pinned else tensor

    def _copy(self, size: int, pinned: bool) -> None:
        host, target = self._copied[size, pinned]
        target.copy_(host, non_blocking=pinned)

    def _timed(self, work: Callable[[], None]) -> float:
        begin, end = self._module.Event(enable_timing=True), self._module.Event(enable_timing=True)
        self._module.synchronize()
        begin.record()
        work()
        end.record()
        self._module.synchronize()
        return float(begin.elapsed_time(end)) / 1000
