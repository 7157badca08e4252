# SPDX-License-Identifier: Apache-2.0
"""Lists every installed package with its version and build from its metadata, without importing it.

Builds of the same version can differ in speed: a wheel for any Linux, a local build, a conda package. Therefore the
build is included if the metadata contain it: the wheel's platform, conda's build string, and the installer.
"""

from __future__ import annotations

import contextlib
import json
import re
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

_MOST = 1000  # maximum number of packages, which bounds a record's size
_LONGEST = 120
_WHEEL_TAG = re.compile(r"^Tag:\s*(\S+)\s*$", re.MULTILINE)


def package_facts(prefix: Path = Path(sys.prefix), path: list[str] | None = None) -> dict[str, str]:
    """Returns versions by lower-case package name, such as ``2.13.0 (manylinux_2_28_x86_64, pip)``.

    Versions of conda packages look like ``1.26.4 (py311h64a7726_0, conda)``.

    Args:
        prefix: the environment's folder, which contains conda's metadata.
        path: folders from which packages are imported; None for the import path of this interpreter.
    """
    found: dict[str, str] = {}
    for name, version, distribution in installed(path):
        with contextlib.suppress(OSError, UnicodeError):
            builds = [_platform(distribution), _installer(distribution)]
            found.setdefault(normalised(name), _shown(version, builds))
    found |= _of_conda(prefix)
    return dict(sorted(found.items())[:_MOST])


def installed(path: list[str] | None = None) -> Iterator[tuple[str, str, metadata.Distribution]]:
    """Yields the name and version from each package's metadata, in import order; damaged packages are skipped."""
    for distribution in metadata.distributions() if path is None else metadata.distributions(path=path):
        try:
            text = distribution.read_text("METADATA") or distribution.read_text("PKG-INFO") or ""
        except (OSError, UnicodeError):
            continue
        name, version = _field(text, "Name"), _field(text, "Version")
        if name and version:
            yield name, version, distribution


def normalised(name: str) -> str:
    """Normalizes a project name: ``Ruamel.Yaml_x`` becomes ``ruamel-yaml-x``."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _field(text: str, name: str) -> str:
    """Reads only the head of a package's metadata: parsing all of it as an e-mail message takes ten times as long."""
    found = re.search(rf"^{name}:[ \t]*(\S+)[ \t]*$", text.partition("\n\n")[0], re.MULTILINE)
    return found[1] if found else ""


def _platform(distribution: metadata.Distribution) -> str:
    """Returns the last platform tag of a wheel with machine code; this tag names the oldest platform that the wheel
    supports.
    """
    tags = _WHEEL_TAG.findall(distribution.read_text("WHEEL") or "")
    platforms = [tag.rpartition("-")[2] for tag in tags]
    return "" if not platforms or platforms[-1] == "any" else platforms[-1]


def _installer(distribution: metadata.Distribution) -> str:
    return (distribution.read_text("INSTALLER") or "").strip()


def _of_conda(prefix: Path) -> dict[str, str]:
    found = {}
    for path in sorted((prefix / "conda-meta").glob("*.json"))[:_MOST]:
        try:
            held = json.loads(path.read_bytes())
            name, version, build = (str(held[key]) for key in ("name", "version", "build"))
        except (OSError, ValueError, KeyError, TypeError):
            continue
        found[normalised(name)] = _shown(version, [build, "conda"])
    return found


def _shown(version: str, builds: list[str]) -> str:
    known = [one for one in builds if one]
    return (f"{version} ({', '.join(known)})" if known else version)[:_LONGEST]
