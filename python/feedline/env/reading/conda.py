# SPDX-License-Identifier: Apache-2.0
"""Reads conda-meta, which lists packages installed by conda, mamba and pixi."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from .listed import Listed


@dataclass(frozen=True)
class CondaPackage:
    """An installed conda package.

    Attributes:
        channel: name of the channel, such as ``conda-forge`` or ``pkgs/main``, or its URL if it has no short name.
        url: URL of the archive.
        sha256, md5: hashes of the archive, in hexadecimal; "" if unknown.
        depends: requirements, such as ``python >=3.11,<3.12.0a0``.
        meta: the package's file in conda-meta.
        listed: paths relative to `prefix`, with hash and size.
    """

    name: str
    version: str
    build: str
    channel: str
    subdir: str
    url: str
    sha256: str
    md5: str
    depends: tuple[str, ...]
    meta: Path
    prefix: Path
    listed: tuple[Mapping[str, Any], ...]

    @cached_property
    def files(self) -> tuple[Listed, ...]:
        """The installed files, without ``.pyc`` files, which Python generates."""
        return tuple(
            Listed(
                f"{self.prefix}/{one['_path']}",
                # For files into which conda wrote the prefix, use the hash after that change.
                str(one.get("sha256_in_prefix") or ("" if one.get("prefix_placeholder") else one.get("sha256")) or ""),
                None if one.get("prefix_placeholder") else _whole(one.get("size_in_bytes")),
            )
            for one in self.listed
            if one.get("path_type") not in ("softlink", "directory") and not str(one["_path"]).endswith(".pyc")
        )

    @cached_property
    def content(self) -> str:
        """A hash of the names and packed hashes of the files, equal for every installation of this package.

        Links, ``.pyc`` files and entry point scripts, which installers create, are left out. "" if there are no hashes.
        """
        lines = [
            f"{one['_path']} {one['sha256']}"
            for one in self.listed
            if one.get("sha256") and one.get("path_type", "hardlink") == "hardlink" and one["_path"][-4:] != ".pyc"
        ]
        return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()[:32] if lines else ""

    @cached_property
    def paths(self) -> frozenset[str]:
        """All installed paths of the package, relative to the prefix."""
        return frozenset(str(one["_path"]) for one in self.listed)


@dataclass(frozen=True)
class Broken:
    """An unreadable file in conda-meta, or the folder itself if it is unreadable. `denied` is set if this user has no
    permission to read it.
    """

    file: Path
    why: str
    denied: bool = False


def packages_in(prefix: Path) -> tuple[list[CondaPackage], list[Broken]]:
    """Returns all packages of a conda environment, sorted by name, and the broken files in conda-meta."""
    folder = prefix / "conda-meta"
    found, broken = [], []
    try:
        names = sorted(os.listdir(folder))
    except FileNotFoundError:
        return [], []
    except OSError as error:
        return [], [_of_system(folder, error)]
    for name in names:
        if not name.endswith(".json") or name.startswith(("feedline", ".")) or name == "state.json":
            continue
        file = folder / name
        try:
            found.append(_package(json.loads(file.read_bytes()), file, prefix))
        except OSError as error:
            broken.append(_of_system(file, error))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            broken.append(Broken(file, f"{type(error).__name__}: {error}"))
    return sorted(found, key=lambda one: one.name), broken


def _of_system(path: Path, error: OSError) -> Broken:
    return Broken(path, str(error.strerror), isinstance(error, PermissionError))


def channel_name(channel: str) -> str:
    """Returns a channel's short name: ``https://conda.anaconda.org/conda-forge/linux-64`` is ``conda-forge``."""
    text = re.sub(r"/(linux-[\w]+|noarch|osx-[\w]+|win-[\w]+)/?$", "", channel.rstrip("/"))
    found = re.match(r"https?://(?:conda\.anaconda\.org|repo\.anaconda\.com|repo\.prefix\.dev|prefix\.dev)/(.+)$", text)
    return found[1] if found else text


def _package(value: Mapping[str, Any], file: Path, prefix: Path) -> CondaPackage:
    url = str(value.get("url") or "")
    data = value.get("paths_data") or {}
    names = [str(path) for path in value.get("files") or ()]
    moved = _moved(names) if value.get("noarch") == "python" else {}
    listed = [{**one, "_path": _installed_as(str(one["_path"]), moved)} for one in data.get("paths") or ()]
    if not listed:
        listed = [{"_path": path} for path in names]
    return CondaPackage(
        name=str(value["name"]),
        version=str(value["version"]),
        build=str(value.get("build") or value.get("build_string") or ""),
        channel=channel_name(str(value.get("channel") or url.rpartition("/")[0])),
        subdir=str(value.get("subdir") or ""),
        url=url,
        sha256=str(value.get("sha256") or ""),
        md5=str(value.get("md5") or ""),
        depends=tuple(map(str, value.get("depends") or ())),
        meta=file,
        prefix=prefix,
        listed=tuple(listed),
    )


def _moved(names: Iterable[str]) -> dict[str, str]:
    """Returns the installed locations of the folders in a noarch Python package."""
    inner = "/site-packages/"
    site = next((name[: name.index(inner) + len(inner)] for name in names if inner in name), "")
    return {"python-scripts/": "bin/"} | ({inner[1:]: site} if site else {})


def _installed_as(path: str, moved: Mapping[str, str]) -> str:
    """Returns the installed path of a file. The `paths_data` that conda writes, unlike py-rattler's, contains the
    packed paths of noarch packages.
    """
    for folder, place in moved.items():
        if path.startswith(folder):
            return place + path.removeprefix(folder)
    return path


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) else None
