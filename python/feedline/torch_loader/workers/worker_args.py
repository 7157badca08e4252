# SPDX-License-Identifier: Apache-2.0
"""Passes the dataset and the user's functions to worker processes.

Forked processes inherit the objects. Other processes read one pickle in shared memory, which is freed at the pace of
the slowest reader. Pickling overlaps with the start of the interpreters, which takes longer.
"""

from __future__ import annotations

import contextlib
import gc
import io
import operator
import os
import pickle
import sys
import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from multiprocessing.reduction import ForkingPickler
from typing import Any, Protocol

import torch

from .channel import BlockingPort
from .list_pickling import EndOfList, LongList, has_long_list, stand_ins
from .ring import PAGE, Control, Ring, punch_hole

_READ = (
    1 << 17
)  # bytes of a pickled dataset per read: the calls are cheap, and a buffer of 1 MiB left 2 MB of fragmentation
_PROTOCOL = 5
_NEVER = (1 << 30,)  # a threshold so large that the garbage collector does not run
_USUAL = (2000, 10, 0) if sys.version_info >= (3, 14) else (700, 10, 10)


@dataclass
class WorkerArgs:
    """The user's objects, which may be large or not picklable."""

    dataset: Any
    collate_fn: Any
    init_fn: Any


class Load(Protocol):
    """A function that returns a worker's arguments, or None if the loader no longer needs the worker."""

    def __call__(self, port: BlockingPort, worker: int) -> WorkerArgs | None: ...


