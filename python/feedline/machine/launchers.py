# SPDX-License-Identifier: Apache-2.0
"""Reads the rank and world size from the environment variables of launchers, in the order listed in
docs/parallelism.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ..errors import ConfigError


class ProcessRank(NamedTuple):
    """The rank of a process among the `world_size` processes that share the data, and the source of both numbers."""

    rank: int
    world_size: int
    source: str


# Launchers (MPI and others) that set both variables for each process: rank, world size.
_PAIRS = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),  # Open MPI
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),  # MVAPICH
    ("PMI_RANK", "PMI_SIZE"),  # MPICH, Intel MPI, Cray
    ("HOROVOD_RANK", "HOROVOD_SIZE"),
    ("JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE"),  # jsrun of LSF
    ("FLUX_TASK_RANK", "FLUX_JOB_SIZE"),
)
# Variables that number the processes of a launch; most launchers set a size, too.
_RANKS = (
    "RANK",
    *(rank_name for rank_name, _ in _PAIRS),
    "PMIX_RANK",  # PRRTE, and Slurm's plugin for PMIx
    "PALS_RANKID",  # Cray PALS
    "ALPS_APP_PE",  # Cray ALPS
    "SLURM_PROCID",
    "LOCAL_RANK",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "MV2_COMM_WORLD_LOCAL_RANK",
    "MPI_LOCALRANKID",  # Intel MPI
)
# Slurm's step ids that do not run srun tasks: SLURM_INTERACTIVE_STEP and the values above it in slurm.h.
_SPECIAL_STEPS = range(0xFFFFFFFA, 0x100000000)
_INTERACTIVE_JOBS = ("bash", "interactive")  # job names of srun --pty bash and salloc; Lightning has the same rule
_SHELLS = ("bash", "sh", "zsh", "ksh", "tcsh", "csh", "dash", "fish")


def from_environment(environment: Mapping[str, str]) -> ProcessRank | None:
    """Reads the rank and world size from the launcher's environment variables; None if there is no launcher.

    Launchers may be nested, such as torchrun within Slurm. The first launcher in this order started this process;
    the variables of later launchers may count something else, such as machines.

    Raises:
        ConfigError: a variable is not a valid number, a world size has no rank, or a rank above 0 has no world size.
    """
    if "WORLD_SIZE" in environment:
        return _from_torch_variables(environment)
    for rank_name, size_name in _PAIRS:
        if rank_name in environment and size_name in environment:
            return _pair(environment, rank_name, size_name)
    slurm = _from_slurm(environment)
    if slurm is None and not _is_single_process_of_slurm(environment):
        _refuse_rank_without_size(environment)
    return slurm


def _refuse_rank_without_size(environment: Mapping[str, str]) -> None:
    """Raises ConfigError for a process of unknown world size that is not the first of its launch.

    Rank 0 passes, because it may be a single process; otherwise the other ranks of its launch raise this error.
    """
    for name in _RANKS:
        text = environment.get(name, "")
        if text.isdecimal() and int(text) > 0:
            raise ConfigError(
                f"loader: the environment has {name}={text} but no valid world size, so this process would read the "
                "rows of all ranks; run `export WORLD_SIZE=N RANK=R` for each process (N: number of processes), or "
                "pass rank= and world_size= (rank=0, world_size=1 to read all rows)"
            )


def _from_torch_variables(environment: Mapping[str, str]) -> ProcessRank:
    """torchrun, Accelerate, DeepSpeed and Ray set RANK; Lightning sets LOCAL_RANK and NODE_RANK only."""
    if "RANK" in environment:
        return _pair(environment, "RANK", "WORLD_SIZE")
    size = _number(environment, "WORLD_SIZE")
    if size == 1:
        return ProcessRank(0, 1, "WORLD_SIZE")
    for rank_name, size_name in _PAIRS:  # mpirun with a script that sets only WORLD_SIZE
        if rank_name in environment and _number(environment, size_name, default=0) == size:
            return _pair(environment, rank_name, size_name)
    slurm = _from_slurm(environment)
    if slurm is not None and slurm.world_size == size:
        return slurm
    if "LOCAL_RANK" in environment:
        local_rank = _number(environment, "LOCAL_RANK")
        node = _number(environment, "NODE_RANK", default=-1)
        local_size = _number(environment, "LOCAL_WORLD_SIZE", default=0)
        if node == 0 or local_size == size:
            return _checked(local_rank, size, "WORLD_SIZE, LOCAL_RANK")
        if node > 0 and local_size > 0:
            return _checked(node * local_size + local_rank, size, "WORLD_SIZE, NODE_RANK, LOCAL_WORLD_SIZE, LOCAL_RANK")
    names = ("WORLD_SIZE", "RANK", "LOCAL_RANK", "NODE_RANK", "LOCAL_WORLD_SIZE")
    shown = ", ".join(f"{name}={environment[name]}" if name in environment else f"no {name}" for name in names)
    raise ConfigError(
        f"loader: the environment states a world size but no rank ({shown}); call init_process_group before the "
        "loader is used, set RANK, or pass rank= and world_size="
    )


def _from_slurm(environment: Mapping[str, str]) -> ProcessRank | None:
    """Returns the rank of an srun task.

    Batch scripts and interactive shells also have Slurm's variables, but are single processes.
    """
    size_name = next((n for n in ("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS") if n in environment), None)
    if size_name is None or "SLURM_PROCID" not in environment or "SLURM_STEP_ID" not in environment:
        return None
    if _is_single_process_of_slurm(environment):
        return None
    return _pair(environment, "SLURM_PROCID", size_name)


def _is_single_process_of_slurm(environment: Mapping[str, str]) -> bool:
    """Whether the process runs in a batch script or an interactive shell rather than in an srun task."""
    step = environment.get("SLURM_STEP_ID")
    if step is None:
        return False
    return (step.isdigit() and int(step) in _SPECIAL_STEPS) or _is_interactive_shell(environment)


def _is_interactive_shell(environment: Mapping[str, str]) -> bool:
    """Whether the srun task is an interactive shell, in which a user starts single processes."""
    named = environment.get("SLURM_JOB_NAME") in _INTERACTIVE_JOBS
    task = environment.get("SLURM_TASK_PID")
    if task is None or not task.isdigit():
        return named
    try:
        with open(f"/proc/{task}/cmdline", "rb") as file:
            program, *arguments = file.read().decode(errors="replace").rstrip("\0").split("\0")
    except OSError:  # in a container with its own process ids
        return named and "SLURM_PTY_PORT" in environment
    is_shell = program.rpartition("/")[2].removeprefix("-") in _SHELLS
    return is_shell and all(argument.startswith("-") and "c" not in argument[1:] for argument in arguments)


def _pair(environment: Mapping[str, str], rank_name: str, size_name: str) -> ProcessRank:
    return _checked(_number(environment, rank_name), _number(environment, size_name), f"{rank_name} and {size_name}")


def _number(environment: Mapping[str, str], name: str, default: int | None = None) -> int:
    text = environment.get(name)
    if text is None and default is not None:
        return default
    try:
        return int(text or "")
    except ValueError:
        raise ConfigError(
            f"loader: the environment variable {name}={text!r} must be an integer; correct it or pass rank= and "
            "world_size="
        ) from None


def _checked(rank: int, world_size: int, source: str) -> ProcessRank:
    if not 0 <= rank < world_size:
        raise ConfigError(
            f"loader: {source} must be integers with 0 <= rank < world_size, not {rank} and {world_size}; correct "
            "them or pass rank= and world_size="
        )
    return ProcessRank(rank, world_size, source)
