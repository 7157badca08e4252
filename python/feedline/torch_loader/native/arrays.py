# SPDX-License-Identifier: Apache-2.0
"""Batches of rows of arrays in memory or in mapped files: one gather per array, without intermediate samples."""

from __future__ import annotations

import os
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import torch

from ... import _engine
from ..iteration.orders import tensor_iterator
from .native_iterator import Late, NativeIterator
from .plans import ArrayPlan

# torch copies with several threads from about this size on
_LONG_FOR_ONE_THREAD = 1 << 20
_SHORT_ROW = 32  # bytes; torch's own loop over shorter ones is as fast
_SHORT_WITH_THE_GIL = 1 << 16  # about 5 microseconds
_thread_count = threading.Lock()  # held while torch's thread count for new threads is not the user's


class Table:
    """Arrays with the same number of rows.

    Attributes:
        name: for display.
        columns: shape of a row and dtype, for each array.
        as_list: whether samples are tuples of rows, so that a batch is a list.
        names: keys of samples and batches if they are dicts; otherwise empty.
        mapped: whether reading a row may wait for a disk.
    """

    name: str
    columns: list[tuple[torch.Size, torch.dtype]]
    as_list: bool
    mapped: bool
    names: tuple[str, ...] = ()

    def gather(self, rows: torch.Tensor) -> list[torch.Tensor]:
        """Copies the given rows (int64, shape (n,)) of every array to new tensors of shape (n, ...).

        Raises:
            IndexError: a row is out of range or negative.
        """
        raise NotImplementedError

    def batch(self, columns: list[torch.Tensor]) -> Any:
        """Returns the batch that default_collate creates from samples with these values."""
        if self.names:
            return dict(zip(self.names, columns, strict=True))
        return columns if self.as_list else columns[0]

    def row_bytes(self) -> int:
        return sum(shape.numel() * dtype.itemsize for shape, dtype in self.columns)


def row_numbers(index: Any) -> torch.Tensor:
    """Returns `index` as one tensor.

    Raises:
        IndexError: an element is not a row number.
    """
    if {*map(type, index)} != {int}:
        for one in index:  # torch.tensor() would accept booleans, and arrays of one element
            if isinstance(one, (bool, np.bool_)) or getattr(one, "ndim", 0) > 0:
                raise IndexError("not a row number")
    rows = torch.tensor(index)
    if rows.dtype is not torch.int64 or rows.ndim != 1:
        raise IndexError("not row numbers")
    return rows


class _Array:
    """An array of a table."""

    def __init__(self, array: torch.Tensor, mapped: bool) -> None:
        self._array, self._mapped = array, mapped
        self._held, *self._row = array.shape
        self._shape, self._dtype = array.shape, array.dtype
        row_bytes = array.nbytes // self._held if self._held and array.is_contiguous() else 0
        self._row_bytes = row_bytes if row_bytes >= _SHORT_ROW else 0

    def gather(self, rows: torch.Tensor) -> torch.Tensor:
        """Returns `array.index_select(0, rows)`. For small batches, the engine's gather takes half as long as
        `index_select`, because torch's loop waits for each row.
        """
        array, count = self._array, rows.numel()
        size = self._row_bytes * count
        if not 0 < size <= _LONG_FOR_ONE_THREAD or rows.dtype is not torch.int64 or not rows.is_contiguous():
            return array.index_select(0, rows)
        # it was resized or assigned other data
        if array.shape != self._shape or array.dtype is not self._dtype or not array.is_contiguous():
            return array.index_select(0, rows)
        out = array.new_empty((count, *self._row))
        # other Python threads may run while this waits for a disk or copies for long
        release_gil = self._mapped or size > _SHORT_WITH_THE_GIL
        if release_gil:
            array = array.detach()  # another thread may assign other data to the tensor
        if not _engine.gather_rows(
            array.data_ptr(), self._held, self._row_bytes, rows.data_ptr(), count, out.data_ptr(), release_gil
        ):
            raise IndexError("a row is out of range, or negative")
        return out


class ArrayTable(Table):
    def __init__(self, name: str, arrays: list[torch.Tensor], as_list: bool, mapped: bool) -> None:
        self.name, self.as_list, self.mapped = name, as_list, mapped
        self.columns = [(array.shape[1:], array.dtype) for array in arrays]
        self._arrays = [_Array(array, mapped) for array in arrays]

    def gather(self, rows: torch.Tensor) -> list[torch.Tensor]:
        return [array.gather(rows) for array in self._arrays]


