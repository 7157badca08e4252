# SPDX-License-Identifier: Apache-2.0
"""Hooks on synchronising calls and copies to devices, installed only in some steps. In all other steps, torch is
unmodified.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from feedline.profiler.probe import events
from feedline.profiler.probe.device_hooks import DeviceHooks, KeptHooks
from feedline.profiler.probe.recorder import Recorder, clock, cpu_clock

CALLS_SHARE = 0.0005
WARM_NS = 100_000_000
# Number of consecutive steps watched in a loop that uses a device: installing the hooks takes several times as long as
# a step with them.
RUN_STEPS = 8
_FREE_NS = 100_000
_FREE_RUNS = 2  # watched at any cost: the first step, and one run of steps once the loop is in a steady state
_CLOSE_NS = 50_000


class CountedCalls:
    """Counts .item() and .tolist(), and copies to devices, in some steps. In all other steps, torch is unmodified.

    The hooks remain installed between two consecutive watched steps, and pass calls through.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.installed = False  # a step is being watched
        self.left = 0  # remaining steps of the run
        self._cost_ns = self._once_ns = 0
        self._begin = self._begin_cpu = self._last_end = 0
        self._hidden: dict[str, Any] = {}
        self._kept = KeptHooks()
        self._first_ns = self._runs = 0
        self.count = self.spent_ns = 0
        self._devices = DeviceHooks(recorder)
        recorder.at_end.append(self.abandon)

    def watch(self) -> bool:
        """Called when a step begins. Returns whether the calls of this step are counted."""
        if self.left and _compiles():
            self.stop()
        if self.left:
            self._devices.begin()
        elif not self._install():
            return False
        self.count = self.spent_ns = 0
        self.installed = True
        self._begin, self._begin_cpu = clock(), cpu_clock()
        return True

    def _install(self) -> bool:
        torch = sys.modules.get("torch")
        if torch is None:
            return False
        if not self._affordable() or _compiles():
            self._devices.resolve()  # 0, except after a run
            return False
        self.left = RUN_STEPS if self._devices.used else 1
        self._runs += 1
        tensor = torch.Tensor
        for name in ("item", "tolist"):
            if name not in tensor.__dict__:
                setattr(tensor, name, self._kept.around(name, getattr(tensor, name), self._counting))
                self._hidden[name] = tensor
        self._devices.install(torch)
        return True

    def _affordable(self) -> bool:
        self._first_ns = self._first_ns or clock()
        since = clock() - self._first_ns
        free = 0 < self._runs < _FREE_RUNS and since > WARM_NS
        return free or self._cost_ns <= _FREE_NS + CALLS_SHARE * since

    def run_in(self) -> int | None:
        """Returns the time in ns until the second run of watched steps may start; None before the first run, after the
        second run, and if no device is used.
        """
        if self._runs != 1 or not self._devices.used:
            return None
        return max(self._first_ns + WARM_NS - clock(), 0)

    def end(self) -> None:
        """Called when the step ends."""
        if not self.installed:
            return
        self.installed = False
        self.left -= 1
        used = cpu_clock() - self._begin_cpu
        self._recorder.record(events.CALLS, self._begin, used, self.count, self.spent_ns)
        self.paid(self.count * self._recorder.call_ns + self._devices.end())
        if not self.left:
            self._remove()
        began = cpu_clock()
        if self._devices.tell():  # first use of a device
            self._once_ns = cpu_clock() - began
            self._recorder.paid_once(self._once_ns)

    def stop(self) -> None:
        """Called when an epoch has ended; cancels the remaining watched steps."""
        self.end()
        if self.left:
            self.left = 0
            self._remove()
        self._devices.resolve()

    def taken_once(self) -> int:
        """Returns the one-time cost since the last call; recurring costs of profiling exclude it."""
        took, self._once_ns = self._once_ns, 0
        return took

    def _remove(self) -> None:
        for name, tensor in self._hidden.items():
            delattr(tensor, name)
        self._hidden.clear()
        self._devices.remove()

    def abandon(self) -> None:
        """Called when a watched step ended without another batch; discards its measurements."""
        if self.installed or self.left:
            self.installed = False
            self.left = 0
            self._remove()

    def paid(self, took_ns: int) -> None:
        """Adds the time of replacing a method to the cost of the measurement. This time is significant: each
        replacement invalidates the method caches of many classes.
        """
        self._cost_ns += took_ns

    def _counting(self, original: Any) -> Callable[..., Any]:
        @functools.wraps(original)
        def call(tensor: Any, *arguments: Any, **options: Any) -> Any:
            if not self.installed:
                return original(tensor, *arguments, **options)
            begin = clock()
            try:
                return original(tensor, *arguments, **options)
            finally:
                end = clock()
                self.count += 1
                # work between adjacent calls belongs to them
                self.spent_ns += end - (begin if begin - self._last_end > _CLOSE_NS else self._last_end)
                self._last_end = end

        return call


def _compiles() -> bool:
    """Whether torch.compile was used, in which case changing a method would break its graphs."""
    frames = sys.modules.get("torch._dynamo.eval_frame")
    backends = getattr(frames, "cached_backends", None) or {}
    return len(backends) > 0 and any(backend is not None for backend in backends.values())
