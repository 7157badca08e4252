# SPDX-License-Identifier: Apache-2.0
"""Finds unmet requirements, from Requires-Dist in METADATA and `depends` in conda-meta."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from ..errors import ConfigError
from ..machine.packages import normalised
from .optional_deps import optional_dependency
from .reading.conda import CondaPackage
from .scan import Environment

_OF_TORCH = ("torchvision", "torchaudio")


@dataclass(frozen=True)
class Need:
    """A requirement that is not satisfied.

    Attributes:
        owner: the package that has the requirement, with its version.
        wants: the requirement, without the marker.
        name: the required package. has: the installed version, or "" if the package is not installed.
    """

    owner: str
    wants: str
    name: str
    has: str

    @property
    def of_torch_set(self) -> bool:
        return self.name == "torch" and self.owner.partition(" ")[0] in _OF_TORCH


def markers_for(python: str | None) -> dict[str, str]:
    """Returns marker values for an environment with this Python version on this machine, without extras."""
    values = dict(optional_dependency("packaging.markers").default_environment())
    if python:
        values["python_version"] = ".".join(python.split(".")[:2])
        values["python_full_version"] = python if python.count(".") > 1 else f"{python}.0"
    return {**values, "extra": ""}


def unmet(seen: Environment) -> list[Need]:
    """Returns requirements that no installed version satisfies. Skips extras and invalid lines."""
    requirements = optional_dependency("packaging.requirements")
    markers = markers_for(seen.place.python)
    found = []
    for one in seen.first.values():
        for line in one.requires:
            try:
                requirement = requirements.Requirement(line)
                applies = requirement.marker is None or requirement.marker.evaluate(markers)
            except Exception:  # third-party metadata may hold invalid requirements, which are skipped
                continue
            if not applies:
                continue
            name = normalised(requirement.name)
            other = seen.first.get(name)
            has = other.version if other else ""
            if other is None or not _takes(requirement, has):
                wants = f"{requirement.name}{requirement.specifier}"
                found.append(Need(f"{one.name} {one.version}", wants, name, has))
    return found


def _takes(requirement: Any, version: str) -> bool:
    try:
        return bool(requirement.specifier.contains(version, prereleases=True))
    except ValueError:
        return True  # skip versions of unknown form


def conda_unmet(seen: Environment) -> tuple[list[Need], bool]:
    """Returns unmet requirements of conda packages, and whether versions were compared, which needs py-rattler."""
    if not seen.packages:
        return [], True
    try:
        rattler = optional_dependency("rattler")
    except ConfigError:
        rattler = None
    packages = {one.name: one for one in seen.packages}
    found = []
    for one in seen.packages:
        for depend in one.depends:
            name = re.split(r"[\s=<>!\[]", depend.strip(), maxsplit=1)[0]
            if name.startswith("__"):
                continue  # virtual packages of the machine
            other = packages.get(name)
            if other is None or (rattler is not None and not _matches(rattler, depend, other)):
                found.append(Need(f"{one.name} {one.version}", depend, name, other.version if other else ""))
    return found, rattler is not None


def _matches(rattler: Any, depend: str, other: CondaPackage) -> bool:
    """Whether a version satisfies a spec; True if py-rattler, whose exceptions have no common base class, cannot parse
    it.
    """
    build = rattler.BuildString(other.build) if hasattr(rattler, "BuildString") else other.build
    try:
        spec = rattler.MatchSpec(re.sub(r"\[.*\]$", "", depend))
        version = rattler.Version(other.version)
    except Exception:
        return True
    return bool(spec.matches(rattler.PackageRecord(other.name, str(version), build, 0, other.subdir or "noarch")))
