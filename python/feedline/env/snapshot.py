# SPDX-License-Identifier: Apache-2.0
"""Describes an environment as a JSON object with a fingerprint. docs/env.md documents the fields."""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .locks.listing import Listing, Pin
from .reading.conda import packages_in
from .reading.mapped import family_of
from .reading.place import place_at, platform_name
from .reading.wheels import Installed, installed_in
from .scan import Environment

VERSION = 1


def snapshot_of(seen: Environment) -> dict[str, Any]:
    """Returns the environment as JSON."""
    pins = pins_of(seen)
    torch = seen.torch
    return {
        "environment_snapshot": VERSION,
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "fingerprint": fingerprint_of(seen.place.python, platform_name(), pins),
        "name": seen.place.name,
        "prefix": str(seen.place.prefix),
        "kind": seen.place.kind,
        "python": seen.place.python,
        "platform": platform_name(),
        "channels": list(dict.fromkeys(pin.channel for pin in pins if pin.channel)),
        "packages": [_as_dict(pin) for pin in pins],
        "torch": None
        if torch is None
        else {
            "version": torch.version,
            "cuda": torch.cuda,
            "hip": torch.hip,
            "settings": dict(torch.settings),
        },
        "driver": seen.graphics.driver,
        "gpus": list(seen.graphics.names),
        "libc": os.confstr("CS_GNU_LIBC_VERSION") if "CS_GNU_LIBC_VERSION" in os.confstr_names else None,
        "libraries": _libraries(seen),
        "variables": dict(seen.variables),
        "notes": [*seen.notes, *(f"{one.file}: {one.why}" for one in seen.broken)],
    }


def pins_of(seen: Environment) -> tuple[Pin, ...]:
    """Returns all installed packages with their exact versions. Python packages that conda
    installed are listed once, as conda packages.
    """
    found = [
        Pin(
            one.name, "conda", one.version, build=one.build, channel=one.channel, url=one.url,
            hashes=tuple(f"{kind}:{value}" for kind, value in (("sha256", one.sha256), ("md5", one.md5)) if value),
            content=one.content,
        )
        for one in seen.packages
    ]  # fmt: skip
    found += [_project(one) for one in seen.distributions if not seen.is_condas(one)]
    return tuple(sorted(found, key=lambda pin: (pin.manager, pin.name, pin.version)))


def fingerprint_of(python: str | None, platform: str, pins: tuple[Pin, ...]) -> str:
    """Returns a hash that is equal for two environments with the same interpreter and the same package files.

    Location, creation time, installer and machine do not affect the hash.
    """
    lines = [f"python {python} {platform}"]
    for pin in pins:
        lines.append(f"{pin.manager} {pin.name} {pin.version} {pin.build} {pin.content}")
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:32]


@functools.cache
def own_fingerprint() -> str:
    """Returns the fingerprint of the running environment for run records. The environment is read once per process,
    which takes 0.3 s.
    """
    place = place_at()
    distributions, _ = installed_in(place.site)
    packages, _ = packages_in(place.prefix)
    seen = Environment(place, tuple(distributions), tuple(packages))
    return fingerprint_of(place.python, platform_name(), pins_of(seen))


def listing_of(value: Mapping[str, Any], source: str) -> Listing:
    """Converts a snapshot to a listing.

    Raises:
        KeyError, TypeError, ValueError: the snapshot is damaged.
    """
    pins = tuple(
        Pin(
            name=str(one["name"]), manager=str(one["manager"]), version=str(one["version"]), build=str(one["build"]),
            channel=str(one["channel"]), url=str(one["url"]), hashes=tuple(map(str, one["hashes"])),
            content=str(one["content"]), tags=tuple(map(str, one.get("tags", ()))),
        )
        for one in value["packages"]
    )  # fmt: skip
    known = ("torch", "driver", "gpus", "libc", "variables", "name", "kind")
    libraries = {f"{one['family']} {os.path.basename(one['path'])}": one["bytes"] for one in value["libraries"]}
    return Listing(
        source, "snapshot", pins, python=str(value["python"] or ""), channels=tuple(value["channels"]),
        platform=str(value["platform"]), facts={**{name: value[name] for name in known}, "libraries": libraries},
        fingerprint=str(value["fingerprint"]),
    )  # fmt: skip


def seen_listing(seen: Environment) -> Listing:
    """Returns the listing of an environment, from its snapshot."""
    return listing_of(json.loads(json.dumps(snapshot_of(seen))), str(seen.place.prefix))


def _project(one: Installed) -> Pin:
    url = str(one.origin.get("url") or "")
    vcs = one.origin.get("vcs_info") or {}
    if vcs.get("commit_id"):
        url = f"{vcs.get('vcs', 'git')}+{url}@{vcs['commit_id']}"
    hashes = (one.origin.get("archive_info") or {}).get("hashes") or {}
    content = "editable" if one.editable else one.content
    return Pin(
        one.name, "pip", one.version, url=url, hashes=tuple(f"{kind}:{value}" for kind, value in hashes.items()),
        content=content, tags=one.tags,
    )  # fmt: skip


def _as_dict(pin: Pin) -> dict[str, Any]:
    return {
        "name": pin.name,
        "manager": pin.manager,
        "version": pin.version,
        "build": pin.build,
        "channel": pin.channel,
        "url": pin.url,
        "hashes": list(pin.hashes),
        "content": pin.content,
        "tags": list(pin.tags),
    }


def _libraries(seen: Environment) -> list[dict[str, Any]]:
    """Returns the library copies that the given process has mapped, or else those in the environment."""
    if seen.mapped is not None:
        return [{"family": one.family, "path": one.path, "bytes": _size(one.path)} for one in seen.mapped]
    listed = [one.files for one in seen.distributions] + [one.files for one in seen.packages]
    paths = [one.path for files in listed for one in files if ".so" in one.path]
    found = {path: family_of(path) for path in sorted(set(paths))}
    return [{"family": family, "path": path, "bytes": _size(path)} for path, family in found.items() if family]


def _size(path: str) -> int | None:
    try:
        return Path(path).stat().st_size
    except OSError:
        return None
