# SPDX-License-Identifier: Apache-2.0
"""Facts about a script: its loaders, its loops over them, and the code its workers would run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any


class Unknown(Enum):
    """The type of UNKNOWN, a value that is known only when the script runs."""

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
    """A call to DataLoader. `arguments` contains the arguments that are passed; values that are not known are
    UNKNOWN.
    """

    line: int
    arguments: Mapping[str, Any]
    is_open: bool = False  # there are further, unknown arguments, as from ``**options``
    is_feedline: bool = False

    def get(self, name: str) -> Any:
        """Returns the value of an argument, torch's default if it is not passed, or UNKNOWN."""
        if name in self.arguments:
            return self.arguments[name]
        return UNKNOWN if self.is_open else DEFAULTS[name]

    @property
    def workers(self) -> int | None:
        """Returns the number of workers, or None if unknown."""
        value = self.get("num_workers")
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    @property
    def prefetch(self) -> int | None:
        value = self.get("prefetch_factor")
        return 2 if value is None else value if isinstance(value, int) else None


@dataclass(frozen=True)
class Copy:
    """A copy of a batch, or part of it, to a device. `non_blocking` is None if unknown."""

    line: int
    non_blocking: bool | None
    pinned_by_hand: bool = False


@dataclass(frozen=True)
class Loop:
    """A loop over a loader.

    Attributes:
        copies: copies of its batches to a device.
        epochs: the number of times that the loop runs, if an enclosing loop determines it; otherwise None.
        uses_batch: whether the loop reads the batch.
        timed: line of a clock that is read only after the loop used the batch, so that it times the step as well.
    """

    line: int
    loaders: tuple[LoaderCall, ...]
    copies: tuple[Copy, ...]
    epochs: int | None
    uses_batch: bool = True
    timed: int | None = None


@dataclass(frozen=True)
class CodeLocation:
    """A location in the code and the name used there. `file` is "" for the script, or else a file next to the
    script.
    """

    line: int
    what: str
    file: str = ""

    @property
    def at(self) -> str:
        """Returns ``line 8``, or ``data.py, line 8``."""
        return f"{self.file}, line {self.line}" if self.file else f"line {self.line}"

    @property
    def about(self) -> dict[str, Any]:
        """Returns the location in the form that findings store."""
        return {"line": self.line, "file": self.file} if self.file else {"line": self.line}


@dataclass(frozen=True)
class Script:
    """Facts about a script. Line numbers start at 1, and places are in line order."""

    path: str
    loaders: tuple[LoaderCall, ...] = ()
    loops: tuple[Loop, ...] = ()
    has_guard: bool = False
    unguarded: int | None = None  # the line at which an import would start loading
    start_method: str | None = None  # requested by the script
    pools: tuple[CodeLocation, ...] = ()  # in code that workers run
    cuda_in_workers: tuple[CodeLocation, ...] = ()
    network_in_workers: tuple[CodeLocation, ...] = ()
    video_in_workers: tuple[CodeLocation, ...] = ()
    held: tuple[CodeLocation, ...] = ()  # connections, locks and open files that a dataset stores
    growing: tuple[CodeLocation, ...] = ()  # dataset caches without a size limit
    unpicklable: tuple[CodeLocation, ...] = ()  # lambdas and local functions that would be sent to workers
    iterators_in_loops: tuple[CodeLocation, ...] = ()  # next(iter(loader)) in a loop
    old_amp: tuple[CodeLocation, ...] = ()
    renamed: tuple[CodeLocation, ...] = ()  # tf.data options that were renamed
    distributed: CodeLocation | None = None
    shards_itself: bool = False  # across ranks
    sampler_line: int | None = None  # a shuffling DistributedSampler without set_epoch
    sample_bytes: int | None = None  # from the sizes in its transforms
    problem: str = ""  # reason why it could not be read
    notes: tuple[str, ...] = ()

    @property
    def most_workers(self) -> int | None:
        """Returns the largest known number of workers for any loader, or None if no number is known."""
        return max((call.workers for call in self.loaders if call.workers is not None), default=None)

    @property
    def may_have_workers(self) -> bool:
        return any(call.workers != 0 for call in self.loaders)
