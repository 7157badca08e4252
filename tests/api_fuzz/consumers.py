# SPDX-License-Identifier: Apache-2.0
"""Ways to use a native loader. Each raises Wrong if rows are lost, repeated or not those that they must be."""

from __future__ import annotations

import collections
import contextlib
import copy
import gc
import hashlib
import itertools
import os
import pickle
import random
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import feedline

from . import annotated, loaders, operations
from .sources import ROWS, STEP, Source, array, rows_of

MOST_BATCHES = 3 * ROWS + 3  # read from a loader, which may be endless
MOST_ROWS = 20 * ROWS  # likewise; more than three epochs of any source


class Wrong(Exception):
    """Rows are lost, repeated or wrong."""


@dataclass
class Setting:
    """The start of a way to consume."""

    source: Source
    dataset: feedline.Dataset
    steps: list[operations.Step]
    options: loaders.Options
    rng: random.Random
    ids: list[int]  # of the dataset's samples, in order

    def loader(self, **changed: Any) -> feedline.Loader:
        return self.dataset.loader(**{**self.options, **changed})

    def ids_of(self, loader: feedline.Loader, batch: Any) -> list[int]:
        """The samples of the rows of the last batch."""
        samples = [self.ids[one] for one in loader.last_samples]
        if loaders.mixes(self.options):
            return samples  # labels are fractions of classes
        ids = self.source.identify(batch)
        if ids != samples:
            raise Wrong(f"rows of {ids}, but last_samples is {samples}")
        if self.source.images and self.options.get("layout") != "NHWC":
            same_colour = operations.keep_colour(self.steps)
            if same_colour:
                check_colours(batch, ids)
            if self.source.boxes and ("collate", "pad") not in {(name, a.get("form")) for name, a in self.steps}:
                # rounding moves a box over the image's edge, and sanitizing removes it
                sanitizes = any(name == "sanitize_bounding_boxes" for name, _ in self.steps)
                check_annotations(batch, ids, same_colour and not sanitizes)
        return ids


def check_colours(batch: Any, ids: list[int]) -> None:
    """Each image has the grey level of its own sample."""
    for row, one in zip(rows_of(batch.image), ids, strict=True):
        pixels = array(row).astype(np.float32)
        scale = 255 if array(row).dtype.kind == "f" else 1
        found = pixels * scale
        if found.size and np.abs(found - STEP * one).max() > STEP * 0.45:
            raise Wrong(f"the image of row {one} has levels {found.min()} to {found.max()} and not {STEP * one}")


def check_annotations(batch: Any, ids: list[int], same_colour: bool) -> None:
    """Boxes, labels and masks belong to the image of their row and fit it."""
    fields = {name: getattr(batch, name) for name in batch._fields}
    columns = {name: list(map(array, one)) if isinstance(one, list) else array(one) for name, one in fields.items()}
    for row, one in enumerate(ids):
        wrong = annotated.fault({name: values[row] for name, values in columns.items()}, one, same_colour)
        if wrong:
            raise Wrong(f"row {one}: {wrong}")


def digest(batch: Any) -> str:
    found = hashlib.blake2b()
    for value in batch:
        for part in value if isinstance(value, list) else [value]:
            whole = isinstance(part, (str, dict, list, int, float, type(None)))
            found.update(repr(part).encode() if whole else part if isinstance(part, bytes) else array(part).tobytes())
            found.update(b"|")
    return found.hexdigest()


def bounded(setting: Setting, iterator: Iterable[Any]) -> Iterator[Any]:
    """Limits the batches of an endless loader."""
    return itertools.islice(iterator, MOST_BATCHES)


Delivered = list[tuple[list[int], str]]  # rows and content of each batch


def next_batch(setting: Setting, iterator: Iterator[Any]) -> Any:
    """None at the end. A batch with a damaged sample is skipped, and ends a loader that would be endless."""
    for _ in range(2 * ROWS):
        try:
            return next(iterator, None)
        except feedline.DataError:
            if not setting.source.damaged or setting.options.get("on_error", "raise") == "skip":
                raise
        except feedline.Error as error:
            if not setting.source.damaged or "an epoch had no batches" not in str(error):
                raise
            return None
    return None


def rows(setting: Setting, loader: feedline.Loader, iterator: Iterator[Any], count: int = 10**9) -> Delivered:
    found: Delivered = []
    delivered = 0
    while len(found) < min(count, MOST_BATCHES) and delivered < MOST_ROWS:
        batch = next_batch(setting, iterator)
        if batch is None:
            break
        found.append((setting.ids_of(loader, batch), digest(batch)))
        delivered += len(found[-1][0])
    return found


