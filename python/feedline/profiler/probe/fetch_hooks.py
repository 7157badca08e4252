# SPDX-License-Identifier: Apache-2.0
"""Hooks around the production of a batch: its samples, its collation, and gathering rows of arrays."""

from __future__ import annotations

import contextlib
import functools
import gc
from collections.abc import Callable
from typing import Any

from feedline.profiler.probe import events, worker_hooks
from feedline.profiler.probe.recorder import Recorder, clock, cpu_clock
from feedline.profiler.probe.sampling import WorkSampler

# Factor over other samples at which a sample has its own retained event.
_SLOW_TIMES = 5
_SLOW_NS = 1_000_000
_ALL_GENERATIONS = 2
_EVENTS_PER_FETCH = 3  # including collation
_EVENTS_PER_GATHER = 2


class _TimedSamples:
    """A map-style dataset with timed samples, used for one fetch."""

    def __init__(self, dataset: Any, recorder: Recorder) -> None:
        self._dataset, self._recorder = dataset, recorder
        self.longest = self.count = 0
        self._collecting_since = self._collected_ns = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._dataset, name)

    def __getitem__(self, index: Any) -> Any:
        begin, cpu = clock(), cpu_clock()
        try:
            return self._dataset[index]
        finally:
            self.took(begin, cpu, index)

    def took(self, begin: int, cpu: int, index: Any = 0) -> None:
        ended, took = cpu_clock(), clock() - begin - self._collected_ns
        self._collected_ns = 0
        mean = self._recorder.sample_mean_ns
        slow = mean > 0 and took > _SLOW_TIMES * mean and took > _SLOW_NS
        number = index if type(index) is int and 0 <= index < events.NO_TASK else 0
        self._recorder.record(events.SAMPLE, begin, ended - cpu, number, int(slow), slow)
        self._recorder.sample_mean_ns = took if mean == 0 else mean + (min(took, 10 * mean) - mean) / 32
        self.longest = max(self.longest, took)
        self.count += 1
        self._recorder.inside(ended)

    def collecting(self, phase: str, info: dict[str, int]) -> None:
        """Called by the garbage collector: a full collection visits all objects, which takes 100 ms with torch
        imported. This time is excluded from the time of the sample during which the collection runs.
        """
        if info["generation"] == _ALL_GENERATIONS:
            if phase == "start":
                self._collecting_since = clock()
            elif self._collecting_since:
                self._collected_ns += clock() - self._collecting_since
                self._collecting_since = 0


class _TimedStream:
    """An iterator with timed samples."""

    def __init__(self, samples: Any, timed: _TimedSamples) -> None:
        self._samples, self._timed = samples, timed

    def __iter__(self) -> _TimedStream:
        return self

    def __next__(self) -> Any:
        begin, cpu = clock(), cpu_clock()
        sample = next(self._samples)
        self._timed.took(begin, cpu)
        return sample


class _TimedCollate:
    """If a fetcher is pickled, the wrapped object is pickled instead."""

    def __init__(self, collate: Any, recorder: Recorder) -> None:
        self._collate, self._recorder = collate, recorder

    def __reduce__(self) -> Any:
        return (_itself, (self._collate,))

    def __call__(self, samples: Any) -> Any:
        local = self._recorder.local
        begin, cpu = clock(), cpu_clock()
        local.part = events.OF_COLLATION
        try:
            return self._collate(samples)
        finally:
            local.part = events.OF_SAMPLES
            ended = cpu_clock()
            count = len(samples) if isinstance(samples, list) else 1
            self._recorder.record(events.COLLATE, begin, ended - cpu, count, 0, False)
            self._recorder.inside(ended)


def _itself(value: Any) -> Any:
    return value