class PassedFd:
    """A file descriptor that is passed with a process's arguments, for any start method."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.close = weakref.finalize(self, os.close, fd)

    def __getstate__(self) -> Any:
        from multiprocessing import reduction

        return reduction.DupFd(self.fd)

    def __setstate__(self, passed: Any) -> None:
        PassedFd.__init__(self, passed.detach())


class InheritedWorkerArgs:
    """The arguments themselves, for fork, and for objects that must be pickled for each process separately."""

    def __init__(self, worker_args: WorkerArgs) -> None:
        self._worker_args = worker_args

    def __call__(self, port: BlockingPort, worker: int) -> WorkerArgs | None:
        return self._worker_args


class SharedWorkerArgs:
    """Arguments that are pickled after the workers have started; each worker waits for a message before it reads
    them.
    """

    def __init__(self, ring: Ring, workers: Iterable[int]) -> None:
        self._ring, self._workers = ring, list(workers)
        for worker in self._workers:
            ring.control(worker)[Control.LOADED] = 0
        self._memory = PassedFd(os.memfd_create("feedline-dataset", os.MFD_CLOEXEC))

    def fill(self, worker_args: WorkerArgs) -> None:
        """Pickles the arguments into the shared memory, and closes this process's file descriptor for it.

        Raises:
            Exception: a part cannot be pickled, or can be pickled only for one process.
        """
        try:
            with open(self._memory.fd, "wb", closefd=False) as file:
                _OncePickler(file, _PROTOCOL).dump(worker_args)
        finally:
            self._memory.close()

    def __call__(self, port: BlockingPort, worker: int) -> WorkerArgs | None:
        if port.receive() is None:
            return None
        mine = self._ring.control(worker)
        all_of_them = [self._ring.control(other) for other in self._workers]

        def taken(count: int) -> int:
            mine[Control.LOADED] = count
            return min(control[Control.LOADED] for control in all_of_them)

        with io.BufferedReader(_FreeingReader(self._memory.fd, taken), _READ) as file:
            worker_args = pickle.load(file)
        self._memory.close()
        return worker_args


class PickledWorkerArgs:
    """Arguments that are pickled in shared memory for processes that are already running.

    Tensors are copied. `known`: objects that those processes have, by name; only their names are pickled.
    """

    def __init__(self, worker_args: WorkerArgs, known: Mapping[str, Any]) -> None:
        """Raises:
        Exception: a part cannot be pickled.
        """
        self._memory = PassedFd(os.memfd_create("feedline-dataset", os.MFD_CLOEXEC))
        self.fd = self._memory.fd
        with open(self.fd, "wb", closefd=False) as file:
            pickler = _NamedObjectsPickler(file, known) if known else _ValuePickler(file, _PROTOCOL)
            pickler.dump(worker_args)
        self.close = self._memory.close


def read_pickled_args(fd: int, known: Mapping[str, Any]) -> WorkerArgs:
    """In another process. Closes the descriptor."""
    with os.fdopen(fd, "rb", buffering=0) as memory:
        draining = _FreeingReader(memory.fileno(), lambda count: 0)  # other processes read it as well
        with io.BufferedReader(draining, _READ) as file:
            reader = pickle.Unpickler(file)
            reader.persistent_load = known.__getitem__  # type: ignore[method-assign]
            worker_args: WorkerArgs = reader.load()
            return worker_args


class _FreeingReader(io.RawIOBase):
    """A file in memory that is freed up to the position that all readers have passed.

    `taken`: a function that sets this reader's position and returns the slowest reader's position, both in bytes.
    """

    def __init__(self, fd: int, taken: Callable[[int], int]) -> None:
        self._fd, self._taken = fd, taken
        self._at = self._given_back = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = os.preadv(self._fd, [buffer], self._at)
        self._at += count
        slowest = self._taken(self._at) // PAGE * PAGE
        if slowest > self._given_back:
            punch_hole(self._fd, self._given_back, slowest - self._given_back)
            self._given_back = slowest
        return count


class _HandleInside(Exception):
    """The object can be pickled for only one process: it contains a shared tensor, a lock or a pipe."""


class _OncePickler(ForkingPickler):
    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, (torch.Tensor, torch.UntypedStorage, torch.TypedStorage)):
            raise _HandleInside
        if isinstance(value, (LongList, EndOfList)):
            return value.reduced(self._stop_noting)
        if has_long_list(value) and type(value) not in self.dispatch_table:
            reduced = value.__reduce_ex__(_PROTOCOL)
            if len(reduced) > 2 and type(reduced[2]) is dict:
                return (*reduced[:2], stand_ins(reduced[2]), *reduced[3:])
            return reduced
        return NotImplemented

    def _stop_noting(self, stop: bool) -> None:
        self.fast = stop  # pickle's name for it


class _ValuePickler(_OncePickler):
    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, (torch.Tensor, torch.UntypedStorage, torch.TypedStorage)):
            return value.__reduce_ex__(_PROTOCOL)
        return super().reducer_override(value)


class _NamedObjectsPickler(_ValuePickler):
    def __init__(self, file: Any, known: Mapping[str, Any]) -> None:
        super().__init__(file, _PROTOCOL)
        self._names = {id(value): name for name, value in known.items()}

    def persistent_id(self, value: Any) -> str | None:
        return self._names.get(id(value))


def name_unpicklable(worker_args: WorkerArgs) -> str:
    """Returns the names of the parts that cannot be pickled, for the error message."""
    parts = {"collate_fn": worker_args.collate_fn, "worker_init_fn": worker_args.init_fn}
    with contextlib.suppress(Exception):
        parts |= {f"dataset.{name}": value for name, value in vars(worker_args.dataset).items()}
    bad = []
    for name, value in parts.items():
        try:
            _OncePickler(_Sink(), _PROTOCOL).dump(value)
        except (_HandleInside, RuntimeError):
            continue
        except Exception as error:
            bad.append(f"{name} ({type(error).__name__}: {error})")
    return "; ".join(bad)


class _Sink:
    def write(self, data: Any) -> int:
        return len(data)


class NoGcProcessName(str):
    """A process name that disables the garbage collector in a new interpreter until the dataset is loaded.

    The name is unpickled first, before the user's main module and torch are imported. The imports create a million
    permanent objects; scanning these repeatedly takes a seventh of the start time.
    """

    def __reduce__(self) -> Any:
        return operator.getitem, ((str(self), _StopCollecting()), 0)


class _StopCollecting:
    def __reduce__(self) -> Any:
        return gc.set_threshold, _NEVER


def enable_gc() -> None:
    """Called in a worker that has loaded its dataset: excludes existing objects from garbage collection.

    Scanning existing objects in a forked process would copy their pages. A threshold that the user's main module has
    set is not changed.
    """
    if gc.get_threshold()[0] == _NEVER[0]:
        gc.set_threshold(*_USUAL)
    gc.freeze()
