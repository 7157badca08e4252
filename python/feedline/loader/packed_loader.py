# SPDX-License-Identifier: Apache-2.0
"""Loaders of packed sequences."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from .. import _engine
from ..errors import ConfigError
from ..machine.ranks import ProcessRank, Share
from . import batches
from .batches import Batch
from .loader import Loader, LoaderIterator, Output

_ENDS = "cu_seqlens"
B = TypeVar("B", covariant=True)  # a batch, in the form of the preset


class PackedLoader(Loader, Generic[B]):
    """Batches of packed sequences. Created by :meth:`PackedSequences.loader`.

    A batch is a named tuple, or has the form of the loader's ``preset``. The tuple has B rows of L tokens:

    - ``input_ids``, int64 (B, L): the tokens of several documents, then padding.
    - ``labels``, int64 (B, L): see :meth:`Dataset.pack_sequences`; -100 in the padding and outside of the loss mask.
    - ``position_ids``, int64 (B, L): from 0 in each document and its padding, and in the padding of the row.
    - ``document_ids``, int64 (B, L): the number of the document in its row, from 0; -1 in the padding.
    - ``cu_seqlens``, int32 (segments + 1): 0, and the ends of all documents in ``input_ids.view(-1)``, for attention
      with variable lengths. Documents include their padding; the padding of a row is a separate segment, after the
      row's documents.
    - ``max_seqlen``, int: tokens of the longest segment.

    The arrays are on the loader's device; ``max_seqlen`` is always a Python number. As with :class:`Loader`, the order
    is global, and a state contains the epoch and the position in the stream of packs.
    """

    def __init__(
        self,
        engine: _engine.Loader,
        output: Output,
        *,
        place: ProcessRank,
        share: Share,
        make_engine: Callable[[ProcessRank], _engine.Loader],
        remake: Callable[[int], Loader],
        epochs: float | None,
        on_gpu: bool,
        batch_size: int,
        form: Callable[[Batch], Any] | None,
    ) -> None:
        """Parameters are those of :class:`Loader`, and `form`, which converts batches."""
        super().__init__(
            engine,
            output,
            place=place,
            share=share,
            make_engine=make_engine,
            epochs=epochs,
            remake=remake,
            on_gpu=on_gpu,
            batch_size=batch_size,
            set_weights=_refuse_weights,
        )
        self._batch_type = batches.tuple_type((*batches.attribute_names(engine.field_names), "max_seqlen"))
        self._ends = engine.field_names.index(_ENDS)
        self._form = form

    if TYPE_CHECKING:

        def __iter__(self) -> LoaderIterator[B]: ...  # type: ignore[override]

    def __len__(self) -> int:
        """Returns the number of batches per ``iter()`` on this rank, for the epoch that runs or is next. It follows
        from the documents' lengths, and may differ between epochs; see :meth:`set_epoch`.

        The first call for an epoch packs all of its windows, which takes about 0.06 s for each million documents.
        Raises TypeError if the number of batches is unlimited.
        """
        if self._epochs == math.inf:
            raise TypeError("a loader with epochs=math.inf has no length")
        self._settle()
        first = self._engine.epoch
        count = sum(self._engine.batches_in(first + epoch) for epoch in range(int(self._epochs or 1)))
        if count > sys.maxsize:
            raise ConfigError(f"loader: epochs={self._epochs} results in more batches than len() can return")
        self._length_given = count
        return count

    def _settle(self, place: ProcessRank | None = None) -> None:
        self._length_given = None  # it differs between epochs, so that a change needs no warning
        super()._settle(place)

    def _next_batch(self, run: int) -> Any:
        arrays, _ = self._next_arrays(run)
        if arrays is None:
            return None
        batch = self._batch_type(*arrays)
        return batch if self._form is None else self._form(batch)

    def _next_arrays(self, run: int) -> tuple[list[Any] | None, list[int]]:
        """Returns the fields of the next batch, and the documents of all pieces in the order of the rows."""
        engine = self._engine
        try:
            packed = engine.next_packed(run, self._output is not Output.NUMPY)
        finally:
            if engine.has_errors:
                self._log_bad_samples()
            if engine.changes != self._changes.seen:
                self._changes.write(engine)
        if packed is None:
            return None, []
        arrays, segments, longest, documents = packed
        # The rows contain equal parts of one list, followed by copies of its last end.
        arrays[self._ends] = arrays[self._ends].reshape(-1)[: segments + 1]
        return [*arrays, longest], documents

    def _published(self) -> dict[str, Any]:
        # counting the batches of an epoch may take long
        return {
            "kind": "PackedLoader",
            "source": "",
            "epoch": self._engine.epoch,
            "batches_per_epoch": self._length_given,
            "counters": self._engine.stats(),
        }

    def _batch_count(self) -> str:
        return "packed"


def _refuse_weights(_engine_loader: _engine.Loader, _weights: Any) -> None:
    raise ConfigError("set_weights: packed sequences have no weights")
