# SPDX-License-Identifier: Apache-2.0
"""Loaders of packed sequences with images."""

from __future__ import annotations

import concurrent.futures
import itertools
import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..errors import Error
from . import batches
from .array_pool import ArrayPool
from .loader import Output
from .packed_loader import B, PackedLoader

_AHEAD = 2  # batches whose images are read before the batch is requested
_IGNORED = -100
_log = logging.getLogger("feedline")


class BatchImages(Protocol):
    """The images of documents, in the form of a model."""

    names: tuple[str, ...]  # of the arrays: the values, and the integers of each image

    def count(self) -> int:
        """Returns the number of images."""

    def truncated(self) -> tuple[int, int]:
        """Returns the number of documents that were truncated to the length of a row, and of tokens cut off."""

    def left_out(self) -> int:
        """Returns the number of samples that were left out, and therefore have no tokens."""

    def allocate(
        self, documents: Sequence[int], empty: Callable[[tuple[int, ...]], Any]
    ) -> tuple[list[Any], list[Any]]:
        """Returns the arrays of a batch, and for each document the part of the values that its images fill, or None.
        ``empty`` returns a float32 array of a shape for the values.
        """

    def read(self, document: int, out: Any) -> None:
        """Writes the values of a document's images. Any thread may call it. Raises DataError, StorageError."""

    def positions(self, batch: Any) -> Any:
        """Returns the position ids of a batch in the form of the model, or None if they are the usual ones."""


class Delivered(NamedTuple):
    """What the engine reports after a batch."""

    state: dict[str, Any]
    epoch: int
    samples: list[int]
    rows: tuple[int, ...]


@dataclass
class _Pending:
    """A batch whose images are being read, or an error instead of it."""

    after: Delivered
    batch: Any = None
    values: Any = None
    documents: Sequence[int] = ()
    tasks: Sequence[concurrent.futures.Future[None] | None] = ()
    error: Exception | None = None

    @property
    def bytes(self) -> int:
        """The bytes of the values."""
        return sum(one.nbytes for one in self.values or () if one is not None)


