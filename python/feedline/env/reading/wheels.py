# SPDX-License-Identifier: Apache-2.0
"""Reads the dist-info folders in site-packages, written by pip, uv and similar tools (packaging.python.org,
"Recording installed projects").
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ...machine.packages import normalised
from .listed import Listed, from_base64

# Files written during installation differ between installations of the same wheel.
_OF_INSTALLERS = ("INSTALLER", "REQUESTED", "RECORD", "direct_url.json", "uv_cache.json", "uv_build.json")


@dataclass(frozen=True)
class Installed:
    """An installed project.

    Attributes:
        name: normalized name, taken from the folder's name if there is no METADATA.
        version: version in METADATA or the folder's name.
        folder: the dist-info (or egg-info) folder.
        requires: the ``Requires-Dist`` lines.
        installer: the installer, such as ``pip``, ``uv`` or ``conda``; "" if unknown.
        tags: the wheel's ``Tag`` lines.
        origin: the content of direct_url.json, which names a source other than an index.
        has_metadata, has_record: whether these files exist; an egg-info never has a RECORD.
    """

    name: str
    version: str
    folder: Path
    requires: tuple[str, ...] = ()
    installer: str = ""
    tags: tuple[str, ...] = ()
    origin: dict[str, Any] = field(default_factory=dict)
    has_metadata: bool = True
    has_record: bool = True

    @property
    def site(self) -> Path:
        return self.folder.parent

    @property
    def is_egg(self) -> bool:
        return not self.folder.name.endswith(".dist-info")

    @property
    def is_systems(self) -> bool:
        """Whether the package manager of a Linux distribution installed the project; such managers patch files without
        updating RECORD.
        """
        return self.site.parts[-2:] == ("python3", "dist-packages")

    @property
    def editable(self) -> bool:
        return bool((self.origin.get("dir_info") or {}).get("editable"))

    @cached_property
    def files(self) -> tuple[Listed, ...]:
        """The files in RECORD, without ``.pyc`` files, which Python generates; empty if there is no RECORD."""
        site = str(self.site)
        found = []
        for path, digest, size in self._rows():
            if not path.endswith(".pyc"):
                place = f"{site}/{path}"
                sha256 = from_base64(digest[7:]) if digest.startswith("sha256=") else ""
                found.append(
                    Listed(
                        os.path.normpath(place) if ".." in path else place,
                        sha256,
                        int(size) if size.isdigit() else None,
                    )
                )
        return tuple(found)

    @cached_property
    def content(self) -> str:
        """A hash of the names and hashes of the files in site-packages, equal for every installation of a wheel.

        Scripts, whose first line contains the environment's path, and files written by installers are left out.
        """
        own = f"{self.folder.name}/"
        lines = [
            f"{path} {digest}"
            for path, digest, _ in self._rows()
            if not path.startswith("..")
            and not path.endswith((".pyc", "/__editable__.py"))
            and not (path.startswith(own) and path[len(own) :] in _OF_INSTALLERS)
        ]
        return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()[:32] if lines else ""

    def _rows(self) -> Iterator[tuple[str, str, str]]:
        """Parses path, hash and size of each line of RECORD. Paths with commas are quoted; such paths are rare."""
        text = read_text(self.folder / "RECORD") if self.has_record else None
        for line in (text or "").splitlines():
            parts = line.rsplit(",", 2)
            if len(parts) == 3 and parts[0]:
                path = parts[0]
                yield path[1:-1].replace('""', '"') if path[0] == '"' else path, parts[1], parts[2]


def installed_in(site: Iterable[Path]) -> tuple[list[Installed], list[str]]:
    """Returns all projects in folders of site-packages, in import order, and notes on unreadable files."""
    found: list[Installed] = []
    notes: list[str] = []
    for folder in site:
        try:
            names = sorted(os.listdir(folder))
        except OSError as error:
            notes.append(f"{folder} cannot be read: {error.strerror}")
            continue
        for name in names:
            if name.endswith((".dist-info", ".egg-info")):
                found.append(_read(folder / name, notes))
    return found, notes


def leftovers_in(site: Iterable[Path]) -> list[Path]:
    """Returns folders that pip renamed with a leading ``~`` before it was interrupted."""
    return [path for folder in site if os.access(folder, os.R_OK) for path in sorted(folder.glob("~*"))]


def read_text(path: Path, notes: list[str] | None = None) -> str | None:
    """Returns a file's text, or None if it does not exist or is unreadable. `notes` reports unreadable files."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if notes is not None:
            notes.append(f"{path} cannot be read: {error.strerror}")
        return None


def _read(folder: Path, notes: list[str]) -> Installed:
    egg = folder.name.endswith(".egg-info")
    metadata = folder / ("PKG-INFO" if egg else "METADATA")
    text = read_text(folder if folder.is_file() else metadata, notes)
    headers = _headers(text or "")
    stem = folder.name.rsplit(".", 1)[0]
    name, _, version = stem.partition("-")
    tags = _headers(read_text(folder / "WHEEL") or "").get("tag", [])
    return Installed(
        name=normalised((headers.get("name") or [name])[0]),
        version=(headers.get("version") or [re.sub(r"-py\d.*", "", version)])[0],
        folder=folder,
        requires=tuple(headers.get("requires-dist", ())),
        installer=(read_text(folder / "INSTALLER") or "").strip(),
        tags=tuple(tags),
        origin=_object(folder / "direct_url.json"),
        has_metadata=bool(headers.get("name")),
        has_record=(folder / "RECORD").exists(),
    )


def _headers(text: str) -> dict[str, list[str]]:
    """Returns the headers of an e-mail message by lower-case name."""
    found: dict[str, list[str]] = {}
    last: list[str] | None = None
    for line in text.splitlines():
        if not line.strip():
            break
        if line[0] in " \t":
            if last:
                last[-1] += " " + line.strip()
            continue
        name, colon, value = line.partition(":")
        if colon:
            last = found.setdefault(name.lower(), [])
            last.append(value.strip())
    return found


def _object(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(read_text(path) or "{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
