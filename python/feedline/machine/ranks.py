# SPDX-License-Identifier: Apache-2.0
"""Which rank of how many this process is, as far as its surroundings tell."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from ..errors import ConfigError

# launcher, its variable for the rank, its variable for the world size. Launchers nest, as torchrun within Slurm: what
# comes first here started this very process, and those behind it may count other things, such as machines.
_VARIABLES = (
    ("torchrun", "RANK", "WORLD_SIZE"),
    ("Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("MPI", "PMI_RANK", "PMI_SIZE"),
    ("Slurm", "SLURM_PROCID", "SLURM_NTASKS"),
)


def resolve(rank: int | None, world_size: int | None) -> tuple[int, int]:
    """The pair as given, else torch.distributed's if it is initialised, else the launcher's, else (0, 1).

    What is given counts, for the ranks that share data may be fewer than all: with tensor or pipeline parallelism.

    Raises:
        ConfigError: not such a pair, or torch.distributed and the launcher disagree.
    """
    if (rank is None) != (world_size is None):
        raise ConfigError("loader: give both rank and world_size, or neither")
    if rank is not None and world_size is not None:
        return _checked("rank and world_size", rank, world_size)
    group, launcher = from_torch(), from_environment(os.environ)
    if group is not None and launcher is not None and group != launcher:
        raise ConfigError(
            f"loader: torch.distributed says rank {group[0]} of {group[1]}, the launcher's variables say rank "
            f"{launcher[0]} of {launcher[1]}; give rank and world_size yourself"
        )
    return group or launcher or (0, 1)


def from_torch() -> tuple[int, int] | None:
    """torch.distributed's pair; never imports torch."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return int(distributed.get_rank()), int(distributed.get_world_size())


def from_environment(environment: Mapping[str, str]) -> tuple[int, int] | None:
    """The pair of the first launcher whose two variables are set."""
    for launcher, rank_name, size_name in _VARIABLES:
        rank, size = environment.get(rank_name), environment.get(size_name)
        if rank is None or size is None:
            continue
        if launcher == "Slurm" and environment.get("SLURM_STEP_ID") is None:
            continue  # the batch script itself, which is not one of its tasks
        try:
            pair = int(rank), int(size)
        except ValueError:
            raise ConfigError(
                f"loader: {launcher}'s variables {rank_name}={rank!r} and {size_name}={size!r} are not integers; "
                "give rank and world_size yourself"
            ) from None
        return _checked(f"{rank_name} and {size_name}", *pair)
    return None


def _checked(source: str, rank: int, world_size: int) -> tuple[int, int]:
    is_int = all(isinstance(value, int) and not isinstance(value, bool) for value in (rank, world_size))
    if not is_int or not 0 <= rank < world_size < 2**63:  # the engine counts no further
        values = f"{rank!r} and {world_size!r}"
        raise ConfigError(f"loader: {source} must be integers with 0 <= rank < world_size, not {values}")
    return rank, world_size
