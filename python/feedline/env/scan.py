# SPDX-License-Identifier: Apache-2.0
"""Scans an environment once for all checks and snapshots."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from .reading.conda import Broken, CondaPackage, packages_in
from .reading.graphics import Graphics, graphics_of
from .reading.mapped import Library, mapped_by, variables_of
from .reading.place import EnvironmentPrefix, place_at
from .reading.torch_build import TorchBuild, torch_in
from .reading.wheels import Installed, installed_in

# These variables change the code that runs, its threads, memory or error handling, or what is installed.
VARIABLES = (
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONNOUSERSITE",
    "CUDA_HOME",
    "CUDA_VISIBLE_DEVICES",
    "CONDA_OVERRIDE_CUDA",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "MKL_THREADING_LAYER",
    "KMP_DUPLICATE_LIB_OK",
    "CUDA_LAUNCH_BLOCKING",
    "TORCH_NCCL_ASYNC_ERROR_HANDLING",
    "TORCH_NCCL_BLOCKING_WAIT",
    "NCCL_ASYNC_ERROR_HANDLING",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
    "TORCH_CUDNN_V8_API_DISABLED",
    "NVIDIA_DISABLE_REQUIRES",
)


@dataclass(frozen=True)
class Environment:
    """An environment and its machine.

    Attributes:
        distributions: projects installed by pip and similar tools, and the dist-info of conda's Python packages.
        packages: packages installed by conda.
        broken: files in conda-meta that cannot be read.
        variables: values of :data:`VARIABLES` in a process of this environment.
        mapped: libraries mapped by a running process; None without a process.
        process: a description of that process.
        notes: reasons why data could not be read.
    """

    place: EnvironmentPrefix
    distributions: tuple[Installed, ...] = ()
    packages: tuple[CondaPackage, ...] = ()
    broken: tuple[Broken, ...] = ()
    torch: TorchBuild | None = None
    graphics: Graphics = field(default_factory=Graphics)
    variables: Mapping[str, str] = field(default_factory=dict)
    mapped: tuple[Library, ...] | None = None
    process: str = ""
    notes: tuple[str, ...] = ()

    @cached_property
    def first(self) -> dict[str, Installed]:
        """The importable projects by name. If a project is installed twice, the first on the path is returned."""
        found: dict[str, Installed] = {}
        for one in self.distributions:
            found.setdefault(one.name, one)
        return found

    @cached_property
    def conda_paths(self) -> dict[str, CondaPackage]:
        """The owner of each path that conda installed; paths are relative to the prefix."""
        return {path: package for package in self.packages for path in package.paths}

    def is_condas(self, one: Installed) -> bool:
        """Whether conda installed this project, that is, whether its metadata are among conda's files."""
        return self.relative(one.folder / "METADATA") in self.conda_paths

    def relative(self, path: str | Path) -> str:
        """Returns the path relative to the prefix, as in conda-meta, or "" if it is outside the prefix."""
        text, prefix = str(path), f"{self.place.prefix}/"
        return text[len(prefix) :] if text.startswith(prefix) else ""


def read_environment(
    prefix: str | os.PathLike[str] | None = None,
    *,
    pid: int | None = None,
    root: Path = Path("/"),
    variables: Mapping[str, str] | None = None,
    graphics: Graphics | None = None,
) -> Environment:
    """Reads the environment in the folder `prefix`; None selects the running environment.

    Args:
        pid: ID of a running process whose mapped libraries are read.
        root: replaces "/" in tests. In tests, `graphics` replaces the machine's GPUs.
        variables: environment variables; None reads those of `pid`, or of this process.

    Raises:
        ConfigError: there is no environment in the folder.
        OSError: the process does not exist or belongs to another user.
    """
    place = place_at(prefix)
    given = variables if variables is not None else os.environ if pid is None else variables_of(pid, root / "proc")
    distributions, notes = installed_in(place.site)
    packages, broken = packages_in(place.prefix)
    return Environment(
        place=place,
        distributions=tuple(distributions),
        packages=tuple(packages),
        broken=tuple(broken),
        torch=torch_in(place.site),
        graphics=graphics_of(root) if graphics is None else graphics,
        variables={name: given[name] for name in VARIABLES if given.get(name)},
        mapped=None if pid is None else tuple(mapped_by(pid, root / "proc")),
        process="" if pid is None else f"process {pid}",
        notes=tuple(notes),
    )
