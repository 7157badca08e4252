# SPDX-License-Identifier: Apache-2.0
"""uv.lock, and pylock.toml (PEP 751)."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from ...errors import ConfigError
from ...machine.packages import normalised
from ..needed import needed
from ..requiring import markers_for
from .listing import Listing, Pin

Package = Mapping[str, Any]


def read_pylock(text: str, source: str, platform: str, python: str) -> Listing:
    value = tomllib.loads(text)
    version = str(value.get("lock-version"))
    if version.partition(".")[0] != "1":
        raise ConfigError(f"{source} is a pylock.toml of version {version}; version 1 is known here")
    pins = []
    for one in value["packages"]:
        if "marker" in one and not _holds(one["marker"], python):
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
        raise ConfigError(f"{source} is a uv.lock of version {value.get('version')}; version 1 is known here")
    packages = {one["name"]: one for one in value.get("package", ())}
    roots = [one for one in packages.values() if _is_root(one)]
    pins = tuple(_uv_pin(one) for one in _reached(packages, roots, python) if not _is_root(one))
    return Listing(source, "uv.lock", pins, python=str(value.get("requires-python", "")))


def _is_root(one: Package) -> bool:
    return bool({"virtual", "editable", "directory"} & one.get("source", {}).keys())


def _reached(packages: Mapping[str, Package], roots: list[Package], python: str) -> Iterator[Package]:
    """What the project needs here: from its own packages by dependencies whose markers hold, with the group `dev`."""
    seen: set[str] = set()
    waiting = [(one, "") for one in (roots or packages.values())]
    while waiting:
        one, extra = waiting.pop()
        if f"{one['name']}[{extra}]" in seen:
            continue
        if one["name"] not in {name.partition("[")[0] for name in seen}:
            yield one
        seen.add(f"{one['name']}[{extra}]")
        wanted = list(one.get("dependencies", ()) if not extra else one.get("optional-dependencies", {}).get(extra, ()))
        if one in roots:
            wanted += one.get("dev-dependencies", {}).get("dev", ())
        for dependency in wanted:
            if "marker" not in dependency or _holds(dependency["marker"], python):
                other = packages[dependency["name"]]
                waiting += [(other, extra) for extra in ("", *dependency.get("extra", ()))]


def _uv_pin(one: Package) -> Pin:
    files = [*one.get("wheels", ()), *([one["sdist"]] if "sdist" in one else ())]
    git = one.get("source", {}).get("git", "")
    return Pin(
        normalised(one["name"]), "pip", str(one.get("version", "")), url=f"git+{git}" if git else "",
        hashes=tuple(str(file["hash"]) for file in files if "hash" in file),
    )  # fmt: skip


def _holds(marker: str, python: str) -> bool:
    return bool(needed("packaging.markers").Marker(marker).evaluate(markers_for(python or None)))
