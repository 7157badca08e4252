# SPDX-License-Identifier: Apache-2.0
"""Compares two listings: snapshots, environments or locks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .locks.listing import Listing, Pin
from .optional_deps import optional_dependency
from .scan import Environment
from .snapshot import seen_listing

_INSTALLERS = ("pip", "setuptools", "wheel", "uv")


@dataclass(frozen=True)
class Difference:
    """A difference between two listings.

    Attributes:
        kind: "package" or "fact".
        name: the name of the package or fact.
        what: the kind of difference: "version", "build", "channel", "hash", "content", "manager", "missing" (in the
            second listing), "added" or "value".
        first, second: the values in the two listings.
    """

    kind: str
    name: str
    what: str
    first: Any
    second: Any

    @property
    def text(self) -> str:
        if self.what == "missing":
            return f"{self.name} {self.first} is missing".replace("  ", " ")
        if self.what == "added":
            return f"{self.name} {self.second} is not listed"
        if self.what == "version":
            return f"{self.name} is {self.second} instead of {self.first}"
        return f"{self.name} has a different {self.what}"


def compare(first: Listing, second: Listing) -> list[Difference]:
    """Returns all differences, packages first. Values that are in only one of the listings are not compared."""
    return [*_packages(first, second), *_facts(first, second)]


def compare_with_lock(lock: Listing, seen: Environment) -> list[Difference]:
    """Returns the differences between a lock and an environment, without facts about the machine."""
    return list(_packages(lock, seen_listing(seen)))


def _packages(first: Listing, second: Listing) -> Iterator[Difference]:
    managed = [any(pin.name == "python" for pin in one.pins) for one in (first, second)]
    if first.python and second.python and not any(managed) and not _one_python(first.python, second.python):
        yield Difference("package", "python", "version", first.python, second.python)
    mine = _with_python(first) if managed[1] else first.pins
    theirs = {(pin.manager, pin.name): pin for pin in (_with_python(second) if managed[0] else second.pins)}
    by_name = {pin.name: pin for pin in second.pins}
    ours = set()
    for pin in mine:
        other = theirs.get((pin.manager, pin.name))
        ours.add((pin.manager, pin.name))
        if other is not None:
            yield from _pin(pin, other)
        elif pin.name in by_name and by_name[pin.name].manager != pin.manager:
            if pin.name not in _INSTALLERS:
                yield Difference("package", pin.name, "manager", pin.manager, by_name[pin.name].manager)
            ours.add((by_name[pin.name].manager, pin.name))
        elif second.complete and _covers(second, pin):
            yield Difference("package", pin.name, "missing", pin.version or pin.spec, None)
    if first.complete:
        for key, pin in theirs.items():
            if key not in ours and _covers(first, pin):
                yield Difference("package", pin.name, "added", None, pin.version or pin.spec)


def _with_python(listing: Listing) -> tuple[Pin, ...]:
    """Returns a listing's packages. Python counts as a package except in virtual environments, as in conda's lists."""
    listed = any(pin.name == "python" for pin in listing.pins)
    exact = bool(listing.python) and _is_version(listing.python)
    return listing.pins if listed or not exact else (*listing.pins, Pin("python", "conda", listing.python))


def _covers(listing: Listing, pin: Pin) -> bool:
    """Whether packages that a listing omits should not be installed.

    Locks of Python projects do not list conda packages, and few list pip and other installers.
    """
    if listing.kind == "snapshot":
        return True
    return pin.name not in _INSTALLERS and any(one.manager == pin.manager for one in listing.pins)


def _pin(pin: Pin, other: Pin) -> Iterator[Difference]:
    wanted, has = pin.version or pin.spec, other.version or other.spec
    if not _agree(pin, other):
        yield Difference("package", pin.name, "version", wanted, has)
        return
    for what in ("build", "channel", "content"):
        mine, theirs = getattr(pin, what), getattr(other, what)
        if mine and theirs and mine != theirs:
            yield Difference("package", pin.name, what, mine, theirs)
            return
    if pin.content and other.content:
        return  # Compare file by file: archives with the same content may be compressed differently.
    kinds = {one.partition(":")[0] for one in pin.hashes} & {one.partition(":")[0] for one in other.hashes}
    if kinds and not set(pin.hashes) & set(other.hashes):
        yield Difference("package", pin.name, "hash", list(pin.hashes), list(other.hashes))


def _agree(pin: Pin, other: Pin) -> bool:
    if pin.version and other.version:
        return _same(pin.version, other.version)
    one, exact = (pin, other) if other.version else (other, pin)
    return not one.spec or not exact.version or allows(one, exact.version)


def allows(pin: Pin, version: str) -> bool:
    """Whether the spec of a pin allows a version; True if the spec cannot be parsed."""
    if not pin.spec:
        return True
    if pin.manager == "pip":
        specifiers = optional_dependency("packaging.specifiers")
        try:
            return bool(specifiers.SpecifierSet(pin.spec).contains(version, prereleases=True))
        except ValueError:
            return True
    rattler = optional_dependency("rattler")
    try:
        return bool(rattler.VersionSpec(pin.spec).matches(rattler.Version(version)))
    except Exception:  # py-rattler's exceptions have no common base class
        return True


def _same(one: str, other: str) -> bool:
    """Whether versions are the same: ``1.2`` is the same as ``1.2.0``, and ``2.13.0`` matches its local version
    ``2.13.0+cpu``.
    """
    if one == other or one == other.partition("+")[0]:
        return True
    versions = optional_dependency("packaging.version")
    try:
        return bool(versions.Version(one) == versions.Version(other))
    except ValueError:
        return False


def _one_python(first: str, second: str) -> bool:
    """Whether two listings may have the same Python. ``3.11`` matches any ``3.11.x``; two ranges are not compared."""
    exact = [_is_version(one) for one in (first, second)]
    if all(exact):
        return first == second or first.startswith(f"{second}.") or second.startswith(f"{first}.")
    if any(exact):
        version, spec = (first, second) if exact[0] else (second, first)
        return meets_python(version, spec)
    return True


def _is_version(python: str) -> bool:
    return python[0].isdigit() and "*" not in python and "," not in python


def exact_python(*listings: Listing) -> str:
    """Returns the exact Python version, such as ``3.11.2``, of the first listing that has one, or ""."""
    return next((one.python for one in listings if one.python and _is_version(one.python)), "")


def meets_python(version: str, spec: str) -> bool:
    """Whether a Python version, such as ``3.11.2``, matches a version such as ``3.11`` or a range such as
    ``>=3.10``.
    """
    if _is_version(spec):
        return version == spec or version.startswith(f"{spec}.")
    release = re.match(r"[\d.]*\d", version)
    if release and not re.search("[a-z]", spec):
        version = release[0]  # as in pip and uv, 3.14.0rc1 meets >=3.14
    return allows(Pin("python", "pip", spec=spec.replace(" ", "")), version)


def _facts(first: Listing, second: Listing) -> Iterator[Difference]:
    for name in sorted(first.facts.keys() & second.facts.keys() - {"name"}):
        mine, theirs = first.facts[name], second.facts[name]
        if isinstance(mine, dict) and isinstance(theirs, dict):
            keys = mine.keys() & theirs.keys() if name == "torch" else mine.keys() | theirs.keys()
            for key in sorted(keys):  # older snapshots lack some facts about torch; a missing variable is not set
                if mine.get(key) != theirs.get(key):
                    yield Difference("fact", f"{name}: {key}", "value", mine.get(key), theirs.get(key))
        elif mine != theirs:
            yield Difference("fact", name, "value", mine, theirs)