class ImagePackedLoader(PackedLoader[B]):
    """Batches of packed sequences with images. Created by :meth:`PackedSequences.loader`.

    Batches have more fields than those of :class:`PackedLoader`: ``pixel_values``, float32, the inputs of the vision
    encoder of all images in the order of their tokens, concatenated along the first dimension; and, if the model needs
    it, ``image_grid_thw``, int64 (images, 3), or ``image_sizes``, int64 (images, 2), height and width in pixels.

    Threads read and decode the images of the next two batches, unless they exceed the loader's ``memory_budget``.
    """

    def __init__(
        self,
        *args: Any,
        images: BatchImages,
        skips: bool,
        threads: int,
        budget: int | None,
        device: int | None,
        **named: Any,
    ) -> None:
        """Parameters are those of :class:`PackedLoader`; ``skips``: whether the labels of documents with bad images are
        ignored, instead of raising an error; ``budget``: the most bytes of values in memory, beyond one batch.
        """
        super().__init__(*args, **named)
        self._images, self._skips, self._device = images, skips, device
        self._threads, self._budget = threads, budget
        self._batch_type = batches.tuple_type(
            (*batches.attribute_names(self._engine.field_names), "max_seqlen", *images.names)
        )
        self._pool: concurrent.futures.ThreadPoolExecutor | None = None
        self._memory = ArrayPool()
        self._memory.begin()
        self._pending: deque[_Pending] = deque()
        self._taking = threading.Lock()
        self._run: int | None = None  # of the pending batches
        self._at_end = False
        self._delivered: Delivered | None = None  # after the last batch that was returned; None: as the engine
        self._bad = 0

    @property
    def bad_documents(self) -> int:
        """The number of documents whose images could not be read, so that their labels were ignored."""
        return self._bad

    def _next_batch(self, run: int) -> Any:
        with self._taking:
            if run != self._run:
                self._forget()
                self._run = run
            while not self._at_end and self._has_room():
                self._take(run)
            if not self._pending:
                self._forget()
                return None
            pending = self._pending.popleft()
            self._delivered = pending.after
            if pending.error is not None:
                raise pending.error
            return self._finished(pending)

    def _has_room(self) -> bool:
        if not self._pending or self._budget is None:
            return len(self._pending) <= _AHEAD
        sizes = [one.bytes for one in self._pending]
        return len(sizes) <= _AHEAD and sum(sizes) + max(sizes) <= self._budget

    def _take(self, run: int) -> None:
        """Takes a batch of the engine, and starts to read its images."""
        if self._delivered is None:
            self._delivered = self._reported()
        try:
            arrays, documents = self._next_arrays(run)
        except Error as error:
            self._pending.append(_Pending(self._reported(), error=error))
            return
        if arrays is None:
            self._at_end = True
            return
        images, parts = self._images.allocate(documents, self._memory.empty)
        if self._pool is None:
            self._pool = concurrent.futures.ThreadPoolExecutor(self._threads, "feedline-images")
        read = self._images.read
        tasks = [
            None if part is None else self._pool.submit(read, document, part)
            for document, part in zip(documents, parts, strict=True)
        ]
        if self._output is not Output.NUMPY:
            import torch

            images = [torch.from_numpy(one) for one in images]
        batch = self._batch_type(*arrays, *images)
        self._pending.append(_Pending(self._reported(), batch, parts, documents, tasks))

    def _reported(self) -> Delivered:
        engine = self._engine
        return Delivered(engine.state(), engine.epoch, list(engine.last_samples), tuple(engine.rows_per_rank))

    def _finished(self, pending: _Pending) -> Any:
        """Waits for the images of a batch."""
        error: Error | None = None
        for number, task in enumerate(pending.tasks):
            if task is None:
                continue
            try:
                task.result()
            except Error as raised:
                if self._skips:
                    self._ignore(pending, number, raised)
                error = error or raised
        if error is not None and not self._skips:
            raise error
        batch = pending.batch
        if self._device is not None:
            import torch

            device = torch.device("cuda", self._device)
            moved = {name: getattr(batch, name).to(device, non_blocking=True) for name in self._images.names}
            batch = batch._replace(**moved)
        if self._form is None:
            return batch
        images = {name: getattr(batch, name) for name in self._images.names}
        positions = self._images.positions(batch)
        made = self._form(batch)
        fields = made[0] if isinstance(made, tuple) else made
        is_transformers = "seq_idx" in fields
        if len(images[self._images.names[0]]) or not is_transformers:  # its models do not accept empty tensors
            fields.update(images)
        if positions is not None and is_transformers:
            fields["position_ids"] = positions.reshape(positions.shape[0], 1, -1)
        return made

    def _ignore(self, pending: _Pending, number: int, error: Error) -> None:
        """Sets the labels of a document to -100 and the values of its image to 0."""
        self._bad += 1
        pending.values[number][...] = 0
        numbers, labels = pending.batch.document_ids, pending.batch.labels
        for row in range(len(numbers)):
            here = int(numbers[row].max()) + 1
            if number < here:
                labels[row][numbers[row] == number] = _IGNORED
                break
            number -= here
        _log.warning("the labels of a document are ignored: %s", error)

    def _forget(self) -> None:
        for pending in self._pending:
            for task in pending.tasks:
                if task is not None:
                    task.cancel()
        self._pending.clear()
        self._at_end, self._run, self._delivered = False, None, None

    # ---- the position: that of the delivered batches ----

    def _engine_state(self) -> dict[str, Any]:
        return super()._engine_state() if self._delivered is None else self._delivered.state

    @property
    def epoch(self) -> int:
        """The current epoch, or the next one to start."""
        return self._engine.epoch if self._delivered is None else self._delivered.epoch

    @property
    def last_samples(self) -> list[int]:
        """Numbers of the rows in the last delivered batch."""
        return self._engine.last_samples if self._delivered is None else self._delivered.samples

    @property
    def rows_per_rank(self) -> tuple[int, ...]:
        """Number of rows on every rank in the last delivered batch; empty before an epoch's first batch."""
        return tuple(self._engine.rows_per_rank) if self._delivered is None else self._delivered.rows

    def set_epoch(self, epoch: int) -> None:
        super().set_epoch(epoch)
        self._forget()

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        super().load_state_dict(state_dict)
        self._forget()

    def reshard(self, rank: int, world_size: int, *, state: Mapping[str, Any] | None = None) -> None:
        super().reshard(rank, world_size, state=self.state_dict() if state is None else state)
        self._forget()

    def close(self) -> None:
        super().close()
        self._forget()
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
        self._memory = ArrayPool()  # without a user; the previous one ends with its last array


def mrope_positions(ids: Any, positions: Any, image_id: int, grids: Any, merge: int) -> Any:
    """Returns the positions of Qwen-VL's rotary embedding for packed rows, int64 (4, rows, length): the positions in
    the document, and those in time, height and width as ``get_rope_index`` in transformers' Qwen2-VL computes them.

    Args:
        ids, positions: token ids, and positions that restart in each document, int64 (rows, length).
        grids: the grid of each image in the order of the tokens, int64 (images, 3).
        merge: patches per token in height and width.
    """
    rows, length = ids.shape
    out = np.empty((4, rows, length), np.int64)
    out[0] = positions
    images = iter((grids // (1, merge, merge)).tolist())
    for row in range(rows):
        bounds = [*np.flatnonzero(positions[row] == 0).tolist(), length]
        for begin, end in itertools.pairwise(bounds):
            _fill_document(out[1:, row, begin:end], ids[row, begin:end] == image_id, images)
    return out


def _fill_document(out: Any, is_image: Any, images: Any) -> None:
    at = position = 0
    tokens = np.flatnonzero(is_image)
    while len(tokens):
        first = int(tokens[0])
        out[:, at:first] = np.arange(first - at) + position
        position += first - at
        frames, height, width = next(images)
        at = first + frames * height * width
        out[:, first:at] = np.indices((frames, height, width)).reshape(3, -1) + position
        position += max(height, width)
        tokens = tokens[frames * height * width :]
    out[:, at:] = np.arange(out.shape[1] - at) + position