def flat(delivered: Delivered) -> list[int]:
    return [one for ids, _ in delivered for one in ids]


def one_epoch(setting: Setting, loader: feedline.Loader) -> Delivered:
    """From iter() to its end, checked."""
    found = rows(setting, loader, iter(loader))
    epochs = setting.options.get("epochs") or 1
    if epochs == 1:
        wrong = loaders.wrong_rows(setting.source, setting.options, setting.ids, flat(found))
        if wrong:
            raise Wrong(wrong)
    return found


def must_equal(setting: Setting, found: Delivered, wanted: Delivered, what: str) -> None:
    if setting.options.get("in_order", True):
        if found != wanted:
            differ = next((i for i, (a, b) in enumerate(zip(found, wanted, strict=False)) if a != b), len(wanted))
            raise Wrong(f"{what}: from batch {differ} on {[a for a, _ in found]} and not {[a for a, _ in wanted]}")
    elif collections.Counter(flat(found)) != collections.Counter(flat(wanted)) and not _endless(setting):
        raise Wrong(f"{what}: {sorted(flat(found))} and not {sorted(flat(wanted))}")


def _endless(setting: Setting) -> bool:
    return (setting.options.get("epochs") or 1) > 3


# ---- the ways ----


def whole(setting: Setting) -> None:
    """Two epochs, and the same with other threads and another budget."""
    with setting.loader() as loader, setting.dataset.loader(**loaders.others(setting.options, setting.rng)) as other:
        for epoch in range(2):
            must_equal(setting, one_epoch(setting, other), one_epoch(setting, loader), f"pass {epoch}, other threads")


def leave_early(setting: Setting) -> None:
    loader = setting.loader()
    for _ in range(3):
        iterator = iter(loader)
        rows(setting, loader, iterator, setting.rng.randrange(4))
        if setting.rng.random() < 0.5:
            del iterator
    one_epoch(setting, loader)


def resume(setting: Setting) -> None:
    """From any state, another loader continues with the batches of the uninterrupted run."""
    loader = setting.loader()
    iterator = iter(loader)
    taken = rows(setting, loader, iterator, setting.rng.randrange(6))
    state = pickle.loads(pickle.dumps(loader.state_dict()))
    rest = rows(setting, loader, iterator)
    for _ in range(2):
        again = setting.dataset.loader(**loaders.others(setting.options, setting.rng))
        again.load_state_dict(state)
        found = rows(setting, again, iter(again))
        if setting.options.get("in_order", True) and rest and not _endless(setting):
            epochs = int(setting.options.get("epochs") or 1)
            must_equal(
                setting, found[: len(rest)] if epochs > 1 else found, rest, f"resumed after {len(taken)} batches"
            )
        again.close()


def two_iterators(setting: Setting) -> None:
    """The second ends the first."""
    loader = setting.loader()
    first = iter(loader)
    rows(setting, loader, first, 1)
    second = iter(loader)
    with contextlib.suppress(feedline.Error, StopIteration):
        next(first)
        raise Wrong("an iterator continues after another one has begun")
    rows(setting, loader, second)
    one_epoch(setting, loader)


def two_loaders(setting: Setting) -> None:
    """In turn, over one dataset."""
    loaders_ = [setting.loader(), setting.loader()]
    iterators = [iter(loader) for loader in loaders_]
    found: list[Delivered] = [[], []]
    for _ in range(2 * ROWS):
        for k in (0, 1):
            found[k] += rows(setting, loaders_[k], iterators[k], 1)
    must_equal(setting, found[0], found[1], "two loaders in turn")


def in_threads(jobs: list[Callable[[], None]]) -> None:
    errors: list[BaseException] = []

    def guarded(job: Callable[[], None]) -> None:
        try:
            job()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def loaders_of_threads(setting: Setting) -> None:
    in_threads([lambda: (one_epoch(setting, setting.loader()), None)[1]] * 3)


def shared_iterator(setting: Setting) -> None:
    """Threads that share an iterator get each row once."""
    if setting.options.get("epochs", 1) not in (None, 1) or loaders.mixes(setting.options):
        return
    loader = setting.loader()
    iterator = iter(loader)
    found: list[int] = []

    def take() -> None:
        while (batch := next_batch(setting, iterator)) is not None:
            found.extend(setting.source.identify(batch))

    in_threads([take] * 2)
    options = {**setting.options, "in_order": False}
    wrong = loaders.wrong_rows(setting.source, options, setting.ids, found)
    if wrong:
        raise Wrong(f"two threads at one iterator: {wrong}")


