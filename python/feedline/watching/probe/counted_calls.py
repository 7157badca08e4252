# SPDX-License-Identifier: Apache-2.0
"""The hooks of some steps alone: synchronising calls, and copies to devices. In all others torch is as it was made."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from feedline.watching.probe import events
from feedline.watching.probe.device_hooks import DeviceHooks, KeptHooks
from feedline.watching.probe.recorder import Recorder, clock, cpu_clock

CALLS_SHARE = 0.0005
WARM_NS = 100_000_000
_FREE_NS = 100_000
_FREE_STEPS = 2  # are watched whatever they cost, the second once the loop runs smoothly
_CLOSE_NS = 50_000


class CountedCalls:
    """Counts .item() and .tolist(), and copies to devices, in some steps. torch is as it was made in all others."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.installed = False
        self._cost_ns = 0
        self._begin = self._begin_cpu = self._last_end = 0
        self._hidden: dict[str, Any] = {}
        self._kept = KeptHooks()
        self._first_ns = self._watched = 0
        self.count = self.spent_ns = 0
        self._devices = DeviceHooks(recorder)
        recorder.at_end.append(self.abandon)

    def watch(self) -> bool:
        """Called when a step begins. Whether it is watched."""
        torch = sys.modules.get("torch")
        if torch is None or not self._affordable() or _compiles():
            return False
        self._watched += 1
        self.count = self.spent_ns = 0
        tensor = torch.Tensor
        for name in ("item", "tolist"):
            if name not in tensor.__dict__:
                setattr(tensor, name, self._kept.around(name, getattr(tensor, name), self._counting))
                self._hidden[name] = tensor
        self._devices.install(torch)
        self.installed = True
        self._begin, self._begin_cpu = clock(), cpu_clock()
        return True

    def _affordable(self) -> bool:
        self._first_ns = self._first_ns or clock()
        since = clock() - self._first_ns
        free = 0 < self._watched < _FREE_STEPS and since > WARM_NS
        return free or self._cost_ns <= _FREE_NS + CALLS_SHARE * since

    def end(self) -> None:
        """Called when the step ends."""
        if not self.installed:
            return
        self.installed = False
        used = cpu_clock() - self._begin_cpu
        self._recorder.record(events.CALLS, self._begin, used, self.count, self.spent_ns)
        self._restore()
        self.paid(self.count * self._recorder.call_ns + self._devices.remove())
        self._devices.tell()  # a few times per run

    def abandon(self) -> None:
        """A step that is watched ended without a further batch: nothing is told of it."""
        if self.installed:
            self.installed = False
            self._restore()
            self._devices.remove()

    def _restore(self) -> None:
        for name, tensor in self._hidden.items():
            delattr(tensor, name)
        self._hidden.clear()

    def paid(self, took_ns: int) -> None:
        """Measured, as a busy process has many classes whose caches a change of a method touches."""
        self._cost_ns += took_ns

    def _counting(self, original: Any) -> Callable[..., Any]:
        @functools.wraps(original)
        def call(tensor: Any, *arguments: Any, **options: Any) -> Any:
            begin = clock()
            try:
                return original(tensor, *arguments, **options)
            finally:
                end = clock()
                self.count += 1
                # what happens between calls that follow each other closely is done for them
                self.spent_ns += end - (begin if begin - self._last_end > _CLOSE_NS else self._last_end)
                self._last_end = end

        return call


def _compiles() -> bool:
    """Whether anything was compiled by torch.compile: its graphs would break at a changed method."""
    frames = sys.modules.get("torch._dynamo.eval_frame")
    backends = getattr(frames, "cached_backends", None) or {}
    return any(backend is not None for backend in backends.values())
