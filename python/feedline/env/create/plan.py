# SPDX-License-Identifier: Apache-2.0
"""Plans an installation by policy: the exact versions of a lock, or minor updates of them."""

from __future__ import annotations

import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass

from ...errors import ConfigError
from ..differences import meets_python
from ..drivers import END_OF_PYTHON
from ..locks.listing import Listing, Pin
from ..reading.place import platform_name
from ..rules import names
from ..torch_indexes import label_of, torch_index

POLICIES = ("product", "research")
_ENDED = "pytorch"
_LATE = 99  # greater than any patch version of Python, since ranges have lower bounds such as 3.11.4


@dataclass(frozen=True)
class Plan:
    """The packages to install.

    Attributes:
        listing: the source of the plan.
        policy: "product" for exact versions of all packages and the interpreter; "research" for updates within major
            versions.
        conda, pip: the packages of each manager.
        notes: hints for the user.
    """

    listing: Listing
    policy: str
    conda: tuple[Pin, ...]
    pip: tuple[Pin, ...]
    notes: tuple[str, ...]

    @property
    def exact(self) -> bool:
        return self.policy == "product"

    @property
    def python(self) -> str:
        """The interpreter's version for an environment without conda; "" if any version is suitable."""
        return python_for(self.listing, self.policy)

    @property
    def conda_specs(self) -> list[str]:
        specs = [
            f"{pin.name} {self._spec(pin)}{f' {pin.build}' if self.exact and pin.build else ''}".strip()
            for pin in self.conda
        ]
        has_python = any(pin.name == "python" for pin in self.conda)
        return specs if has_python or not self.pip else [*specs, "python"]

    @property
    def index_options(self) -> list[str]:
        """Returns pip's index options from the listing, or those of PyTorch's indexes if torch's builds need them."""
        if self.listing.index_options:
            return list(self.listing.index_options)
        indexes = dict.fromkeys(torch_index(pin.version) for pin in self.pip if not pin.is_from_url)
        return [word for index in indexes if index for word in ("--extra-index-url", index)]

    @property
    def requirements(self) -> list[str]:
        """Returns the lines of a requirements file."""
        return [self._requirement(pin) for pin in self.pip]

    @property
    def hashed(self) -> bool:
        """Whether every project has a hash, so that installers can require hashes."""
        return self.exact and bool(self.pip) and all(pin.hashes and pin.can_be_hashed for pin in self.pip)

    def _spec(self, pin: Pin) -> str:
        if not pin.version:
            return pin.spec
        return f"=={pin.version}" if self.exact or _is_labelled(pin) else _minor_updates(pin.version)

    def _requirement(self, pin: Pin) -> str:
        if pin.content == "editable":
            return f"-e {pin.url.removeprefix('file://')}"
        if pin.url.startswith(("git+", "file:", "http")) or (pin.url and not pin.version):
            return f"{pin.name} @ {pin.url}" + self._hashes(pin)
        return f"{pin.name}{self._spec(pin)}{self._hashes(pin)}"

    def _hashes(self, pin: Pin) -> str:
        return "".join(f" --hash={one}" for one in pin.hashes) if self.hashed else ""


def python_for(listing: Listing, policy: str) -> str:
    """Returns the Python for an environment of `listing`, as ``3.11.2`` or ``3.11``; "" if any version is suitable.

    For a range, such as ``>=3.10`` in a uv.lock, returns the running Python if it is in the range, or else the newest
    known Python.

    Raises:
        ConfigError: no known Python is in the range.
    """
    wanted = listing.python
    if not wanted:
        return ""
    exact = re.fullmatch(r"(?:={2,3}\s*)?(\d+\.\d+(?:\.\d+\w*)?)(\.\*)?", wanted)
    if exact is not None:
        return exact[1] if policy == "product" else ".".join(exact[1].split(".")[:2])
    own = platform.python_version()
    if meets_python(own, wanted):
        return own
    for major, minor in sorted(END_OF_PYTHON, reverse=True):
        if meets_python(f"{major}.{minor}.{_LATE}", wanted):
            return f"{major}.{minor}"
    raise ConfigError(f"{listing.source} requires Python {wanted}, but no known version satisfies the requirement")


def plan_of(listing: Listing, policy: str, channels: Sequence[str] = ()) -> Plan:
    """Plans the installation of `listing`.

    Args:
        channels: conda channels that replace the listing's.

    Raises:
        ConfigError: the listing is empty or for another platform.
    """
    if not listing.pins:
        raise ConfigError(f"{listing.source} lists no packages")
    if listing.platform and listing.platform != platform_name():
        raise ConfigError(
            f"{listing.source} is for {listing.platform}, but this is {platform_name()}: builds do not run on "
            "other "
            "platforms. Use a file without builds instead: an environment.yml without builds, or a pyproject.toml"
        )
    notes = []
    if not listing.complete and policy == "product":
        notes.append(f"{listing.source} does not list every version, so dependencies are resolved now")
    if _ENDED in (*channels, *listing.channels):
        notes.append("the channel pytorch ended with torch 2.5: for newer versions, use conda-forge or pip")
    labelled = [f"{pin.name} {pin.version}" for pin in listing.pins if _is_labelled(pin)]
    if policy == "research" and labelled:
        notes.append(f"not updated, because a range of versions cannot name a build: {names(labelled)}")
    if any(pin.name == "pytorch-cuda" for pin in listing.pins):
        notes.append(
            "pytorch-cuda is only in the channel pytorch, which ended with torch 2.5: on conda-forge, request "
            "pytorch-gpu and cuda-version"
        )
    return Plan(listing, policy, listing.of("conda"), listing.of("pip"), tuple(notes))


def _is_labelled(pin: Pin) -> bool:
    """Whether a wheel's version names its build, such as ``+cu126``; a range of versions would select any build."""
    return pin.manager == "pip" and bool(label_of(pin.version))


def _minor_updates(version: str) -> str:
    found = re.match(r"(\d+)", version)
    public = version.partition("+")[0]
    return f">={public},<{int(found[1]) + 1}" if found else f"=={version}"
