# SPDX-License-Identifier: Apache-2.0
"""Determines the rank and world size of this process, and when they become fixed."""

from __future__ import annotations

import os
import sys
from typing import Any

from ..errors import ConfigError
from . import launchers, parallelism
from .launchers import ProcessRank, from_environment

__all__ = ["ProcessRank", "Share", "from_environment", "from_torch", "resolve"]

_SINGLE = "no launcher and no torch.distributed group"


def resolve(rank: int | None, world_size: int | None) -> tuple[int, int]:
    """Returns the given rank and world size, or else the values from torch.distributed if initialised, from Ray Train,
    or from the launcher, or else (0, 1).

    Raises:
        ConfigError: the given values are not valid, torch.distributed and the launcher disagree, or there is
            parallelism other than data parallelism.
    """
    return Share("loader", rank, world_size).place()[:2]


def from_torch() -> ProcessRank | None:
    """Returns the rank and world size of torch.distributed; never imports torch."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return ProcessRank(int(distributed.get_rank()), int(distributed.get_world_size()), "torch.distributed")


class Share:
    """The rank and world size of this process, as given or as determined at the first use.

    Until the first epoch begins, rank and world size may change, because `init_process_group` may be called after the
    loader is created. After that they are fixed: if torch.distributed has other values when an epoch begins, an error
    is raised.
    """

    def __init__(
        self, where: str, rank: int | None = None, world_size: int | None = None, mesh: Any = None, dp: Any = None
    ) -> None:
        """`where` is the caller's name for error messages; the other parameters are arguments of `Dataset.loader`.

        Raises:
            ConfigError: arguments contradict each other or are not valid.
        """
        self._where = where
        self._given: ProcessRank | None = None
        self._group: tuple[int, int] | None = None  # the group that contains the mesh
        self._begun: ProcessRank | None = None
        if mesh is None and dp is not None:
            raise ConfigError(f"{where}: dp= names the dimensions of a mesh; also pass mesh=")
        if mesh is not None and (rank is not None or world_size is not None):
            raise ConfigError(f"{where}: pass mesh=, or rank= and world_size=, not both")
        if (rank is None) != (world_size is None):
            raise ConfigError(f"{where}: pass both rank and world_size, or neither")
        if mesh is not None:
            group = from_torch()
            self._group = None if group is None else group[:2]
            self._given = ProcessRank(*parallelism.coordinate(where, mesh, dp), "mesh=")
        elif rank is not None and world_size is not None:
            self._given = _checked(where, rank, world_size)

    def place(self) -> ProcessRank:
        """Returns the rank and world size: the current ones before the first epoch, then those of that epoch."""
        return self._given or self._begun or _found(self._where)

    def begin(self) -> ProcessRank:
        """Returns the rank and world size for a new epoch.

        Raises:
            ConfigError: torch.distributed has other values than at the first epoch.
        """
        group = from_torch()
        if self._given is not None:
            if self._group is not None and group is not None and group[:2] != self._group:
                raise self._changed(ProcessRank(*self._group, "mesh="), group)
            return self._given
        if self._begun is None:
            self._begun = _found(self._where)
            return self._begun
        if group is not None:
            if group[:2] != self._begun[:2]:
                raise self._changed(self._begun, group)
            _check_parallelism(self._where)
        return self._begun

    def _changed(self, before: ProcessRank, group: ProcessRank) -> ConfigError:
        return ConfigError(
            f"{self._where}: this loader already has rank {before.rank} of {before.world_size} (source: "
            f"{before.source}), but torch.distributed now has rank {group.rank} of {group.world_size}; create the "
            "loader after init_process_group, or pass rank= and world_size="
        )


def _found(where: str) -> ProcessRank:
    group = from_torch()
    if group is None:
        _check_parallelism(where)
        return _from_ray() or from_environment(os.environ) or ProcessRank(0, 1, _SINGLE)
    # Some variables do not describe this process: those of MPI and Slurm may count machines, and children of
    # multiprocessing inherit those of their parent.
    if "RANK" in os.environ and "WORLD_SIZE" in os.environ and not _is_child():
        launcher = launchers.from_environment(os.environ)
        if launcher is not None and launcher[:2] != group[:2]:
            raise ConfigError(
                f"{where}: torch.distributed has rank {group.rank} of {group.world_size}, but the launcher's variables "
                f"have rank {launcher.rank} of {launcher.world_size}; pass rank= and world_size="
            )
    _check_parallelism(where)
    return group


def _is_child() -> bool:
    """Whether multiprocessing started this process; all such processes import `multiprocessing.process`."""
    process = sys.modules.get("multiprocessing.process")
    return process is not None and process.parent_process() is not None


def _check_parallelism(where: str) -> None:
    words = parallelism.unstated()
    if words is not None:
        raise ConfigError(f"{where}: peers of one data-parallel rank need the same rows, and {words}")


def _from_ray() -> ProcessRank | None:
    """Returns the rank and world size in a Ray Train worker; None in other processes."""
    train = sys.modules.get("ray.train")
    if train is None:
        return None
    try:
        context = train.get_context()
        rank, size = context.get_world_rank(), context.get_world_size()
    except (RuntimeError, AttributeError, AssertionError):  # not in a worker of Ray Train
        return None
    return ProcessRank(rank, size, "Ray Train") if isinstance(rank, int) and isinstance(size, int) else None


def _checked(where: str, rank: int, world_size: int) -> ProcessRank:
    is_int = all(isinstance(value, int) and not isinstance(value, bool) for value in (rank, world_size))
    if not is_int or not 0 <= rank < world_size < 2**63:  # range of the engine's integers
        raise ConfigError(
            f"{where}: rank and world_size must be integers with 0 <= rank < world_size, not {rank!r} and "
            f"{world_size!r}"
        )
    return ProcessRank(rank, world_size, "rank= and world_size=")
