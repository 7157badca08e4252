# SPDX-License-Identifier: Apache-2.0
"""The hooks of the process that runs the training loop: its waits, its steps, and synchronising calls inside them."""

from __future__ import annotations

import functools
import gc
import os
import sys
from collections.abc import Callable
from typing import Any

from feedline.machine import limits
from feedline.watching.probe import engine_hooks, events
from feedline.watching.probe.device_hooks import DeviceHooks, KeptHooks
from feedline.watching.probe.pace import Pace
from feedline.watching.probe.recorder import Recorder, clock, cpu_clock

_EVENTS_PER_CYCLE = 3
_CALLS_SHARE = 0.0005
_FREE_NS = 100_000
_FREE_STEPS, _WARM_NS = 2, 100_000_000  # are watched whatever they cost, the second once the loop runs smoothly
_CLOSE_NS = 50_000


class _Loop:
    """What is known of one iterator. Of `stride` cycles of next() and step, one is recorded for all of them."""

    __slots__ = ("active", "last_cpu", "last_end", "loader", "pace", "stride", "tally", "unseen", "unseen_cpu")

    def __init__(self, loader: int) -> None:
        self.loader = loader
        self.last_end = self.last_cpu = 0
        self.stride, self.unseen, self.unseen_cpu = 1, 0, 0
        self.pace = Pace()
        self.active = False
        self.tally: engine_hooks.Tally | None = None  # of the engine that fills its batches


class _Calls:
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
        free = 0 < self._watched < _FREE_STEPS and since > _WARM_NS
        return free or self._cost_ns <= _FREE_NS + _CALLS_SHARE * since

    def end(self) -> None:
        """Called when the step ends."""
        if not self.installed:
            return
        self.installed = False
        used = cpu_clock() - self._begin_cpu
        self._recorder.record(events.CALLS, self._begin, used, self.count, self.spent_ns)
        for name, tensor in self._hidden.items():
            delattr(tensor, name)
        self._hidden.clear()
        self.paid(self.count * self._recorder.call_ns + self._devices.remove())
        self._devices.tell()  # a few times per run

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


def _around_next(original: Callable[..., Any], recorder: Recorder, calls: _Calls, task: Any) -> Callable[..., Any]:
    local = recorder.local

    def unseen(iterator: Any, loop: _Loop) -> Any:
        loop.unseen -= 1
        loop.active = True
        begin = clock() if not loop.unseen else 0
        try:
            return original(iterator)
        except StopIteration:
            recorder.record(events.LAST, begin or clock(), 0, loop.loader, loop.stride - 1 - loop.unseen)
            recorder.waits.write()
            _tell_of_collections(recorder)
            if loop.tally is not None:
                loop.tally.look_at_end(engine_hooks.engine_of(iterator))
            raise
        finally:
            loop.active = False
            if loop.unseen == 0:  # what follows is seen
                loop.unseen_cpu = cpu_clock() - loop.last_cpu
                calls.watch()
                loop.last_end, loop.last_cpu = clock(), cpu_clock()

    @functools.wraps(original)
    def __next__(self: Any) -> Any:
        loop = self.__dict__.get("_feedline_loop")
        if loop is None or loop.active:  # nobody asked iter() for it, or a class calls its base's
            return original(self)
        if loop.unseen:
            return unseen(self, loop)
        entered = cpu_clock()
        cycle_begin, watching, looked = loop.last_end, calls.installed, False
        if cycle_begin:
            if loop.stride > 1:
                recorder.record(events.UNSEEN_CYCLES, cycle_begin, loop.unseen_cpu, loop.loader)
            recorder.record(events.STEP, cycle_begin, entered - loop.last_cpu, loop.loader, loop.stride)
        if calls.installed:
            calls.end()
        around, loop.active, local.in_next = local.in_next, True, True
        kind = events.LAST
        older = gc.get_count()[2]
        begin, cpu = clock(), cpu_clock()
        try:
            batch = original(self)
            kind = events.WAIT
            return batch
        finally:
            ended, cpu_ended = clock(), cpu_clock()
            loop.active, local.in_next = False, around
            inside = recorder.taken()  # of unpacking
            number = task(self) if kind == events.WAIT else 0
            recorder.record(kind, begin, cpu_ended - cpu - inside, loop.loader, number)
            if gc.get_count()[2] < older:  # a full collection begins to count anew
                _tell_of_collections(recorder, begin)
            if kind == events.WAIT:
                if cycle_begin:
                    told = number if number != events.NO_TASK else None
                    loop.unseen = recorder.unseen_after(ended - cycle_begin, _EVENTS_PER_CYCLE, loop.pace, told)
                    loop.stride = loop.unseen + 1
                if loop.tally is not None:
                    looked = loop.tally.look_if_due(engine_hooks.engine_of(self))
                if not loop.unseen:
                    watching = calls.watch() or watching
            else:
                _tell_of_collections(recorder)
                recorder.waits.write()
                if loop.tally is not None:
                    loop.tally.look_at_end(engine_hooks.engine_of(self))
                    looked = True
            loop.last_end, loop.last_cpu = clock(), cpu_clock()
            # by the CPU's clock: where the thread had to wait for a CPU in here, it would have elsewhere
            spent = cpu - entered + loop.last_cpu - cpu_ended
            only_events = cycle_begin and not watching and not looked
            charged = recorder.paid(spent, _EVENTS_PER_CYCLE if only_events else 0, inside)
            if watching and not looked:
                calls.paid(charged)

    return __next__


