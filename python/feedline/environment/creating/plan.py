# SPDX-License-Identifier: Apache-2.0
"""What is to be installed, by the policy: exactly what a lock says, or that with minor updates."""

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
from ..torch_indexes import torch_index

POLICIES = ("product", "research")
_ENDED = "pytorch"
_LATE = 99  # above any patch version of Python: ranges have lower bounds such as 3.11.4


@dataclass(frozen=True)
class Plan:
    """What to install.

    Attributes:
        listing: that it is made from.
        policy: "product": every package, and the interpreter, exactly; "research": within their major versions.
        conda, pip: the packages of either manager.
        notes: what a reader should know of it.
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
        """The interpreter's version for an environment without conda; "" if any will do."""
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
        """pip's options for the indexes that the listing names, else for PyTorch's indexes if its builds need them."""
        if self.listing.index_options:
            return list(self.listing.index_options)
        indexes = dict.fromkeys(torch_index(pin.version) for pin in self.pip if not pin.is_from_url)
        return [word for index in indexes if index for word in ("--extra-index-url", index)]

    @property
    def requirements(self) -> list[str]:
        """The lines of a file of requirements."""
        return [self._requirement(pin) for pin in self.pip]

    @property
    def hashed(self) -> bool:
        """Every project has its hash, so that an installer can be told to take no other."""
        return self.exact and bool(self.pip) and all(pin.hashes and pin.can_be_hashed for pin in self.pip)

    def _spec(self, pin: Pin) -> str:
        if not pin.version:
            return pin.spec
        return f"=={pin.version}" if self.exact else _minor_updates(pin.version)

    def _requirement(self, pin: Pin) -> str:
        if pin.content == "editable":
            return f"-e {pin.url.removeprefix('file://')}"
        if pin.url.startswith(("git+", "file:", "http")) or (pin.url and not pin.version):
            return f"{pin.name} @ {pin.url}" + self._hashes(pin)
        return f"{pin.name}{self._spec(pin)}{self._hashes(pin)}"

    def _hashes(self, pin: Pin) -> str:
        return "".join(f" --hash={one}" for one in pin.hashes) if self.hashed else ""


def python_for(listing: Listing, policy: str) -> str:
    """The Python for an environment of `listing`, as ``3.11.2`` or ``3.11``; "" if any will do.

    From a range, such as ``>=3.10`` in a uv.lock, it is the running Python if it fits, else the newest known one.

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
    raise ConfigError(f"{listing.source} requires Python {wanted}, and no known version meets that")


def plan_of(listing: Listing, policy: str, channels: Sequence[str] = ()) -> Plan:
    """What to install of `listing`.

    Args:
        channels: stand for those of the listing.

    Raises:
        ConfigError: it holds nothing, or is for another platform.
    """
    if not listing.pins:
        raise ConfigError(f"{listing.source} lists no packages")
    if listing.platform and listing.platform != platform_name():
        raise ConfigError(
            f"{listing.source} is for {listing.platform}, and this is {platform_name()}: builds of one do not "
            f"run on the "
            "other. Make it from what was asked for instead: an environment.yml without builds, or a pyproject.toml"
        )
    notes = []
    if not listing.complete and policy == "product":
        notes.append(f"{listing.source} does not name every version: what it draws in is chosen now")
    if _ENDED in (*channels, *listing.channels):
        notes.append("the channel pytorch ended with torch 2.5: newer ones are on conda-forge, or by pip")
    return Plan(listing, policy, listing.of("conda"), listing.of("pip"), tuple(notes))


def _minor_updates(version: str) -> str:
    found = re.match(r"(\d+)", version)
    public = version.partition("+")[0]
    return f">={public},<{int(found[1]) + 1}" if found else f"=={version}"
