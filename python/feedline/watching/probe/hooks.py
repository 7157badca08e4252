# SPDX-License-Identifier: Apache-2.0
"""The probe: what is put around functions of torch, torchvision, Pillow and Feedline in the watched processes.

A hook calls what it hides with the same arguments, gives its result or raises its exception, and records beside it.
Loaded by ``inject/sitecustomize.py``, never by ``import feedline``.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import os
import sys
from collections.abc import Callable
from typing import Any

from feedline.watching.probe import events, loop_hooks, worker_hooks
from feedline.watching.probe.pace import Pace
from feedline.watching.probe.recorder import Recorder, clock, cpu_clock
from feedline.watching.variables import APPLY, EXTENSION

# A sample that takes so much longer than others is kept as an event of its own.
_SLOW_TIMES = 5
_SLOW_NS = 1_000_000
_ALL_GENERATIONS = 2
_EVENTS_PER_FETCH = 3  # with collation and all
_EVENTS_PER_GATHER = 2
_FEW_POOLS = 4  # of threads: made once and kept, they are no nested pool

# What is extended by a verb, and by settings to be applied: modules with a loader, or an iterator of one.
_EXTENDED = (
    "torch.utils.data.dataloader",
    "feedline.loader.loader",
    "feedline.drop_in.data_loader",
    "feedline.drop_in.native",
)

_recorder: Recorder | None = None
_patched: set[str] = set()


def start(session: str, begin_ns: int = 0, begin_cpu_ns: int = 0) -> None:
    """`begin_ns`, `begin_cpu_ns`: when loading this probe began, by ``clock`` and ``cpu_clock``."""
    global _recorder
    _recorder = Recorder(session)
    if EXTENSION in os.environ:
        importlib.import_module(os.environ[EXTENSION])  # a part of what loading the probe takes
    if begin_ns:
        _recorder.load = (cpu_clock() - begin_cpu_ns, clock() - begin_ns)
    _recorder.opened.listen()


def patch(module_name: str) -> None:
    """Puts the hooks into a module that has been executed. Unknown names are of no interest."""
    module = sys.modules.get(module_name)
    if module is None or _recorder is None or module_name in _patched:
        return
    patches: dict[str, Callable[[Any, Recorder], None]] = {
        "torch.utils.data.dataloader": loop_hooks.patch_torch_loader,
        "feedline.loader.loader": loop_hooks.patch_own_loader,
        "feedline.drop_in.data_loader": loop_hooks.patch_drop_in,
        "feedline.drop_in.native": loop_hooks.patch_native_iterator,
        "torch.utils.data._utils.fetch": _patch_torch_fetch,
        "torch.utils.data._utils.worker": worker_hooks.patch_torch_worker,
        "torch.utils.data._utils.pin_memory": loop_hooks.patch_pin_memory,
        "feedline.drop_in.fetch": _patch_drop_in_fetch,
        "feedline.drop_in.native_arrays": _patch_gather,
        "feedline.drop_in.native_prefix": _patch_native_prefix,
        "torchvision.transforms.transforms": _patch_compose,
        "torchvision.transforms.v2._container": _patch_compose_v2,
        "PIL.Image": _patch_pillow_open,
        "PIL.ImageFile": _patch_pillow("ImageFile"),
        # these decode before they call the one above
        "PIL.TiffImagePlugin": _patch_pillow("TiffImageFile"),
        "PIL.WebPImagePlugin": _patch_pillow("WebPImageFile"),
        "cv2": _patch_opencv,
        "torchvision.io.image": _patch_torchvision_io,
        "multiprocessing.pool": lambda module, recorder: _patch_pool(module.Pool, recorder),
        "concurrent.futures.thread": lambda module, recorder: _patch_pool(
            module.ThreadPoolExecutor, recorder, _FEW_POOLS
        ),
        "concurrent.futures.process": lambda module, recorder: _patch_pool(module.ProcessPoolExecutor, recorder),
    }
    if module_name not in patches:
        return
    _patched.add(module_name)
    try:
        patches[module_name](module, _recorder)
        if module_name == "torch.utils.data.dataloader":
            worker_hooks.patch_pickling(_recorder)
        if module_name in _EXTENDED:
            _extend(module, _recorder)
    except Exception as error:  # a version of the module that nobody here has seen
        _recorder.note(f"{module_name} is not watched: {error!r}")


def _extend(module: Any, recorder: Recorder) -> None:
    """Outside of the hooks above, so that these see the loader as it then is."""
    if APPLY in os.environ and hasattr(module, "DataLoader"):
        from feedline.watching import apply

        apply.install(module)
    extension = os.environ.get(EXTENSION)
    if extension:
        importlib.import_module(extension).install(module, recorder)


# -- batches and samples


class _TimedSamples:
    """A map-style data set whose samples are timed. It lives for one fetch."""

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
        """Called by the interpreter's collector of garbage: a full collection goes through all objects, 100 ms with
        torch imported, and is no fault of the sample that it falls into.
        """
        if info["generation"] == _ALL_GENERATIONS:
            if phase == "start":
                self._collecting_since = clock()
            elif self._collecting_since:
                self._collected_ns += clock() - self._collecting_since
                self._collecting_since = 0


class _TimedStream:
    """An iterator over samples, likewise."""

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
    """Pickles as what it hides, should anybody pickle a fetcher."""

    def __init__(self, collate: Any, recorder: Recorder) -> None:
        self._collate, self._recorder = collate, recorder

    def __reduce__(self) -> Any:
        return (_itself, (self._collate,))

    def __call__(self, samples: Any) -> Any:
        begin, cpu = clock(), cpu_clock()
        try:
            return self._collate(samples)
        finally:
            ended = cpu_clock()
            count = len(samples) if isinstance(samples, list) else 1
            self._recorder.record(events.COLLATE, begin, ended - cpu, count, 0, False)
            self._recorder.inside(ended)


def _itself(value: Any) -> Any:
    return value


def _around_fetch(
    original: Callable[..., Any], recorder: Recorder, stream: str | None, collates: bool = False
) -> Callable[..., Any]:
    """`stream`: the attribute that holds an iterable data set's iterator; None: a map-style data set.

    `collates`: by its `collate_fn`.
    """

    @functools.wraps(original)
    def fetch(self: Any, index: Any) -> Any:
        local = recorder.local
        if local.unseen > 0:
            if local.by_task:
                return original(self, index)
            try:
                return original(self, index)
            finally:
                local.unseen -= 1
        entered = cpu_clock()
        count = len(index) if isinstance(index, (list, tuple)) else 1
        if not recorder.in_worker and not local.in_next:
            _announce_worker(recorder)
        # a sample has its own event, its decoding, its Compose and single transforms
        detail = recorder.may_detail(count * getattr(local, "events_per_sample", 8))
        attribute = stream or "dataset"
        hidden = getattr(self, attribute, None)
        timed = _TimedSamples(hidden, recorder)
        if detail:
            setattr(self, attribute, _TimedStream(hidden, timed) if stream else timed)
            local.detail, local.details = True, 0
            gc.callbacks.append(timed.collecting)
        collate = self.collate_fn if collates else None
        if collates:
            self.collate_fn = _TimedCollate(collate, recorder)
        before = recorder.taken()
        recorder.waits.begin()
        begin, cpu = clock(), cpu_clock()
        try:
            return original(self, index)
        finally:
            ended, cpu_ended = clock(), cpu_clock()
            recorder.waits.end()
            if collates:
                self.collate_fn = collate
            used = cpu_ended - cpu
            late = recorder.was_late(ended - begin, timed.longest > 0)
            kept = late and not recorder.in_worker  # a worker's task tells itself
            recorder.record(events.FETCH, begin, used, count, timed.longest, kept)
            if not local.by_task:
                local.unseen = recorder.unseen_after(ended - begin, _EVENTS_PER_FETCH, _pace_of(local, "fetch_pace"))
            recorder.opened.tell()
            local.longest = timed.longest
            if recorder.in_worker and not local.by_task:  # a worker whose tasks are not seen
                recorder.record(events.WORK, begin, used, events.NO_TASK, timed.longest)
            if detail:
                with contextlib.suppress(ValueError):  # the script may have emptied the list
                    gc.callbacks.remove(timed.collecting)
                setattr(self, attribute, hidden)
                recorder.record(events.DETAILED_FETCH, begin, used, count, timed.longest, False)
                local.detail = False
                if timed.count:
                    local.events_per_sample = 1 + local.details // timed.count
                recorder.detailed(detail, local.details + timed.count, local.hooks_ns)
                recorder.paid(recorder.taken())
            inside = before + recorder.taken()
            recorder.paid(cpu - entered + cpu_clock() - cpu_ended, _EVENTS_PER_FETCH, inside)

    return fetch


def _pace_of(local: Any, name: str) -> Pace:
    """Of this thread."""
    pace: Pace | None = getattr(local, name, None)
    if pace is None:
        pace = Pace()
        setattr(local, name, pace)
    return pace


def _announce_worker(recorder: Recorder) -> None:
    """A process that fetches, and not inside next(), is a worker, though not one of torch's."""
    import multiprocessing

    if multiprocessing.parent_process() is not None:
        recorder.in_worker = True
        recorder.record(events.READY, clock(), 0, worker_hooks.loop_process(), 0)


