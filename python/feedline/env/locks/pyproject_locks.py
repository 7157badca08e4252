# SPDX-License-Identifier: Apache-2.0
"""Reads uv.lock and pylock.toml (PEP 751)."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from ...errors import ConfigError
from ...machine.packages import normalised
from ..optional_deps import optional_dependency
from ..requirements import markers_for
from .listing import PYPI, Listing, Pin

Package = Mapping[str, Any]


def read_pylock(text: str, source: str, platform: str, python: str) -> Listing:
    value = tomllib.loads(text)
    version = str(value.get("lock-version"))
    if version.partition(".")[0] != "1":
        raise ConfigError(f"{source} is a pylock.toml of version {version}; only version 1 is supported")
    pins = []
    for one in value["packages"]:
        if "marker" in one and not _holds(one["marker"], python, groups=value.get("default-groups", ())):
            continue
        files = [*one.get("wheels", ()), *([one["sdist"]] if "sdist" in one else ())]
        files += [one["archive"]] if "archive" in one else []
        hashes = tuple(f"{kind}:{digest}" for file in files for kind, digest in file.get("hashes", {}).items())
        url = str((one.get("vcs") or one.get("archive") or {}).get("url") or "")
        commit = (one.get("vcs") or {}).get("commit-id")
        editable = bool((one.get("directory") or {}).get("editable"))
        pins.append(
            Pin(
                normalised(one["name"]), "pip", str(one.get("version", "")),
                url=f"git+{url}@{commit}" if commit else (one.get("directory") or {}).get("path", url), hashes=hashes,
                content="editable" if editable else "",
            )
        )  # fmt: skip
    return Listing(source, "pylock", tuple(pins), python=str(value.get("requires-python", "")))


def read_uv(text: str, source: str, platform: str, python: str) -> Listing:
    value = tomllib.loads(text)
    if value.get("version") != 1:
        raise ConfigError(f"{source} is a uv.lock of version {value.get('version')}; only version 1 is supported")
    packages = value.get("package", ())
    roots = [one for one in packages if _is_root(one)]
    # uv writes conflicting extras and groups in markers; it installs the group `dev` by default.
    groups = [f"group-{len(one['name'])}-{one['name']}-dev" for one in roots]
    # uv compares releases: its markers `< '3.14'` and `>= '3.14'` exclude each other for 3.14.0rc1, too, but by the
    # specification of markers neither holds.
    release = re.match(r"[\d.]*\d", python)
    running = ".".join(map(str, sys.version_info[:3]))
    holds = partial(_holds, python=release[0] if release else running, extra=groups[0] if len(groups) == 1 else "")
    entries = _Entries(packages, holds, source)
    first = roots or [one for name in dict.fromkeys(one["name"] for one in packages) for one in entries.that_hold(name)]
    reached = [one for one in _reached(entries, first, roots) if not _is_root(one)]
    indexes = dict.fromkeys(str(one.get("source", {}).get("registry", "")).rstrip("/") for one in reached)
    options = [word for url in indexes if url.startswith("http") and url != PYPI for word in ("--extra-index-url", url)]
    pins = tuple(map(_uv_pin, reached))
    python = str(value.get("requires-python", ""))
    return Listing(source, "uv.lock", pins, python=python, index_options=tuple(options))


def _is_root(one: Package) -> bool:
    return bool({"virtual", "editable", "directory"} & one.get("source", {}).keys())


class _Entries:
    """The entries in a uv.lock. A package has several entries if its version or index depends on markers."""

    def __init__(self, packages: Iterable[Package], holds: Callable[[str], bool], source: str) -> None:
        self.holds = holds
        self._source = source
        self._by_name: dict[str, list[Package]] = {}
        for one in packages:
            self._by_name.setdefault(one["name"], []).append(one)

    def that_hold(self, name: str) -> list[Package]:
        """Returns the entries of a package whose resolution-markers apply; an entry without markers always applies."""
        return [
            one
            for one in self._by_name[name]
            if not one.get("resolution-markers") or any(map(self.holds, one["resolution-markers"]))
        ]

    def of(self, dependency: Package) -> Package:
        """Returns the entry for a dependency. If a package has several entries, uv adds the version and source to the
        dependency.

        Raises:
            ConfigError: none or several of the entries match.
        """
        name = dependency["name"]
        found = [
            one
            for one in self._by_name[name]
            if all(one.get(key) == dependency[key] for key in ("version", "source") if key in dependency)
        ]
        if len(found) > 1:
            found = [one for one in found if one in self.that_hold(name)]
        if len(found) != 1:
            versions = ", ".join(str(one.get("version")) for one in self._by_name[name])
            raise ConfigError(
                f"{self._source} is damaged: {len(found)} of the entries of {name} ({versions}) match the version "
                "and resolution-markers that its dependents require; run uv lock"
            )
        return found[0]


def _reached(entries: _Entries, first: list[Package], roots: list[Package]) -> Iterator[Package]:
    """Returns the packages that `first` needs on this machine: dependencies whose markers apply, and the group `dev` of
    `roots`.
    """
    seen: set[tuple[int, str]] = set()
    waiting = [(one, "") for one in first]
    while waiting:
        one, extra = waiting.pop()
        if (id(one), extra) in seen:
            continue
        if not any(known == id(one) for known, _ in seen):
            yield one
        seen.add((id(one), extra))
        wanted = list(one.get("dependencies", ()) if not extra else one.get("optional-dependencies", {}).get(extra, ()))
        if one in roots:
            wanted += one.get("dev-dependencies", {}).get("dev", ())
        for dependency in wanted:
            if "marker" not in dependency or entries.holds(dependency["marker"]):
                other = entries.of(dependency)
                waiting += [(other, extra) for extra in ("", *dependency.get("extra", ()))]


def _uv_pin(one: Package) -> Pin:
    files = [*one.get("wheels", ()), *([one["sdist"]] if "sdist" in one else ())]
    git = one.get("source", {}).get("git", "")
    return Pin(
        normalised(one["name"]), "pip", str(one.get("version", "")), url=f"git+{git}" if git else "",
        hashes=tuple(str(file["hash"]) for file in files if "hash" in file),
    )  # fmt: skip


def _holds(marker: str, python: str, extra: str = "", groups: Iterable[str] = ()) -> bool:
    """Whether a marker in a lock applies on this machine; `groups` are the dependency groups that are installed."""
    values = {**markers_for(python or None), "extra": extra, "extras": set(), "dependency_groups": set(groups)}
    return bool(optional_dependency("packaging.markers").Marker(marker).evaluate(values))
