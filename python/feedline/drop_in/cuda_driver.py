# SPDX-License-Identifier: Apache-2.0
"""The few calls of CUDA's driver library that page-locking needs, opened at run time where torch found a GPU.

Contexts are the primary ones, which are torch's. Calls run in the relaxed mode of stream capture, as otherwise a CUDA
graph that some thread captures would fail for them; only `mark` fails such a capture, which CUDA's manual says of
cuCtxRecordEvent.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
from collections.abc import Iterator
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_uint, c_void_p
from typing import Any

LIBRARY = "libcuda.so.1"

_DEINITIALIZED, _NOT_READY, _CAPTURE_UNSUPPORTED = 4, 600, 900
_PORTABLE = 0x1  # CU_MEMHOSTREGISTER_PORTABLE: locked for every context, whichever device a tensor goes to
_DISABLE_TIMING = 0x2  # CU_EVENT_DISABLE_TIMING
_RELAXED = 2  # CU_STREAM_CAPTURE_MODE_RELAXED

_CALLS: dict[str, list[Any]] = {
    "cuGetErrorName": [c_int, POINTER(c_char_p)],
    "cuDeviceGetCount": [POINTER(c_int)],
    "cuDeviceGet": [POINTER(c_int), c_int],
    "cuDevicePrimaryCtxGetState": [c_int, POINTER(c_uint), POINTER(c_int)],
    "cuDevicePrimaryCtxRetain": [POINTER(c_void_p), c_int],
    "cuCtxPushCurrent_v2": [c_void_p],
    "cuCtxPopCurrent_v2": [POINTER(c_void_p)],
    "cuThreadExchangeStreamCaptureMode": [POINTER(c_int)],
    "cuMemHostRegister_v2": [c_void_p, c_size_t, c_uint],
    "cuMemHostUnregister": [c_void_p],
    "cuEventCreate": [POINTER(c_void_p), c_uint],
    "cuEventQuery": [c_void_p],
    "cuCtxRecordEvent": [c_void_p, c_void_p],
}


class DriverError(Exception):
    """A call of the driver failed, or cannot be made here."""


class CapturingError(DriverError):
    """Not now: a CUDA graph is being captured."""


class EndedError(DriverError):
    """The driver has shut down, as it does when the process ends."""


_KINDS = {_CAPTURE_UNSUPPORTED: CapturingError, _DEINITIALIZED: EndedError}


class Driver:
    """Any thread may call it, but no process that was forked since."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._calls: dict[str, Any] = {}
        for name, arguments in _CALLS.items():
            call = getattr(library, name)
            call.argtypes, call.restype = arguments, c_int
            self._calls[name] = call
        self._contexts: dict[int, c_void_p] = {}  # device -> its primary context, once that was active
        self._spare: dict[int, list[c_void_p]] = {}  # device -> events that are free

    def in_use(self) -> list[int]:
        """The devices that this process has given work to, or may have."""
        count, device, flags, active = c_int(), c_int(), c_uint(), c_int()
        self._do("cuDeviceGetCount", byref(count))
        devices = []
        for i in range(count.value):
            self._do("cuDeviceGet", byref(device), i)
            self._do("cuDevicePrimaryCtxGetState", device, byref(flags), byref(active))
            if active.value:
                devices.append(i)
                if i not in self._contexts:
                    context = c_void_p()
                    self._do("cuDevicePrimaryCtxRetain", byref(context), device)
                    self._contexts[i] = context
        return devices

    def register(self, device: int, address: int, size: int) -> None:
        """Page-locks whole pages. `device` is one in use; every other may read them as well."""
        with self._current(device):
            self._do("cuMemHostRegister_v2", address, size, _PORTABLE)

    def unregister(self, device: int, address: int) -> None:
        with self._current(device):
            self._do("cuMemHostUnregister", address)

    def mark(self) -> Mark:
        """After everything that any device has been given until now.

        Raises:
            CapturingError: a stream captures a CUDA graph, which has failed for that.
        """
        events: list[tuple[int, c_void_p]] = []
        try:
            for device in self.in_use():
                with self._current(device):
                    spare = self._spare.setdefault(device, [])
                    event = spare.pop() if spare else c_void_p()
                    if not event:
                        self._do("cuEventCreate", byref(event), _DISABLE_TIMING)
                    events.append((device, event))
                    self._do("cuCtxRecordEvent", self._contexts[device], event)
        except DriverError:
            for device, event in events:
                self._spare[device].append(event)
            raise
        return Mark(self, events)

    def _is_past(self, device: int, event: c_void_p) -> bool:
        with self._current(device):
            status = self._calls["cuEventQuery"](event)
            if status == _NOT_READY:
                return False
            self._check("cuEventQuery", status)
        self._spare[device].append(event)
        return True

    @contextlib.contextmanager
    def _current(self, device: int) -> Iterator[None]:
        mode, popped = c_int(_RELAXED), c_void_p()
        self._do("cuThreadExchangeStreamCaptureMode", byref(mode))
        try:
            self._do("cuCtxPushCurrent_v2", self._contexts[device])
            try:
                yield
            finally:
                self._do("cuCtxPopCurrent_v2", byref(popped))
        finally:
            self._do("cuThreadExchangeStreamCaptureMode", byref(mode))

    def _do(self, name: str, *arguments: Any) -> None:
        self._check(name, self._calls[name](*arguments))

    def _check(self, name: str, status: int) -> None:
        if status:
            words = c_char_p()
            self._calls["cuGetErrorName"](status, byref(words))
            what = words.value.decode() if words.value else f"error {status}"
            raise _KINDS.get(status, DriverError)(f"{name.removesuffix('_v2')}: {what}")


class Mark:
    """A moment in the work of all devices."""

    def __init__(self, driver: Driver, events: list[tuple[int, c_void_p]]) -> None:
        self._driver, self._events = driver, events

    def is_past(self) -> bool:
        """Whether the devices have done all that they had been given by then. Asks, and does not wait."""
        while self._events:
            if not self._driver._is_past(*self._events[-1]):
                return False
            self._events.pop()
        return True


@functools.cache
def open_driver() -> Driver:
    """
    Raises:
        DriverError: there is no driver library, or one from before CUDA 12.5.
    """
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError:
        raise DriverError(f"there is no {LIBRARY}") from None
    try:
        return Driver(library)
    except AttributeError as error:
        name = next((name for name in _CALLS if name in str(error)), str(error))
        raise DriverError(f"the GPU's driver has no {name}, which came with CUDA 12.5; update the driver") from None