def _patch_torch_fetch(module: Any, recorder: Recorder) -> None:
    for kind, stream in ((module._MapDatasetFetcher, None), (module._IterableDatasetFetcher, "dataset_iter")):
        kind.fetch = _around_fetch(kind.fetch, recorder, stream, collates=True)


def _patch_drop_in_fetch(module: Any, recorder: Recorder) -> None:
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


def _patch_gather(module: Any, recorder: Recorder) -> None:
    """Rows of arrays are put together without samples: what runs is collation, what waits is reading."""
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


# -- inside a sample


def _timed_only_in_detail(original: Callable[..., Any], recorder: Recorder, kind: int) -> Callable[..., Any]:
    @functools.wraps(original)
    def timed(*arguments: Any, **options: Any) -> Any:
        local = recorder.local
        if not getattr(local, "detail", False) or getattr(local, "decoding", False):
            return original(*arguments, **options)
        begin, cpu = clock(), cpu_clock()
        local.decoding = True
        try:
            return original(*arguments, **options)
        finally:
            local.decoding = False
            ended = cpu_clock()
            used = ended - cpu
            recorder.record(kind, begin, used, 0, 0, False)
            local.details += 1
            local.decoded_wall = getattr(local, "decoded_wall", 0) + clock() - begin
            local.decoded_cpu = getattr(local, "decoded_cpu", 0) + used
            recorder.inside(ended)

    return timed


