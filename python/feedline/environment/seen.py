# SPDX-License-Identifier: Apache-2.0
"""All that checks and snapshots look at, read once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from .reading.conda import Broken, CondaPackage, packages_in
from .reading.graphics import Graphics, graphics_of
from .reading.mapped import Library, mapped_by, variables_of
from .reading.place import Place, place_at
from .reading.torch_build import TorchBuild, torch_in
from .reading.wheels import Installed, installed_in

# They change which code runs, with how many threads, or what a package manager installs.
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
    "NVIDIA_DISABLE_REQUIRES",
)


@dataclass(frozen=True)
class Environment:
    """One environment, and the machine that it is on.

    Attributes:
        distributions: what pip and its like installed; also the dist-info of conda's own Python packages.
        packages: what conda installed.
        broken: files of conda-meta that cannot be read.
        variables: of the process that would run in it, those of :data:`VARIABLES`.
        mapped: libraries that a running process has mapped; None: no process was named.
        process: that process, in words.
        notes: what could not be read.
    """

    place: Place
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
        """By name, the projects that are imported: of two in one environment the first."""
        found: dict[str, Installed] = {}
        for one in self.distributions:
            found.setdefault(one.name, one)
        return found

    @cached_property
    def conda_paths(self) -> dict[str, CondaPackage]:
        """Every path that conda installed, relative to the prefix, and whose it is."""
        return {path: package for package in self.packages for path in package.paths}

    def is_condas(self, one: Installed) -> bool:
        """Whether conda installed this project: its metadata are among conda's files."""
        return self.relative(one.folder / "METADATA") in self.conda_paths

    def relative(self, path: str | Path) -> str:
        """To the prefix, as conda has it; "": it lies outside."""
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
    """Reads the environment in the folder `prefix`; None: the one that runs this.

    Args:
        pid: a running process whose mapped libraries are looked at.
        root: stands for "/" and is another folder in tests. `graphics` likewise replaces the machine's GPUs.
        variables: of the environment; None: those of `pid`, or this process's.

    Raises:
        ConfigError: there is no environment.
        OSError: there is no such process, or it is another user's.
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