def fork(setting: Setting) -> None:
    """The child can make its own loader, and gets an error from its parent's."""
    loader = setting.loader()
    iterator = iter(loader)
    taken = rows(setting, loader, iterator, setting.rng.randrange(3))
    child = os.fork()
    if child == 0:
        try:
            with contextlib.suppress(feedline.ConfigError, StopIteration):
                next(iterator)
                os._exit(3)
            if setting.rng.random() < 0.5:
                del loader, iterator
            one_epoch(setting, setting.loader())
            os._exit(0)
        except feedline.ConfigError:
            os._exit(0)
        except BaseException:
            sys.excepthook(*sys.exc_info())
            os._exit(4)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status != 0:
        raise Wrong(f"the child of fork() ends with {status}")
    found = taken + rows(setting, loader, iterator)
    with setting.loader() as other:
        wanted = rows(setting, other, iter(other))
    most = len(wanted) if _endless(setting) else MOST_BATCHES
    must_equal(setting, found[:most], wanted, "the parent after fork()")


def held_batches(setting: Setting) -> None:
    """They do not change after the loader is gone."""
    loader = setting.loader()
    held = [(batch, digest(batch)) for batch in sound_batches(setting, loader)]
    if setting.rng.random() < 0.5:
        loader.close()
    del loader
    gc.collect()
    with setting.loader(seed=99) as other:
        rows(setting, other, iter(other))
    for batch, before in held:
        if digest(batch) != before:
            raise Wrong("a batch that is held has changed")


def sound_batches(setting: Setting, loader: feedline.Loader) -> Iterator[Any]:
    iterator = bounded(setting, iter(loader))
    while (batch := next_batch(setting, iterator)) is not None:
        yield batch


def close_meanwhile(setting: Setting) -> None:
    loader = setting.loader()
    iterator = iter(loader)
    rows(setting, loader, iterator, setting.rng.randrange(3))
    closer = threading.Timer(setting.rng.choice((0, 0.001, 0.003)), loader.close)
    closer.start()
    try:
        for batch in sound_batches(setting, loader) if setting.rng.random() < 0.5 else bounded(setting, iterator):
            digest(batch)
    except feedline.Error:
        pass
    closer.join()
    with contextlib.suppress(feedline.Error, StopIteration):
        next(iterator)
        raise Wrong("a closed loader delivers")
    loader.close()
    repr(loader)


def questions(setting: Setting) -> None:
    """Everything that may be called at any time, concurrently from a thread."""
    loader = setting.loader()
    over = threading.Event()

    def ask() -> None:
        while not over.is_set():
            loader.stats(), loader.state_dict(), loader.explain(), loader.errors, loader.epoch, repr(loader)
            loader.rows_per_rank, loader._repr_html_()

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        one_epoch(setting, loader)
        loader.set_epoch(setting.rng.choice((0, 5, 2**40)))
        one_epoch(setting, loader)
    finally:
        over.set()
        asking.join()


def samples(setting: Setting) -> None:
    """Single samples and properties of the dataset."""
    dataset = setting.dataset
    repr(dataset), dataset.schema, dataset.explain(), dataset.operations, dataset.fingerprint, dataset._repr_html_()
    for index in (0, -1, len(dataset) - 1, setting.rng.randrange(len(dataset))):
        with contextlib.suppress(feedline.DataError if setting.source.damaged else feedline.ConfigError):
            dataset[index]
    for index in (len(dataset), -len(dataset) - 1, 2**70):
        try:
            dataset[index]
        except IndexError:
            continue
        raise Wrong(f"ds[{index}] raised no IndexError")
    if not setting.source.damaged:
        in_threads([lambda: iterate(dataset)] * 2)


def iterate(samples: Iterable[Any]) -> None:
    for _ in samples:
        pass


def pickled(setting: Setting) -> None:
    """A copy by pickle or deepcopy has the same samples."""
    try:
        twin = pickle.loads(pickle.dumps(setting.dataset))
        twin = copy.deepcopy(twin)
    except feedline.Error:
        return  # its message says what to do
    with setting.loader() as loader, twin.loader(**setting.options) as other:
        must_equal(setting, one_epoch(setting, other), one_epoch(setting, loader), "pickled")


WAYS: dict[str, Callable[[Setting], None]] = {
    way.__name__: way
    for way in (
        *(whole, leave_early, resume, two_iterators, two_loaders, loaders_of_threads, shared_iterator, fork),
        *(held_batches, close_meanwhile, questions, samples, pickled),
    )
}