def _tell_of_collections(recorder: Recorder, begin_ns: int = 0) -> None:
    """`begin_ns`: of a wait that held one."""
    recorder.record(events.COLLECTIONS, begin_ns or clock(), 0, gc.get_stats()[2]["collections"], 1 if begin_ns else 0)


def _task_of(iterator: Any) -> int:
    """The number of the task whose batch next() just gave: torch's iterators count them."""
    received = iterator.__dict__.get("_rcvd_idx")
    return received - 1 if isinstance(received, int) and received > 0 else events.NO_TASK


def _no_task(_iterator: Any) -> int:
    return events.NO_TASK


def _around_iter(original: Callable[..., Any], recorder: Recorder, facts: Any) -> Callable[..., Any]:
    epochs: dict[int, int] = {}
    tallies: dict[tuple[int, int], engine_hooks.Tally] = {}

    @functools.wraps(original)
    def __iter__(self: Any) -> Any:
        if getattr(recorder.local, "in_iter", False) or recorder.in_worker:
            return original(self)
        recorder.local.in_iter = True
        try:
            if not recorder.passes:
                recorder.tell_of_loop()
            offered = clock()
            copied = recorder.offer(self)
            recorder.passes += 1
            begin, cpu = clock(), cpu_clock()
            if copied:
                recorder.record(events.COPY, offered)
            iterator = original(self)
            cpu_ended = cpu_clock()
            number, settings = _number_of(self, iterator, recorder, facts)
            if copied:
                settings["copied"] = True
                recorder.write_loader(number, settings)
            epoch = epochs[number] = epochs.get(number, -1) + 1
            recorder.record(events.ITER, begin, cpu_ended - cpu, number, epoch)
            recorder.record(events.PASS, clock(), 0, number, recorder.passes)
            _tell_of_collections(recorder)
            if hasattr(iterator, "__dict__"):
                loop = iterator.__dict__["_feedline_loop"] = _Loop(number)
                engine = engine_hooks.engine_of(iterator)
                if engine is not None:
                    key = (os.getpid(), number)
                    loop.tally = tallies.setdefault(key, engine_hooks.Tally(recorder, number, settings))
                    loop.tally.begin(engine)
            pay = recorder.paid_once if recorder.passes == 1 else recorder.paid
            pay(cpu_clock() - cpu_ended)
            return iterator
        finally:
            recorder.local.in_iter = False

    return __iter__


def _number_of(
    loader: Any, iterator: Any, recorder: Recorder, facts: Callable[[Any, Any], dict[str, Any]]
) -> tuple[int, dict[str, Any]]:
    try:
        settings = facts(loader, iterator)
    except Exception as error:  # a loader of a kind that nobody thought of
        recorder.note(f"the settings of a {type(loader).__qualname__} could not be read: {error!r}")
        settings = {"class": type(loader).__qualname__}
    return recorder.number_of_loader(settings, loader), settings


