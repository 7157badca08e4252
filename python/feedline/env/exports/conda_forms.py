# SPDX-License-Identifier: Apache-2.0
"""Writes environment.yml with its pip section, and @EXPLICIT lists with hashes."""

from __future__ import annotations

from ...errors import ConfigError
from ..locks.listing import Listing
from .pip_forms import index_lines, quoted, requirement


def environment(listing: Listing, name: str) -> str:
    """Writes the versions and builds of all packages; builds are specific to the platform."""
    conda, pip = listing.of("conda"), listing.of("pip")
    lines = [
        f"# {listing.platform}, fingerprint {listing.fingerprint}. Builds are specific to this platform.",
        f"name: {quoted(name)}",
        "channels:",
        *(f"  - {quoted(one)}" for one in listing.channels or ("conda-forge",)),
        "dependencies:",
        *(f"  - {quoted(f'{pin.name}={pin.version}={pin.build}')}" for pin in conda),
    ]
    if not conda:
        lines.append(f"  - {quoted(f'python={listing.python}')}")
        own = next((pin for pin in pip if pin.name == "pip"), None)  # conda's own pip installs the others
        pip = tuple(pin for pin in pip if pin is not own)
        lines += [f"  - {quoted(f'pip={own.version}') if own else 'pip'}"] if pip else []
    if pip:
        lines += ["  - pip:", *(f"      - {quoted(one)}" for one in (*index_lines(listing), *map(requirement, pip)))]
    return "\n".join(lines) + "\n"


def explicit(listing: Listing, name: str) -> str:
    pins = listing.of("conda")
    if not pins:
        raise ConfigError(
            "@EXPLICIT lists contain only conda packages, and this environment has none; use --to requirements"
        )
    lines = [f"# {name}, fingerprint {listing.fingerprint}", f"# platform: {listing.platform}", "@EXPLICIT"]
    for pin in pins:
        if not pin.url:
            raise ConfigError(
                f"conda-meta has no URL for {pin.name}; use --to environment.yml, which names its channel"
            )
        digest = (
            f"#sha256:{pin.sha256}" if pin.sha256 else "".join(f"#{one[4:]}" for one in pin.hashes if one[:4] == "md5:")
        )
        lines.append(f"{pin.url}{digest}")
    return "\n".join(lines) + "\n"
