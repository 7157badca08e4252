# SPDX-License-Identifier: Apache-2.0
"""Hooks on device operations in a watched step: copies from host memory, and the numeric precision.

A copy's time on the device is measured by two events on its stream (stream_times.py). The events are read before the
next run of watched steps, or at the first recorded step that is not watched.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any

from feedline.profiler.probe import copy_targets, events
from feedline.profiler.probe.recorder import Recorder, clock, cpu_clock
from feedline.profiler.probe.stream_times import StreamTimes, Timing

_MOST_PENDING = 256  # limit of copies with unread events: if a device lags, fewer copies are measured
_MOST_PARAMETERS = 4096  # parameters whose types are examined
_MOST_SIZES = 16  # per step
_INSTALL_NS = 12_000  # measured cost of install() and remove(), for the printed overhead
_HOST = ("cpu", "meta")
_ABSENT = object()


class KeptHooks:
    """Caches hooks on methods, because creating a hook takes longer than installing it."""

    def __init__(self) -> None:
        self._made: dict[str, tuple[Any, Any]] = {}

    def around(self, name: str, original: Any, around: Callable[[Any], Any]) -> Any:
        """Returns the hook that `around` creates for `original`, or the cached one if `original` is unchanged."""
        made = self._made.get(name)
        if made is None or made[0] is not original:
            made = self._made[name] = (original, around(original))
        return made[1]


class DeviceHooks:
    """Hooks for one kind of loop in one process. Call `install` before a watched step, and `remove` after it.

    In consecutive watched steps, call `begin` for all but the first, and `end` for all but the last.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._torch: Any = None
        self._hidden: list[tuple[Any, str, Any]] = []
        self._kept = KeptHooks()
        self._copies: dict[int, list[int]] = defaultdict(lambda: [0, 0, 0])  # by flags: copies, bytes, ns in the calls
        self._pending: deque[tuple[Timing, int]] = deque(maxlen=_MOST_PENDING)  # with the flags of the copy
        self._sizes: list[int] = []  # of this step's copies, except parameters; and of the step with most bytes
        self._batch: list[int] = []
        self._well = True  # whether all copies so far were from page-locked memory and non-blocking
        self._optimizer_hook: Any = None
        self._cost_ns = 0
        self._watches = False
        self._times: dict[Any, StreamTimes] = {}  # by device
        self._devices: set[Any] = set()
        self._parameters: dict[int, dict[str, int]] = {}  # by optimizer: number of elements by type
        self._autocast: set[str] = set()
        self._told: tuple[int, ...] = ()  # number of facts in the last report
        self._step: Timing | None = None  # the step being watched
        self._steps: deque[Timing] = deque(maxlen=_MOST_PENDING)

    @property
    def used(self) -> bool:
        """Whether any step used a device."""
        return bool(self._devices)

    def install(self, torch: Any) -> None:
        """Installs the hooks and begins a step."""
        self._torch = torch
        tensor = torch.Tensor
        for name, target in (
            ("to", copy_targets.of_to),
            ("cuda", copy_targets.of_cuda),
            ("copy_", copy_targets.of_copy),
        ):
            self._hide(tensor, name, functools.partial(self._around, target))
        autocast = getattr(torch, "autocast", None)
        if autocast is not None:
            self._hide(autocast, "__enter__", self._around_enter)
        optimizers: Any = sys.modules.get("torch.optim.optimizer")
        if hasattr(optimizers, "register_optimizer_step_pre_hook"):
            self._optimizer_hook = optimizers.register_optimizer_step_pre_hook(self._before_step)
        self._cost_ns += _INSTALL_NS
        self.resolve()
        self.begin()

    def begin(self) -> None:
        """Begins a watched step."""
        self._watches = True
        self._begin_step()

    def end(self) -> int:
        """Ends the step; hooks pass calls through until the next step. Returns the other costs of watching the step, in
        ns.
        """
        self._watches = False
        self._end_step()
        for flags, (copies, size, spent) in self._copies.items():
            self._recorder.record(events.COPIES, clock() - spent, 0, size, flags + 256 * copies)
        self._copies.clear()
        if sum(self._sizes) > sum(self._batch):
            self._batch = sorted(self._sizes, reverse=True)[:_MOST_SIZES]
        self._sizes.clear()
        cost, self._cost_ns = self._cost_ns, 0
        self._recorder.record(events.DEVICE_COST, clock(), 0, cost, 0, False)
        return cost

    def remove(self) -> int:
        """Removes the hooks and ends the step. Returns the result of end()."""
        cost = self.end() if self._watches else 0
        for owner, name, original in self._hidden:
            if original is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, original)
        self._hidden.clear()
        if self._optimizer_hook is not None:
            self._optimizer_hook.remove()
            self._optimizer_hook = None
        return cost

    def _hide(self, owner: Any, name: str, around: Callable[[Any], Any]) -> None:
        self._hidden.append((owner, name, owner.__dict__.get(name, _ABSENT)))
        setattr(owner, name, self._kept.around(name, getattr(owner, name), around))

    # -- copies

    def _around(self, target: Callable[..., tuple[Any, Any, bool]], original: Any) -> Callable[..., Any]:
        @functools.wraps(original)
        def call(tensor: Any, *arguments: Any, **options: Any) -> Any:
            if not self._watches:
                return original(tensor, *arguments, **options)
            entered = cpu_clock()
            source, device, flags, timing = self._look(target, tensor, arguments, options)
            self._cost_ns += cpu_clock() - entered
            if device is None:
                return original(tensor, *arguments, **options)
            begin = clock()
            result = original(tensor, *arguments, **options)
            spent, ended = clock() - begin, cpu_clock()
            self._copied(source, device, flags, timing, spent)
            self._cost_ns += cpu_clock() - ended
            return result

        return call

    def _look(
        self, target: Callable[..., tuple[Any, Any, bool]], tensor: Any, arguments: Any, options: Any
    ) -> tuple[Any, Any, int, Timing | None]:
        """Returns (source, device, flags, timing) of a copy from the host; device is None for other copies. Never
        raises.
        """
        torch = self._torch
        try:
            source, device, asked = target(torch, tensor, arguments, options)
            plain = type(source) is torch.Tensor or type(source) is torch.nn.Parameter
            if not plain or source.device.type != "cpu" or device is None or device.type in _HOST:
                return None, None, 0, None
            flags = (events.PINNED if source.is_pinned() else 0) | (events.ASKED if asked else 0)
            timing = self._timing(device)
            if timing is not None and timing.aside:
                flags |= events.OTHER_STREAM
        except Exception:  # wrong arguments, which the method itself reports
            return None, None, 0, None
        return source, device, flags, timing

    def _module(self, device: Any) -> Any:
        """Returns torch.cuda for "cuda"; None if the device type has no module."""
        return getattr(self._torch, device.type, None)

    def _timing(self, device: Any) -> Timing | None:
        times = self._times.get(device)
        if times is None:
            times = self._times[device] = StreamTimes(self._module(device), device)
        return times.begin()

    def _copied(self, source: Any, device: Any, flags: int, timing: Timing | None, spent: int) -> None:
        with contextlib.suppress(Exception):
            counts = self._copies[flags]
            counts[0] += 1
            counts[1] += source.nbytes
            counts[2] += spent
            self._devices.add(device)
            if type(source) is not self._torch.nn.Parameter:
                self._sizes.append(source.nbytes)
                self._well = self._well and bool(flags & events.PINNED and flags & events.ASKED)
            if timing is not None and timing.of.end(timing):
                self._pending.append((timing, flags))

    def resolve(self) -> None:
        """Reads completed events for copies and steps, without waiting."""
        times: dict[int, list[int]] = defaultdict(lambda: [0, 0])
        with contextlib.suppress(Exception):
            while self._pending and self._pending[0][0].end.query():
                timing, flags = self._pending.popleft()
                times[flags][0] += 1
                times[flags][1] += timing.of.read(timing)
            while self._steps and self._steps[0].end.query():
                timing = self._steps.popleft()
                times[events.WHOLE_STEP][0] += 1
                times[events.WHOLE_STEP][1] += timing.of.read(timing)
        for flags, (copies, spent) in times.items():
            self._recorder.record(events.DEVICE_TIMES, clock(), 0, spent, flags + 256 * copies)

    # -- the step as a whole

    def _begin_step(self) -> None:
        """Measures the stream's time for the step, if the first watched step used exactly one device."""
        if len(self._devices) != 1:
            return
        entered = cpu_clock()
        with contextlib.suppress(Exception):
            self._step = self._timing(next(iter(self._devices)))
        self._cost_ns += cpu_clock() - entered

    def _end_step(self) -> None:
        if self._step is None:
            return
        entered = cpu_clock()
        timing, self._step = self._step, None
        with contextlib.suppress(Exception):
            if timing.of.end(timing):
                self._steps.append(timing)
        self._cost_ns += cpu_clock() - entered

    # -- precision

    def _around_enter(self, original: Any) -> Callable[..., Any]:
        @functools.wraps(original)
        def enter(context: Any) -> Any:
            with contextlib.suppress(Exception):
                if context._enabled and context.device not in _HOST:
                    self._autocast.add(str(context.fast_dtype))
            return original(context)

        return enter

    def _before_step(self, optimizer: Any, _arguments: Any, _options: Any) -> None:
        with contextlib.suppress(Exception):
            if id(optimizer) in self._parameters:
                return
            entered = cpu_clock()
            types: dict[str, int] = defaultdict(int)
            parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
            for parameter in parameters[:_MOST_PARAMETERS]:
                if parameter.device.type not in _HOST:
                    self._devices.add(parameter.device)
                    types[str(parameter.dtype)] += parameter.numel()
            self._parameters[id(optimizer)] = types
            self._cost_ns += cpu_clock() - entered

    def tell(self) -> bool:
        """Writes a note about the devices that this process uses, and about their use, if it has changed.

        Returns whether this is the first note, for which the device's properties are queried.
        """
        if not self._devices:
            return False
        facts = (len(self._devices), len(self._parameters), len(self._autocast), sum(self._batch), self._well)
        if facts == self._told:
            return False
        first, self._told = not self._told, facts
        with contextlib.suppress(Exception):
            elements: dict[str, int] = defaultdict(int)
            for types in self._parameters.values():
                for name, count in types.items():
                    elements[name] += count
            seen = {"devices": len(self._devices), "elements": dict(elements), "autocast": sorted(self._autocast)}
            seen |= {"batch_bytes": self._batch, "copied_well": self._well, "pid": os.getpid()}
            device = min(self._devices, key=str)
            self._recorder.write_json(f"{os.getpid()}.device", {**seen, **copy_targets.facts_of(self._torch, device)})
        return first
