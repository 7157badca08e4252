# SPDX-License-Identifier: Apache-2.0
"""Hooks in the training loop's process: its waits, its steps, and synchronising calls in the steps."""

from __future__ import annotations

import functools
import gc
import os
from collections.abc import Callable
from typing import Any

from feedline.profiler.probe import engine_hooks, events, worker_hooks
from feedline.profiler.probe.counted_calls import CountedCalls
from feedline.profiler.probe.loader_facts import own_facts, torch_facts
from feedline.profiler.probe.recorder import Recorder, clock, cpu_clock
from feedline.profiler.probe.sampling import WorkSampler

_EVENTS_PER_CYCLE = 3


class _Loop:
    """State of one iterator. One of every `stride` cycles of next() and step is recorded, and represents all `stride`
    cycles.
    """

    __slots__ = ("active", "last_cpu", "last_end", "loader", "pace", "stride", "tally", "unseen", "unseen_cpu")

    def __init__(self, loader: int) -> None:
        self.loader = loader
        self.last_end = self.last_cpu = 0
        self.stride, self.unseen, self.unseen_cpu = 1, 0, 0
        self.pace = WorkSampler()
        self.active = False
        self.tally: engine_hooks.Tally | None = None  # counters of its engine


class _NextHook:
    """Wraps an iterator's next(): records the wait in it, and the preceding step of the loop."""

    def __init__(
        self, original: Callable[..., Any], recorder: Recorder, calls: CountedCalls, task: Callable[[Any], int]
    ) -> None:
        self._original, self._recorder, self._calls, self._task = original, recorder, calls, task
        self._local = recorder.local

    def unseen(self, iterator: Any, loop: _Loop) -> Any:
        """Handles a call that is not recorded."""
        loop.unseen -= 1
        loop.active = True
        begin = clock() if not loop.unseen else 0
        try:
            return self._original(iterator)
        except StopIteration:
            recorder = self._recorder
            recorder.record(events.LAST, begin or clock(), 0, loop.loader, loop.stride - 1 - loop.unseen)
            recorder.waits.write()
            _tell_of_collections(recorder)
            if loop.tally is not None:
                loop.tally.look_at_end(engine_hooks.engine_of(iterator))
            raise
        except Exception as error:
            self._recorder.failed(error, iterator)
            raise
        finally:
            loop.active = False
            if loop.unseen == 0:  # the next one is recorded
                entered = cpu_clock()
                loop.unseen_cpu = entered - loop.last_cpu
                if self._calls.watch():
                    self._calls.paid(self._recorder.paid(cpu_clock() - entered))
                loop.last_end, loop.last_cpu = clock(), cpu_clock()

    def seen(self, iterator: Any, loop: _Loop) -> Any:
        recorder, calls, local = self._recorder, self._calls, self._local
        entered = cpu_clock()
        cycle_begin, watched = loop.last_end, calls.installed
        if cycle_begin:
            self._tell_of_step(loop, entered)
        if watched:
            calls.end()
        around, loop.active, local.in_next = local.in_next, True, True
        kind = events.LAST
        older = gc.get_count()[2]
        begin, cpu = clock(), cpu_clock()
        try:
            batch = self._original(iterator)
            kind = events.WAIT
            return batch
        except StopIteration:
            raise
        except Exception as error:
            recorder.failed(error, iterator)
            raise
        finally:
            ended, cpu_ended = clock(), cpu_clock()
            loop.active, local.in_next = False, around
            inside = recorder.taken()  # of unpacking
            number = self._task(iterator) if kind == events.WAIT else 0
            recorder.record(kind, begin, cpu_ended - cpu - inside, loop.loader, number)
            if gc.get_count()[2] < older:  # a full collection resets the count
                _tell_of_collections(recorder, begin)
            if kind == events.WAIT:
                took = ended - cycle_begin if cycle_begin else 0
                looked, watches = self._go_on(iterator, loop, took, number)
                watched = watches or watched
            else:
                looked = self._finish(iterator, loop)
            loop.last_end, loop.last_cpu = clock(), cpu_clock()
            # in CPU time, which excludes waits for a CPU
            spent = max(cpu - entered + loop.last_cpu - cpu_ended - calls.taken_once(), 0)
            only_events = cycle_begin and not watched and not looked
            charged = recorder.paid(spent, _EVENTS_PER_CYCLE if only_events else 0, inside)
            if watched and not looked:
                calls.paid(charged)

    def _tell_of_step(self, loop: _Loop, ended_cpu: int) -> None:
        """Records the step that ends now, which may represent several steps."""
        if loop.stride > 1:
            self._recorder.record(events.UNSEEN_CYCLES, loop.last_end, loop.unseen_cpu, loop.loader)
        self._recorder.record(events.STEP, loop.last_end, ended_cpu - loop.last_cpu, loop.loader, loop.stride)

    def _go_on(self, iterator: Any, loop: _Loop, cycle_ns: int, number: int) -> tuple[bool, bool]:
        """Decides how much of the next step to record. `cycle_ns`: duration of the preceding step and wait, or 0 if
        there is none.

        Returns whether the engine's counters were read, and whether the step is watched.
        """
        if self._calls.left:  # of a watched run
            loop.stride, loop.unseen = 1, 0
        elif cycle_ns:
            known_task = number if number != events.NO_TASK else None
            loop.unseen = self._recorder.unseen_after(cycle_ns, _EVENTS_PER_CYCLE, loop.pace, known_task)
            due = self._calls.run_in()
            if due is not None:  # a short loop may end within a few steps
                loop.unseen = min(loop.unseen, due // cycle_ns + 1)
            loop.stride = loop.unseen + 1
        looked = loop.tally is not None and loop.tally.look_if_due(engine_hooks.engine_of(iterator))
        return looked, not loop.unseen and self._calls.watch()

    def _finish(self, iterator: Any, loop: _Loop) -> bool:
        """Records the end of an epoch, including an end caused by an error. Returns whether the engine's counters were
        read.
        """
        _tell_of_collections(self._recorder)
        self._recorder.waits.write()
        self._calls.stop()
        if loop.tally is not None:
            loop.tally.look_at_end(engine_hooks.engine_of(iterator))
        return loop.tally is not None


def _around_next(
    original: Callable[..., Any], recorder: Recorder, calls: CountedCalls, task: Callable[[Any], int]
) -> Callable[..., Any]:
    hook = _NextHook(original, recorder, calls, task)
    seen, unseen, key = hook.seen, hook.unseen, _key_of(recorder)

    @functools.wraps(original)
    def __next__(self: Any) -> Any:
        loop = self.__dict__.get(key)
        if loop is None or loop.active:  # not created by iter(), or a class calls its base's method
            return original(self)
        return unseen(self, loop) if loop.unseen else seen(self, loop)

    return __next__


def _key_of(recorder: Recorder) -> str:
    """Name of the attribute that holds an iterator's state. The name differs between sessions, so that earlier
    iterators are ignored.
    """
    return f"_feedline_loop{recorder.sessions or ''}"


def _tell_of_collections(recorder: Recorder, begin_ns: int = 0) -> None:
    """`begin_ns`: start of a wait during which a garbage collection ran."""
    recorder.record(events.COLLECTIONS, begin_ns or clock(), 0, gc.get_stats()[2]["collections"], 1 if begin_ns else 0)


def _task_of(iterator: Any) -> int:
    """Returns the number of the task whose batch next() just returned, as counted by iterators with workers."""
    received = getattr(iterator, "_rcvd_idx", None)
    return received - 1 if isinstance(received, int) and received > 0 else events.NO_TASK


def _no_task(_iterator: Any) -> int:
    return events.NO_TASK


def _around_iter(original: Callable[..., Any], recorder: Recorder, facts: Any) -> Callable[..., Any]:
    epochs: dict[int, int] = {}
    tallies: dict[tuple[int, int], engine_hooks.Tally] = {}
    key = _key_of(recorder)

    @functools.wraps(original)
    def __iter__(self: Any) -> Any:
        if getattr(recorder.local, "in_iter", False) or recorder.in_worker:
            return original(self)
        recorder.local.in_iter = True
        try:
            if not recorder.passes:
                recorder.record_loop()
            offered = clock()
            copied = recorder.offer(self)
            recorder.passes += 1
            begin, cpu = clock(), cpu_clock()
            if copied:
                recorder.record(events.COPY, offered)
            try:
                iterator = original(self)
            except Exception as error:
                recorder.failed(error, self, _settings_of(self, None, recorder, facts))
                raise
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
                loop = iterator.__dict__[key] = _Loop(number)
                engine = engine_hooks.engine_of(iterator)
                if engine is not None:
                    own = (os.getpid(), number)
                    loop.tally = tallies.setdefault(own, engine_hooks.Tally(recorder, number, settings))
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
    settings = _settings_of(loader, iterator, recorder, facts)
    return recorder.number_of_loader(settings, loader), settings


def _settings_of(
    loader: Any, iterator: Any, recorder: Recorder, facts: Callable[[Any, Any], dict[str, Any]]
) -> dict[str, Any]:
    try:
        return facts(loader, iterator)
    except Exception as error:  # an unknown kind of loader
        recorder.note(f"the settings of a {type(loader).__qualname__} could not be read: {error!r}")
        return {"class": type(loader).__qualname__}


def patch_torch_loader(module: Any, recorder: Recorder) -> None:
    calls = CountedCalls(recorder)
    base = module._BaseDataLoaderIter
    base.__next__ = _around_next(base.__next__, recorder, calls, _task_of)
    module.DataLoader.__iter__ = _around_iter(module.DataLoader.__iter__, recorder, torch_facts)
    worker_hooks.patch_pickling(recorder)


def patch_native_iterator(module: Any, recorder: Recorder) -> None:
    """Hooks the iterator of Feedline's DataLoader over native threads."""
    native = module.NativeIterator
    native.__next__ = _around_next(native.__next__, recorder, CountedCalls(recorder), _no_task)


def patch_drop_in(module: Any, recorder: Recorder) -> None:
    """Hooks a loader that resembles torch's but has its own `__iter__`."""
    module.DataLoader.__iter__ = _around_iter(module.DataLoader.__iter__, recorder, torch_facts)


def patch_own_loader(module: Any, recorder: Recorder) -> None:
    iterator = module.LoaderIterator
    iterator.__next__ = _around_next(iterator.__next__, recorder, CountedCalls(recorder), _no_task)
    module.Loader.__iter__ = _around_iter(module.Loader.__iter__, recorder, own_facts)


def patch_pin_memory(module: Any, recorder: Recorder) -> None:
    original = module.pin_memory

    @functools.wraps(original)
    def pin_memory(*arguments: Any, **options: Any) -> Any:
        if getattr(recorder.local, "pinning", False):  # a field of the batch: the function is recursive
            return original(*arguments, **options)
        recorder.local.pinning = True
        begin, cpu = clock(), cpu_clock()
        try:
            return original(*arguments, **options)
        finally:
            recorder.local.pinning = False
            recorder.record(events.PIN, begin, cpu_clock() - cpu, 0, 0, False)

    module.pin_memory = pin_memory
