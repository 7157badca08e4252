# SPDX-License-Identifier: Apache-2.0
"""Finds which requested packages the channels lack, because the solver does not report it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..locks.listing import Pin
from ..reading.place import platform_name

_VERSIONS = 4  # maximum number of packages to name
_PACKAGES = 6

Held = Mapping[str, Mapping[str, list[str]]]  # versions by package, by channel


async def held_by(rattler: Any, channels: Sequence[str], pins: Sequence[Pin]) -> dict[str, dict[str, list[str]]]:
    """Returns each channel's versions of these packages, newest first.

    Raises py-rattler's exceptions if a channel cannot be reached.
    """
    gateway, found = rattler.Gateway(), {}
    names = list(dict.fromkeys(pin.name for pin in pins))
    for channel in channels:
        answer = await gateway.query([channel], [platform_name(), "noarch"], names, recursive=False)
        versions: dict[str, dict[str, Any]] = {}
        for records in answer:
            for record in records:
                versions.setdefault(record.name.normalized, {})[str(record.version)] = record.version
        found[channel] = {
            name: [text for text, _ in sorted(known.items(), key=lambda one: one[1], reverse=True)]
            for name, known in versions.items()
        }
    return found


def sentences(held: Held, pins: Sequence[Pin]) -> list[str]:
    """Returns one sentence per requested package that no channel has; empty if the packages merely conflict."""
    told = []
    for pin in pins:
        where = {channel: known[pin.name] for channel, known in held.items() if pin.name in known}
        if not where:
            told.append(f"{_all(held)} no {pin.name}")
        elif pin.version and not any(pin.version in versions for versions in where.values()):
            told.append(f"{pin.name} {pin.version} was not found: {_has(where)}")
        elif pin.spec and not any(_meets(one, pin.spec) for versions in where.values() for one in versions):
            told.append(f"{pin.name} {pin.spec} was not found: {_has(where)}")
    return told[:_PACKAGES] + ([f"and {len(told) - _PACKAGES} more"] if len(told) > _PACKAGES else [])


def _all(held: Held) -> str:
    return f"{' and '.join(held)} {'have' if len(held) > 1 else 'has'}"


def _has(where: Mapping[str, Sequence[str]]) -> str:
    parts = []
    for channel, versions in where.items():
        more = f" and {len(versions) - _VERSIONS} older" if len(versions) > _VERSIONS else ""
        parts.append(f"{channel} has {', '.join(versions[:_VERSIONS])}{more}")
    return "; ".join(parts)


def _meets(version: str, spec: str) -> bool:
    """Whether a version may satisfy the pin; True if this cannot be determined."""
    from ..optional_deps import optional_dependency

    rattler = optional_dependency("rattler")
    try:
        return bool(rattler.VersionSpec(spec).matches(rattler.Version(version)))
    except Exception:  # py-rattler's exceptions have no common base class; unknown specs count as met
        return True


def without_drawing(text: str) -> str:
    """Returns the solver's message without its tree-drawing characters."""
    return " ".join(re.sub("[├└│─]", " ", text).split())
