# SPDX-License-Identifier: Apache-2.0
"""What is told of a script: its loaders, its loops over them, and what its workers would run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any


class Unknown(Enum):
    """Of what cannot be told without running the script."""

    UNKNOWN = "unknown"


UNKNOWN = Unknown.UNKNOWN
DEFAULTS: Mapping[str, Any] = {
    "batch_size": 1,
    "shuffle": None,
    "sampler": None,
    "batch_sampler": None,
    "num_workers": 0,
    "collate_fn": None,
    "pin_memory": False,
    "drop_last": False,
    "timeout": 0,
    "worker_init_fn": None,
    "multiprocessing_context": None,
    "prefetch_factor": None,
    "persistent_workers": False,
}


@dataclass(frozen=True)
class LoaderCall:
    """A call of DataLoader. `arguments`: those that are given; UNKNOWN where the value cannot be told."""

    line: int
    arguments: Mapping[str, Any]
    is_open: bool = False  # there are more arguments than can be seen, as of ``**options``
    is_feedline: bool = False

    def get(self, name: str) -> Any:
        """The value, torch's default where it is not given, or UNKNOWN."""
        if name in self.arguments:
            return self.arguments[name]
        return UNKNOWN if self.is_open else DEFAULTS[name]

    @property
    def workers(self) -> int | None:
        """None: not known."""
        value = self.get("num_workers")
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    @property
    def prefetch(self) -> int | None:
        value = self.get("prefetch_factor")
        return 2 if value is None else value if isinstance(value, int) else None


@dataclass(frozen=True)
class Copy:
    """A batch, or a part of it, goes to a device. `non_blocking` None: cannot be told."""

    line: int
    non_blocking: bool | None
    pinned_by_hand: bool = False


@dataclass(frozen=True)
class Loop:
    """Over a loader. `epochs`: how often it is run, where a loop around it tells."""

    line: int
    loaders: tuple[LoaderCall, ...]
    copies: tuple[Copy, ...]
    epochs: int | None


@dataclass(frozen=True)
class Place:
    """Where a thing stands, and what it is called there. `file`: "" for the script, else one beside it."""

    line: int
    what: str
    file: str = ""

    @property
    def at(self) -> str:
        """``line 8``, or ``data.py, line 8``."""
        return f"{self.file}, line {self.line}" if self.file else f"line {self.line}"

    @property
    def about(self) -> dict[str, Any]:
        """As findings have it."""
        return {"line": self.line, "file": self.file} if self.file else {"line": self.line}


@dataclass(frozen=True)
class Script:
    """Lines count from 1. Places are in the order of their lines."""

    path: str
    loaders: tuple[LoaderCall, ...] = ()
    loops: tuple[Loop, ...] = ()
    has_guard: bool = False
    unguarded: int | None = None  # the line at which an import would begin to load
    start_method: str | None = None  # that the script asks for
    pools: tuple[Place, ...] = ()  # in what workers run
    cuda_in_workers: tuple[Place, ...] = ()
    network_in_workers: tuple[Place, ...] = ()
    held: tuple[Place, ...] = ()  # connections, locks and open files that a dataset keeps
    unpicklable: tuple[Place, ...] = ()  # lambdas and local functions that would go to workers
    iterators_in_loops: tuple[Place, ...] = ()  # next(iter(loader)), again and again
    old_amp: tuple[Place, ...] = ()
    distributed: Place | None = None
    shards_itself: bool = False  # among ranks
    sampler_line: int | None = None  # a DistributedSampler that shuffles, and no set_epoch
    sample_bytes: int | None = None  # by the sizes that its transforms name
    problem: str = ""  # why it could not be read
    notes: tuple[str, ...] = ()

    @property
    def most_workers(self) -> int | None:
        """Of any loader; None: there is none, or not one is known."""
        return max((call.workers for call in self.loaders if call.workers is not None), default=None)

    @property
    def may_have_workers(self) -> bool:
        return any(call.workers != 0 for call in self.loaders)