class _FetchHook:
    """Wraps the production of a batch: records its time, the time of its samples if details are allowed, and its
    collation.
    """

    def __init__(
        self, original: Callable[..., Any], recorder: Recorder, stream: str | None, collates: bool = False
    ) -> None:
        """`stream`: name of the attribute that holds an iterable dataset's iterator; None for a map-style dataset.

        `collates`: whether the fetcher calls its `collate_fn`.
        """
        self._original, self._recorder, self._stream, self._collates = original, recorder, stream, collates
        self._attribute = stream or "dataset"

    def unseen(self, fetcher: Any, index: Any) -> Any:
        local = self._recorder.local
        if local.by_task:
            return self._original(fetcher, index)
        try:
            return self._original(fetcher, index)
        finally:
            local.unseen -= 1

    def seen(self, fetcher: Any, index: Any) -> Any:
        recorder = self._recorder
        entered = cpu_clock()
        count = len(index) if isinstance(index, (list, tuple)) else 1
        if not recorder.in_worker and not recorder.local.in_next:
            _announce_worker(recorder)
        hidden = getattr(fetcher, self._attribute, None)
        timed = _TimedSamples(hidden, recorder)
        detail = self._begin_details(fetcher, timed, hidden, count)
        collate = fetcher.collate_fn if self._collates else None
        if self._collates:
            fetcher.collate_fn = _TimedCollate(collate, recorder)
        before = recorder.taken()
        recorder.local.part = events.OF_SAMPLES if self._collates else 0
        recorder.waits.begin()
        begin, cpu = clock(), cpu_clock()
        try:
            return self._original(fetcher, index)
        finally:
            ended, cpu_ended = clock(), cpu_clock()
            recorder.waits.end()
            recorder.local.part = 0
            if self._collates:
                fetcher.collate_fn = collate
            self._tell(begin, ended, cpu_ended - cpu, count, timed.longest)
            if detail:
                self._end_details(fetcher, timed, hidden)
                recorder.record(events.DETAILED_FETCH, begin, cpu_ended - cpu, count, timed.longest, False)
                self._pay_details(detail, timed.count)
            inside = before + recorder.taken()
            recorder.paid(cpu - entered + cpu_clock() - cpu_ended, _EVENTS_PER_FETCH, inside)

    def _tell(self, begin: int, ended: int, used: int, count: int, longest: int) -> None:
        """Accounts for a fetch of `count` samples that took this CPU time, and decides how many of the next fetches to
        skip.
        """
        recorder, local = self._recorder, self._recorder.local
        late = recorder.was_late(ended - begin, longest > 0)
        is_counted = late and not recorder.in_worker  # a worker's task accounts for itself
        recorder.record(events.FETCH, begin, used, count, longest, is_counted)
        if not local.by_task:
            local.unseen = recorder.unseen_after(ended - begin, _EVENTS_PER_FETCH, _pace_of(local, "fetch_pace"))
        recorder.opened.tell()
        local.longest = longest
        if recorder.in_worker and not local.by_task:  # a worker whose tasks are not recorded
            recorder.record(events.WORK, begin, used, events.NO_TASK, longest)

    def _begin_details(self, fetcher: Any, timed: _TimedSamples, hidden: Any, count: int) -> int:
        """Replaces `hidden`, the dataset or its stream, with `timed`. Returns the expected cost of details; 0 if they
        are too expensive.
        """
        local = self._recorder.local
        # events per sample: its own, its decoding, its Compose and single transforms
        detail = self._recorder.may_detail(count * getattr(local, "events_per_sample", 8))
        if detail:
            setattr(fetcher, self._attribute, _TimedStream(hidden, timed) if self._stream else timed)
            local.detail, local.details = True, 0
            gc.callbacks.append(timed.collecting)
        return detail

    def _end_details(self, fetcher: Any, timed: _TimedSamples, hidden: Any) -> None:
        with contextlib.suppress(ValueError):  # the script may have emptied the list
            gc.callbacks.remove(timed.collecting)
        setattr(fetcher, self._attribute, hidden)

    def _pay_details(self, expected_ns: int, samples: int) -> None:
        recorder, local = self._recorder, self._recorder.local
        local.detail = False
        if samples:
            local.events_per_sample = 1 + local.details // samples
        recorder.detailed(expected_ns, local.details + samples, local.hooks_ns)
        recorder.paid(recorder.taken())


def _around_fetch(
    original: Callable[..., Any], recorder: Recorder, stream: str | None, collates: bool = False
) -> Callable[..., Any]:
    hook = _FetchHook(original, recorder, stream, collates)
    seen, unseen = hook.seen, hook.unseen

    @functools.wraps(original)
    def fetch(self: Any, index: Any) -> Any:
        return unseen(self, index) if recorder.local.unseen > 0 else seen(self, index)

    return fetch


def _pace_of(local: Any, name: str) -> WorkSampler:
    """Returns the state of this thread."""
    pace: WorkSampler | None = getattr(local, name, None)
    if pace is None:
        pace = WorkSampler()
        setattr(local, name, pace)
    return pace


def _announce_worker(recorder: Recorder) -> None:
    """Records READY if this process is a worker that torch did not start; such workers fetch outside next()."""
    import multiprocessing

    if multiprocessing.parent_process() is not None:
        recorder.in_worker = True
        recorder.record(events.READY, clock(), 0, worker_hooks.loop_process(), 0)


def patch_torch_fetch(module: Any, recorder: Recorder) -> None:
    for kind, stream in ((module._MapDatasetFetcher, None), (module._IterableDatasetFetcher, "dataset_iter")):
        kind.fetch = _around_fetch(kind.fetch, recorder, stream, collates=True)


def patch_drop_in_fetch(module: Any, recorder: Recorder) -> None:
    collate = module.Fetcher._collate

    @functools.wraps(collate)
    def timed_collate(self: Any, samples: Any, index: Any) -> Any:
        if recorder.local.unseen:
            return collate(self, samples, index)
        begin, cpu = clock(), cpu_clock()
        try:
            return collate(self, samples, index)
        finally:
            ended = cpu_clock()
            count = len(samples) if isinstance(samples, list) else 1
            recorder.record(events.COLLATE, begin, ended - cpu, count, 0, False)
            recorder.inside(ended)

    module.Fetcher._collate = timed_collate
    module.Fetcher.fetch = _around_fetch(module.Fetcher.fetch, recorder, None)


def patch_gather(module: Any, recorder: Recorder) -> None:
    """Wraps the function that gathers rows of arrays without reading samples: CPU time counts as collation, waiting as
    reading.
    """
    gather = module.ArrayIterator._gather

    @functools.wraps(gather)
    def timed_gather(self: Any, index: Any) -> Any:
        local = recorder.local
        unseen = getattr(local, "unseen_gathers", 0)
        if unseen > 0:
            local.unseen_gathers = unseen - 1
            return gather(self, index)
        recorder.waits.begin()
        begin, cpu = clock(), cpu_clock()
        try:
            return gather(self, index)
        finally:
            ended, cpu_ended = clock(), cpu_clock()
            recorder.waits.end()
            used, rows = cpu_ended - cpu, len(index)
            recorder.record(events.GATHER, begin, used, rows, 0, False)
            recorder.record(events.FETCH, begin, used, rows, 0, False)
            gap = recorder.unseen_after(ended - begin, _EVENTS_PER_GATHER, _pace_of(local, "gather_pace"))
            local.unseen_gathers = gap
            recorder.paid(cpu_clock() - cpu_ended, _EVENTS_PER_GATHER)

    module.ArrayIterator._gather = timed_gather
