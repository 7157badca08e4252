# SPDX-License-Identifier: Apache-2.0
"""What conda, mamba, pixi and their like installed: the files of conda-meta."""

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
    """One installed conda package.

    Attributes:
        channel: its name, as ``conda-forge`` or ``pkgs/main``; a URL where it has no short name.
        url: of its archive.
        sha256: of its archive, in hexadecimal; "": not told. `md5` alike.
        depends: as ``python >=3.11,<3.12.0a0``.
        meta: its file in conda-meta.
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
        """What it installed, without what Python makes of it (``.pyc``)."""
        return tuple(
            Listed(
                f"{self.prefix}/{one['_path']}",
                # where conda put the prefix into a file, the hash of that is meant
                str(one.get("sha256_in_prefix") or ("" if one.get("prefix_placeholder") else one.get("sha256")) or ""),
                None if one.get("prefix_placeholder") else _whole(one.get("size_in_bytes")),
            )
            for one in self.listed
            if one.get("path_type") not in ("softlink", "directory") and not str(one["_path"]).endswith(".pyc")
        )

    @cached_property
    def content(self) -> str:
        """The same wherever this package is installed, and by whom: a hash over its files and their hashes as packed.

        Left out is what is made at the installation: links, ``.pyc``, and scripts of entry points. "": it tells none.
        """
        lines = [
            f"{one['_path']} {one['sha256']}"
            for one in self.listed
            if one.get("sha256") and one.get("path_type", "hardlink") == "hardlink" and one["_path"][-4:] != ".pyc"
        ]
        return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()[:32] if lines else ""

    @cached_property
    def paths(self) -> frozenset[str]:
        """All that it installed, relative to the prefix."""
        return frozenset(str(one["_path"]) for one in self.listed)


@dataclass(frozen=True)
class Broken:
    """A file of conda-meta, or the folder, that cannot be read as what it should be. `denied`: by this user."""

    file: Path
    why: str
    denied: bool = False


def packages_in(prefix: Path) -> tuple[list[CondaPackage], list[Broken]]:
    """All packages of a conda environment, by name, and the files of conda-meta that are broken."""
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
    """The short name of a channel's URL: ``https://conda.anaconda.org/conda-forge/linux-64`` is ``conda-forge``."""
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
    """Where folders of a noarch Python package went, by what was installed."""
    inner = "/site-packages/"
    site = next((name[: name.index(inner) + len(inner)] for name in names if inner in name), "")
    return {"python-scripts/": "bin/"} | ({inner[1:]: site} if site else {})


def _installed_as(path: str, moved: Mapping[str, str]) -> str:
    """Where a path came to lie: `paths_data` of conda, not of py-rattler, has those of noarch packages as packed."""
    for folder, place in moved.items():
        if path.startswith(folder):
            return place + path.removeprefix(folder)
    return path


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) else None
