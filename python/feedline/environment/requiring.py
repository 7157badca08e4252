# SPDX-License-Identifier: Apache-2.0
"""What packages need and do not have: Requires-Dist of METADATA, `depends` of conda-meta."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from ..errors import ConfigError
from ..machine.packages import normalised
from .needed import needed
from .reading.conda import CondaPackage
from .seen import Environment

_OF_TORCH = ("torchvision", "torchaudio")


@dataclass(frozen=True)
class Need:
    """A requirement that is not met.

    Attributes:
        owner: who needs, with its version.
        wants: the requirement, without its marker.
        name: of what is needed. has: the version that is here; "": none is.
    """

    owner: str
    wants: str
    name: str
    has: str

    @property
    def of_torch_set(self) -> bool:
        return self.name == "torch" and self.owner.partition(" ")[0] in _OF_TORCH


def markers_for(python: str | None) -> dict[str, str]:
    """The values of markers for an environment with that Python on this machine, without extras."""
    values = dict(needed("packaging.markers").default_environment())
    if python:
        values["python_version"] = ".".join(python.split(".")[:2])
        values["python_full_version"] = python if python.count(".") > 1 else f"{python}.0"
    return {**values, "extra": ""}


def unmet(seen: Environment) -> list[Need]:
    """Requirements that no installed version meets. Extras, and lines that are no requirement, are left out."""
    requirements = needed("packaging.requirements")
    markers = markers_for(seen.place.python)
    found = []
    for one in seen.first.values():
        for line in one.requires:
            try:
                requirement = requirements.Requirement(line)
                applies = requirement.marker is None or requirement.marker.evaluate(markers)
            except Exception:  # whatever a stranger's metadata hold: no requirement that could be judged
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
        return True  # a version of no known form is not judged


def conda_unmet(seen: Environment) -> tuple[list[Need], bool]:
    """The same of conda's packages; and whether versions were compared, for which py-rattler is needed."""
    if not seen.packages:
        return [], True
    try:
        rattler = needed("rattler")
    except ConfigError:
        rattler = None
    packages = {one.name: one for one in seen.packages}
    found = []
    for one in seen.packages:
        for depend in one.depends:
            name = re.split(r"[\s=<>!\[]", depend.strip(), maxsplit=1)[0]
            if name.startswith("__"):
                continue  # of the machine
            other = packages.get(name)
            if other is None or (rattler is not None and not _matches(rattler, depend, other)):
                found.append(Need(f"{one.name} {one.version}", depend, name, other.version if other else ""))
    return found, rattler is not None


def _matches(rattler: Any, depend: str, other: CondaPackage) -> bool:
    """A spec or a version that py-rattler cannot read is not judged: its exceptions have no class in common."""
    build = rattler.BuildString(other.build) if hasattr(rattler, "BuildString") else other.build
    try:
        spec = rattler.MatchSpec(re.sub(r"\[.*\]$", "", depend))
        version = rattler.Version(other.version)
    except Exception:
        return True
    return bool(spec.matches(rattler.PackageRecord(other.name, str(version), build, 0, other.subdir or "noarch")))