def _patch_pillow(name: str) -> Callable[[Any, Recorder], None]:
    def patch_load(module: Any, recorder: Recorder) -> None:
        images = getattr(module, name)
        if "load" in vars(images):
            images.load = _timed_only_in_detail(images.load, recorder, events.DECODE)

    return patch_load


def _patch_pillow_open(module: Any, recorder: Recorder) -> None:
    """It reads the header, which of a small image is a fifth of the decoding."""
    module.open = _timed_only_in_detail(module.open, recorder, events.DECODE)


def _patch_native_prefix(module: Any, recorder: Recorder) -> None:
    """In workers, Feedline's engine reads and decodes, and applies the first transforms on the way."""
    for name in ("read", "read_encoded"):
        setattr(module.Reader, name, _timed_only_in_detail(getattr(module.Reader, name), recorder, events.DECODE))


def _patch_opencv(module: Any, recorder: Recorder) -> None:
    for name in ("imread", "imdecode"):
        if hasattr(module, name):
            setattr(module, name, _timed_only_in_detail(getattr(module, name), recorder, events.DECODE))


def _patch_torchvision_io(module: Any, recorder: Recorder) -> None:
    for name in ("decode_image", "decode_jpeg", "decode_png", "read_image"):
        if hasattr(module, name):
            setattr(module, name, _timed_only_in_detail(getattr(module, name), recorder, events.DECODE))


def _around_compose(original: Callable[..., Any], recorder: Recorder, step: Any) -> Callable[..., Any]:
    """`step(compose, inputs)` runs the transforms one by one, calling what it is given around each."""

    @functools.wraps(original)
    def compose(self: Any, *inputs: Any) -> Any:
        local = recorder.local
        if not getattr(local, "detail", False) or getattr(local, "composing", False):
            return original(self, *inputs)
        local.composing = True
        wall_before = getattr(local, "decoded_wall", 0)
        cpu_before = getattr(local, "decoded_cpu", 0)
        begin, cpu = clock(), cpu_clock()
        try:
            return step(self, inputs, functools.partial(_one_transform, recorder))
        finally:
            local.composing = False
            # an image that is decoded at its first use is decoded in here
            decoded = getattr(local, "decoded_wall", 0) - wall_before
            ended = cpu_clock()
            used = ended - cpu - (getattr(local, "decoded_cpu", 0) - cpu_before)
            recorder.record(events.TRANSFORM, begin + decoded, max(used, 0), 0, 0, False)
            local.details += 1
            recorder.inside(ended)

    return compose


def _one_transform(recorder: Recorder, transform: Any, *inputs: Any) -> Any:
    kind = recorder.kind_of_transform(getattr(transform, "__name__", type(transform).__name__))
    begin, cpu = clock(), cpu_clock()
    try:
        return transform(*inputs)
    finally:
        if kind is not None:
            ended = cpu_clock()
            recorder.record(kind, begin, ended - cpu, 0, 0, False)
            recorder.local.details += 1
            recorder.inside(ended)


def _patch_compose(module: Any, recorder: Recorder) -> None:
    def step(compose: Any, inputs: tuple[Any, ...], one: Any) -> Any:
        (image,) = inputs
        for transform in compose.transforms:
            image = one(transform, image)
        return image

    module.Compose.__call__ = _around_compose(module.Compose.__call__, recorder, step)


def _patch_compose_v2(module: Any, recorder: Recorder) -> None:
    def step(compose: Any, inputs: tuple[Any, ...], one: Any) -> Any:
        several = len(inputs) > 1
        outputs: Any = inputs if several else inputs[0]
        for transform in compose.transforms:
            outputs = one(transform, *outputs) if several else one(transform, outputs)
        return outputs

    module.Compose.forward = _around_compose(module.Compose.forward, recorder, step)


# -- pools inside workers


def _patch_pool(kind: Any, recorder: Recorder, free: int = 0) -> None:
    """`free`: so many of a process are nothing to speak of."""
    original = kind.__init__
    made: dict[int, int] = {}

    @functools.wraps(original)
    def __init__(self: Any, *arguments: Any, **options: Any) -> None:
        begin, cpu_begin = clock(), cpu_clock()
        try:
            original(self, *arguments, **options)
        finally:
            cpu = cpu_clock()
            process = os.getpid()
            made[process] = made.get(process, 0) + 1
            if recorder.in_worker and made[process] > free:
                size = arguments[0] if arguments and isinstance(arguments[0], int) else 0
                recorder.record(events.NESTED_POOL, begin, cpu - cpu_begin, max(size, 0))
                recorder.paid(cpu_clock() - cpu)

    kind.__init__ = __init__