class SubsetTable(Table):
    """A Subset. The subset's indices are read again for each batch, because they may change."""

    def __init__(self, inner: Table, subset: Any) -> None:
        self.name, self.as_list, self.mapped = f"Subset of {inner.name}", inner.as_list, inner.mapped
        self.columns, self.names = inner.columns, inner.names
        self._inner, self._subset = inner, subset

    def gather(self, rows: torch.Tensor) -> list[torch.Tensor]:
        indices = self._subset.indices
        if isinstance(indices, (torch.Tensor, np.ndarray)):
            picked = torch.as_tensor(indices)[rows]
        else:
            picked = row_numbers([indices[row] for row in rows.tolist()])
        return self._inner.gather(picked)


class ConcatTable(Table):
    """A ConcatDataset."""

    def __init__(self, parts: list[Table], joined: Any) -> None:
        self.name = f"ConcatDataset of {len(parts)}"
        self.as_list, self.mapped = parts[0].as_list, any(part.mapped for part in parts)
        self.columns, self.names = parts[0].columns, parts[0].names
        self._parts = parts
        self._ends = torch.tensor(joined.cumulative_sizes)

    def gather(self, rows: torch.Tensor) -> list[torch.Tensor]:
        if len(rows) and int(rows.min()) < 0:
            raise IndexError("negative rows count from the end of all arrays")
        owner = torch.searchsorted(self._ends, rows, right=True)
        out = [torch.empty((len(rows), *shape), dtype=dtype) for shape, dtype in self.columns]
        for part in owner.unique().tolist():
            if part == len(self._parts):
                raise IndexError("a row is out of range")
            here = (owner == part).nonzero()[:, 0]
            start = int(self._ends[part - 1]) if part else 0
            for column, values in zip(out, self._parts[part].gather(rows[here] - start), strict=True):
                column.index_copy_(0, here, values)
        return out


def _gathering_threads(count: int) -> ThreadPoolExecutor:
    """Creates ``count`` threads that compute without torch's helper threads.

    torch initialises the thread count of a new thread with the value that any thread set most recently. Therefore,
    after all threads have set their count to 1 and before other code continues, another thread restores the usual
    count.
    """
    threads = ThreadPoolExecutor(count, "feedline-gather")
    all_started = threading.Barrier(count)

    def compute_alone() -> None:
        torch.set_num_threads(1)
        all_started.wait()

    with _thread_count:
        usual = torch.get_num_threads()
        try:
            for started in [threads.submit(compute_alone) for _ in range(count)]:
                started.result()
        except BaseException:
            all_started.abort()
            threads.shutdown(wait=False)
            raise
        finally:
            other = threading.Thread(target=torch.set_num_threads, args=(usual,))
            other.start()
            other.join()
    return threads


class ArrayIterator(NativeIterator):
    _draw_order = staticmethod(tensor_iterator)

    def __init__(self, loader: Any, plan: ArrayPlan) -> None:
        self._table = plan.table
        self._threads = _gathering_threads(plan.threads) if plan.threads else None
        self._is_alone = self._threads is None
        self._pid = os.getpid()
        super().__init__(loader)

    def _begin(self, index: Any, batch: int) -> Future[list[torch.Tensor]] | None:
        return self._threads.submit(self._gather, index) if self._threads is not None else None

    def _finish(self, index: Any, begun: Future[list[torch.Tensor]] | None) -> Any:
        try:
            columns = self._gather(index) if begun is None else begun.result(self._timeout or None)
        except (TimeoutError, KeyboardInterrupt) as error:
            raise Late(error) from None
        except Exception:  # the dataset raises the error that torch would
            return self._in_python(index.tolist() if isinstance(index, torch.Tensor) else index)
        if begun is not None and len(columns[0]) > len(index):
            columns = [column[: len(index)] for column in columns]
        return self._table.batch(columns)

    def _gather(self, index: Any) -> list[torch.Tensor]:
        if isinstance(index, torch.Tensor):
            return self._table.gather(index)
        return self._table.gather(row_numbers(index))

    def _abandon(self) -> None:
        for _, begun in self._begun:
            if begun is not None:
                begun.cancel()
        super()._abandon()

    def __del__(self) -> None:
        try:
            # in a child after fork() there are no threads, and locks of their pool may be held
            if self._threads is not None and self._pid == os.getpid():
                self._threads.shutdown(wait=False, cancel_futures=True)
        except AttributeError:  # the constructor failed, or the interpreter exits and modules are gone
            pass