def patch_torch_loader(module: Any, recorder: Recorder) -> None:
    calls = _Calls(recorder)
    base = module._BaseDataLoaderIter
    base.__next__ = _around_next(base.__next__, recorder, calls, _task_of)
    module.DataLoader.__iter__ = _around_iter(module.DataLoader.__iter__, recorder, torch_facts)


def patch_native_iterator(module: Any, recorder: Recorder) -> None:
    """The drop-in's iterator over native threads."""
    native = module.NativeIterator
    native.__next__ = _around_next(native.__next__, recorder, _Calls(recorder), _no_task)


def patch_drop_in(module: Any, recorder: Recorder) -> None:
    """A loader of torch's kind, with an `__iter__` of its own."""
    module.DataLoader.__iter__ = _around_iter(module.DataLoader.__iter__, recorder, torch_facts)


def patch_own_loader(module: Any, recorder: Recorder) -> None:
    iterator = module.LoaderIterator
    iterator.__next__ = _around_next(iterator.__next__, recorder, _Calls(recorder), _no_task)
    module.Loader.__iter__ = _around_iter(module.Loader.__iter__, recorder, own_facts)


def patch_pin_memory(module: Any, recorder: Recorder) -> None:
    original = module.pin_memory

    @functools.wraps(original)
    def pin_memory(*arguments: Any, **options: Any) -> Any:
        if getattr(recorder.local, "pinning", False):  # a field of the batch: the function calls itself for each
            return original(*arguments, **options)
        recorder.local.pinning = True
        begin, cpu = clock(), cpu_clock()
        try:
            return original(*arguments, **options)
        finally:
            recorder.local.pinning = False
            recorder.record(events.PIN, begin, cpu_clock() - cpu, 0, 0, False)

    module.pin_memory = pin_memory


def process_facts() -> dict[str, Any]:
    torch = sys.modules.get("torch")
    facts: dict[str, Any] = {
        "rank": os.environ.get("RANK"),
        "world_size": os.environ.get("WORLD_SIZE"),
        "local_rank": limits.local_rank(),
        "sharing_ranks": limits.sharing_ranks(),
        "cpus": len(limits.allowed_cpus()),
    }
    if torch is not None:
        facts["torch"] = str(torch.__version__)
        facts["threads"] = torch.get_num_threads()
        facts["cuda"] = bool(torch.cuda.is_initialized())
    return facts


def torch_facts(loader: Any, iterator: Any = None) -> dict[str, Any]:
    """What a loader was made with, as far as it can be said without changing anything."""
    native = sys.modules.get("feedline.drop_in.native")
    context = getattr(loader, "multiprocessing_context", None)
    if context is None:
        import multiprocessing

        context = multiprocessing.get_context()
    lowered = native is not None and isinstance(iterator, native.NativeIterator)
    facts: dict[str, Any] = {
        **process_facts(),
        "class": f"{type(loader).__module__}.{type(loader).__qualname__}",
        "num_workers": getattr(loader, "num_workers", 0),
        "batch_size": _number(getattr(loader, "batch_size", None)),
        "prefetch_factor": getattr(loader, "prefetch_factor", None),
        "persistent_workers": bool(getattr(loader, "persistent_workers", False)),
        "pin_memory": bool(getattr(loader, "pin_memory", False)),
        "in_order": bool(getattr(loader, "in_order", True)),
        "start_method": context.get_start_method(),
        "iterable": bool(getattr(loader, "_dataset_kind", 0)),
        "dataset": type(getattr(loader, "dataset", None)).__qualname__,
        "collate": getattr(getattr(loader, "collate_fn", None), "__qualname__", "?"),
        "native": lowered,
    }
    if lowered and "_threads" in iterator.__dict__:  # rows of arrays; short ones without a thread
        facts["threads_gathering"] = 0 if iterator._threads is None else facts["num_workers"]
        facts["mapped"] = iterator._table.mapped
    return facts


def own_facts(_loader: Any, _iterator: Any) -> dict[str, Any]:
    return {
        **process_facts(),
        "class": "feedline.Loader",
        "num_workers": 0,
        "batch_size": None,
        "native": True,
    }


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) else None
