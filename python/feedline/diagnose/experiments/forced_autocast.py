# SPDX-License-Identifier: Apache-2.0
"""In a script's processes: autocast around each step of its loops, of the type that a variable names, whatever it asks.

An extension of the probe (watching/variables.py). A step lasts from one `next()` of a loader to the following. Where
the script enters autocast itself, its type becomes the forced one; where it leaves it, for a loss perhaps, it stays
left. "off": none is entered, and the script's own does nothing. Steps are of the thread that runs the loop; hooks stay
as long as the process.
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

from feedline.watching.probe.recorder import Recorder

VARIABLE = "FEEDLINE_AUTOCAST"  # "cuda bfloat16": the kind of device, and a type's name or "off"
OFF = "off"
SUFFIX = ".autocast"
_ITERATORS = ("_BaseDataLoaderIter", "NativeIterator", "LoaderIterator")

_forced: dict[int, Forced] = {}  # by process: a forked worker has none of its own


def install(module: Any, recorder: Recorder) -> None:
    """Called by the probe with each module that has a loader, or an iterator of one."""
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
    """Of one process. `dtype`: a name of torch's, or OFF."""

    def __init__(self, torch: Any, device: str, dtype: str, recorder: Recorder) -> None:
        self._torch, self._device, self._recorder = torch, device, recorder
        self._dtype = None if dtype == OFF else getattr(torch, dtype)
        self._local = threading.local()
        self._steps = 0
        self._why: str | None = None  # no such autocast could be entered
        torch.autocast.__enter__ = self._around_enter(torch.autocast.__enter__)
        optimizers: Any = sys.modules.get("torch.optim.optimizer")
        if hasattr(optimizers, "register_optimizer_step_post_hook"):  # a step may go forward again with changed weights
            optimizers.register_optimizer_step_post_hook(lambda *_: torch.clear_autocast_cache())
        atexit.register(self.tell)

    def around_next(self, original: Callable[[Any], Any]) -> Callable[[Any], Any]:
        @functools.wraps(original)
        def __next__(iterator: Any) -> Any:
            local = self._local
            if getattr(local, "inside", False):  # a class that calls its base's
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
                if stepping:  # of this loop, or of one around it
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
        except Exception as error:  # such a GPU has no such type
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
        """Leaves a note of what was done, and of the most memory that tensors had on the device."""
        memory = None
        with contextlib.suppress(Exception):
            if self._device == "cuda" and self._torch.cuda.is_initialized():
                memory = int(self._torch.cuda.max_memory_allocated())
        facts = {"pid": os.getpid(), "steps": self._steps, "memory_bytes": memory, "why": self._why}
        if self._steps:
            self._recorder.write_json(f"{os.getpid()}{SUFFIX}", facts)
