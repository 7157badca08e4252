# SPDX-License-Identifier: Apache-2.0
"""Forces autocast on or off in each step of a script's loops, with a dtype from an environment variable.

This module is an extension of the probe (profiler/variables.py). A step is the time between two `next()` calls to a
loader. If the script enables autocast, the forced dtype replaces the script's; if it disables autocast, such as for a
loss, autocast stays disabled. With "off", autocast is never enabled, not even by the script. Only the thread that runs
the loop is affected; hooks stay installed until the process ends.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

from feedline.profiler.probe.recorder import Recorder

VARIABLE = "FEEDLINE_AUTOCAST"  # "cuda bfloat16": the device type, and a dtype's name or "off"
OFF = "off"
SUFFIX = ".autocast"
_ITERATORS = ("_BaseDataLoaderIter", "NativeIterator", "LoaderIterator")

_forced: dict[int, Forced] = {}  # by process: a forked worker has no entry


def install(module: Any, recorder: Recorder) -> None:
    """Called by the probe with each module that has a loader or a loader's iterator."""
    wanted = os.environ.get(VARIABLE, "").split()
    if len(wanted) != 2 or "torch" not in sys.modules:
        return
    forced = _forced.get(os.getpid())
    if forced is None:
        device, dtype = wanted
        forced = _forced[os.getpid()] = Forced(sys.modules["torch"], device, dtype, recorder)
    for name in _ITERATORS:
        iterator = getattr(module, name, None)
        if iterator is not None and "__next__" in iterator.__dict__:
            iterator.__next__ = forced.around_next(iterator.__next__)


class Forced:
    """Forces autocast on with `dtype`, the name of a torch dtype, or off (OFF), in this process."""

    def __init__(self, torch: Any, device: str, dtype: str, recorder: Recorder) -> None:
        self._torch, self._device, self._recorder = torch, device, recorder
        self._dtype = None if dtype == OFF else getattr(torch, dtype)
        self._local = threading.local()
        self._steps = 0
        self._why: str | None = None  # error if autocast could not be enabled
        torch.autocast.__enter__ = self._around_enter(torch.autocast.__enter__)
        optimizers: Any = sys.modules.get("torch.optim.optimizer")
        if hasattr(optimizers, "register_optimizer_step_post_hook"):  # weights change within a step
            optimizers.register_optimizer_step_post_hook(lambda *_: torch.clear_autocast_cache())
        atexit.register(self.tell)

    def around_next(self, original: Callable[[Any], Any]) -> Callable[[Any], Any]:
        @functools.wraps(original)
        def __next__(iterator: Any) -> Any:
            local = self._local
            if getattr(local, "inside", False):  # subclasses call their base's method
                return original(iterator)
            stepping = local.__dict__.setdefault("stepping", set())
            self._leave()
            stepping.discard(id(iterator))
            local.inside = True
            try:
                batch = original(iterator)
                stepping.add(id(iterator))
                return batch
            except StopIteration:
                self.tell()
                raise
            finally:
                local.inside = False
                if stepping:  # of this loop or an enclosing one
                    self._enter()

        return __next__

    def _enter(self) -> None:
        self._steps += 1
        if self._dtype is None or self._why is not None:
            return
        try:
            context = self._torch.autocast(self._device, dtype=self._dtype)
            context.__enter__()
            self._local.context = context
        except Exception as error:  # the GPU does not support the dtype
            self._why = str(error).splitlines()[0]

    def _leave(self) -> None:
        context = getattr(self._local, "context", None)
        if context is not None:
            self._local.context = None
            context.__exit__(None, None, None)

    def _around_enter(self, original: Callable[[Any], Any]) -> Callable[[Any], Any]:
        @functools.wraps(original)
        def enter(context: Any) -> Any:
            if context.device == self._device:
                if self._dtype is None:
                    context._enabled = False
                elif context._enabled:
                    context.fast_dtype = self._dtype
            return original(context)

        return enter

    def tell(self) -> None:
        """Records which loops were affected, and the peak memory of tensors on the device."""
        memory = None
        with contextlib.suppress(Exception):
            if self._device == "cuda" and self._torch.cuda.is_initialized():
                memory = int(self._torch.cuda.max_memory_allocated())
        facts = {"pid": os.getpid(), "steps": self._steps, "memory_bytes": memory, "why": self._why}
        if self._steps:
            self._recorder.write_json(f"{os.getpid()}{SUFFIX}", facts)
