# SPDX-License-Identifier: Apache-2.0
"""Worker processes that several loaders share, such as those for training and validation."""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
import threading
import weakref
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ...errors import ConfigError
from .pool_process import run_pool_process
from .process_workers import close_at_exit, close_inherited, end_processes, nothing, preload_forkserver, stacks_file
from .shared_parts import Parts
from .worker_args import NoGcProcessName, PassedFd

if TYPE_CHECKING:
    from .pool_workers import PoolWorkers

_ROLES = ("dataset", "collate_fn", "worker_init_fn")


class WorkerPool:
    """Worker processes for several loaders. For example, the workers of the training loader can also serve validation.

    ::

        pool = feedline.WorkerPool()
        train = feedline.DataLoader(train_set, batch_size=64, shuffle=True, num_workers=8, pool=pool)
        val = feedline.DataLoader(val_set, batch_size=64, num_workers=8, pool=pool)

    The number of processes is the largest ``num_workers`` of any of the loaders. Worker i of each loader runs in
    process i, with its own dataset, random numbers, ``get_worker_info()`` and batch memory. A loader therefore yields
    the same batches as with its own processes and ``persistent_workers=True``, which a pool implies. A loader's
    ``worker_init_fn`` runs once in each of its workers. Process-wide state is shared: modules and their globals, the
    environment, and the current directory.

    The processes start with the first epoch of any of the loaders, and end with the last of the loaders' iterators.
    With ``fork``, the processes inherit the datasets of all loaders that exist at that time. A dataset is pickled once,
    when its first epoch begins, if it is new, has changed since the fork, or shares mutable objects with another
    loader's dataset, as two subsets of a dataset do. If the dataset cannot be pickled, the loader uses its own
    processes and logs this.
    """

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._processes: dict[int, _PooledProcess] = {}
        self._groups: weakref.WeakSet[PoolWorkers] = weakref.WeakSet()
        self._members: dict[int, weakref.ref[Any]] = {}
        self._serials = itertools.count()
        self._method = ""
        self.stacks: PassedFd | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Returns the attributes for pickle and copy, without the processes, which belong to this object."""
        return {}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self._begin()

    def __repr__(self) -> str:
        return f"<feedline.WorkerPool of {len(self._processes)} processes for {len(self._groups)} loaders>"

    def join(self, loader: Any) -> int:
        """Registers a loader and returns its number."""
        self._leave_parent()
        serial = next(self._serials)
        self._members[serial] = weakref.ref(loader, lambda _: self._members.pop(serial, None))
        return serial

    def processes(self, workers: Iterable[int], starter: int, context: Any) -> tuple[dict[int, _PooledProcess], bool]:
        """Returns the processes for these workers, which are started if necessary, and whether all of the processes are
        new.

        `starter`: number of the loader that requests the processes.

        Raises:
            ConfigError: the pool's processes were started by another start method.
        """
        self._leave_parent()
        method = context.get_start_method()
        if self._processes and method != self._method:
            raise ConfigError(
                f"WorkerPool: the pool's processes were started by {self._method!r}, but this loader's "
                f"multiprocessing_context is {method!r}"
            )
        found = {worker: self._processes.get(worker) for worker in workers}
        missing = [worker for worker, process in found.items() if process is None or not process.handle.is_alive()]
        if missing and not self._processes:
            self._method, self.stacks = method, stacks_file()
            close_at_exit(self)
            preload_forkserver(method)
        # Examined only once: it writes to every object, which unshares their pages from each process that was forked
        # before.
        copies = self._copies(starter) if missing and method == "fork" else {}
        for worker in missing:
            assert self.stacks is not None
            self._processes[worker] = _PooledProcess(context, dict(copies))
            self._processes[worker].start(self.stacks)
        return {worker: self._processes[worker] for worker in found}, len(missing) == len(found)

    def _copies(self, starter: int) -> dict[int, Copy]:
        """Returns, by loader number, the objects that a process forked now would inherit, if no other loader shares
        them.
        """
        found: dict[int, Copy] = {}
        for serial in sorted(self._members, key=lambda serial: serial != starter):
            loader = self._members[serial]()
            with contextlib.suppress(ValueError):
                copy = Copy.of(loader)
                if not any(copy.parts.shares(other.parts) for other in found.values()):
                    found[serial] = copy
        return found

    def enter(self, group: PoolWorkers) -> None:
        self._groups.add(group)

    def leave(self, group: PoolWorkers) -> None:
        self._groups.discard(group)
        if not self._groups:
            self.close()

    def others(self, group: PoolWorkers) -> Iterable[PoolWorkers]:
        return [other for other in self._groups if other is not group]

    def close(self) -> None:
        if self._pid != os.getpid():
            return
        for group in list(self._groups):
            group.stop()
        processes, self._processes = list(self._processes.values()), {}
        for process in processes:
            process.connection.close()
        end_processes([process.handle for process in processes if process.handle is not None])

    def _close_ends(self) -> None:
        for process in self._processes.values():
            process.connection.close()

    def _leave_parent(self) -> None:
        """Forgets the processes if this process was forked from the process that started them."""
        if self._pid != os.getpid():
            members, serials = self._members, self._serials
            self._begin()
            self._members, self._serials = members, serials


class Copy(NamedTuple):
    """The objects of a loader that a forked process has inherited, until a session uses them."""

    roles: dict[str, Any]
    parts: Parts

    @classmethod
    def of(cls, loader: Any) -> Copy:
        """Raises:
        ValueError: there are too many objects to examine.
        """
        roles = {role: value for role in _ROLES if (value := getattr(loader, role, None)) is not None}
        return cls(roles, Parts(roles.values()))


class _PooledProcess:
    """A process of the pool, as seen from the training process."""

    def __init__(self, context: Any, copies: dict[int, Copy]) -> None:
        self._context, self.copies = context, copies
        self.handle: Any = None
        ours, self._theirs = context.Pipe(duplex=True)
        self.connection = socket.socket(fileno=os.dup(ours.fileno()))
        ours.close()

    def start(self, stacks: PassedFd) -> None:
        is_forked = self._context.get_start_method() == "fork"
        forked_with = {
            name_in_pool_process(serial, role): value
            for serial, copy in self.copies.items()
            for role, value in copy.roles.items()
        }
        main_thread = threading.current_thread() is threading.main_thread()
        inherited = close_inherited if is_forked else nothing
        self.handle = self._context.Process(
            target=run_pool_process, args=(self._theirs, stacks, main_thread, forked_with, inherited), daemon=True
        )
        if not is_forked:
            self.handle.name = NoGcProcessName(self.handle.name)
        self.handle.start()
        self._theirs.close()


def name_in_pool_process(serial: int, role: str) -> str:
    return f"{serial}.{role}"
