# SPDX-License-Identifier: Apache-2.0
"""Locates an environment: its interpreter's version, site-packages and conda-meta."""

from __future__ import annotations

import os
import platform
import re
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from ...errors import ConfigError

_LIBRARY = re.compile(r"python(\d+)\.(\d+)t?$")


@dataclass(frozen=True)
class EnvironmentPrefix:
    """An environment's folder.

    Attributes:
        prefix: path of the environment, equal to ``sys.prefix``.
        kind: "venv", "conda", or "system" for an interpreter that all programs of the machine share.
        python: version of Python, such as ``3.11.2``, or ``3.11`` if the patch version is unknown; None without Python.
        site: folders of site-packages, in import order.
        base: the folder of the interpreter that created a venv; None if the environment has its own interpreter.
        base_is_gone: whether a venv's interpreter no longer exists.
    """

    prefix: Path
    kind: str
    python: str | None
    site: tuple[Path, ...]
    base: Path | None = None
    base_is_gone: bool = False

    @property
    def conda_meta(self) -> Path:
        return self.prefix / "conda-meta"

    @property
    def name(self) -> str:
        return self.prefix.parent.name if self.prefix.name in (".venv", "venv", "env") else self.prefix.name


def place_at(prefix: str | os.PathLike[str] | None = None) -> EnvironmentPrefix:
    """Returns the environment in the folder `prefix`; None selects the running environment.

    Raises:
        ConfigError: there is no environment in the folder.
    """
    folder = Path(sys.prefix if prefix is None else prefix).absolute()
    if not folder.is_dir():
        raise ConfigError(f"there is no environment at {folder}: no such folder")
    settings = _settings(folder / "pyvenv.cfg")
    if settings:
        return _venv(folder, settings)
    if (folder / "conda-meta").is_dir():
        return EnvironmentPrefix(folder, "conda", _conda_python(folder), _site_of(folder))
    if folder.samefile(sys.prefix):
        return EnvironmentPrefix(folder, "system", platform.python_version(), _own_site())
    if any(folder.glob("bin/python3*")):
        return EnvironmentPrefix(folder, "system", _short(_site_of(folder)) or _by_program(folder), _site_of(folder))
    raise ConfigError(
        f"there is no environment at {folder}: it has no pyvenv.cfg, no conda-meta and no bin/python3; pass the folder "
        "that `python -c 'import sys; print(sys.prefix)'` prints"
    )


def is_conda_base(prefix: Path) -> bool:
    """Whether a folder is conda's base environment, on which other environments depend."""
    return (prefix / "condabin").is_dir() or (prefix / "envs").is_dir()


def platform_name() -> str:
    """Returns conda's name for this platform: ``linux-64``, ``linux-aarch64``."""
    machine = platform.machine()
    return "linux-" + {"x86_64": "64", "AMD64": "64"}.get(machine, machine)


def _venv(folder: Path, settings: dict[str, str]) -> EnvironmentPrefix:
    version = settings.get("version") or settings.get("version_info") or ""
    site = _site_of(folder)
    home = Path(settings["home"]) if settings.get("home") else None
    if settings.get("include-system-site-packages", "").lower() == "true" and home is not None:
        site += _site_of(home.parent)
    found = re.match(r"\d+\.\d+(\.\d+)?\w*", version)
    gone = home is not None and not any((folder / "bin" / name).exists() for name in ("python", "python3"))
    return EnvironmentPrefix(
        folder, "venv", found[0] if found else _short(site), site, home.parent if home else None, gone
    )


def _settings(file: Path) -> dict[str, str]:
    try:
        lines = _text_without_access_time(file).splitlines()
    except OSError:
        return {}
    pairs = (line.partition("=") for line in lines if "=" in line)
    return {name.strip().lower(): value.strip() for name, _, value in pairs}


def _text_without_access_time(file: Path) -> str:
    """Reads a file without changing its access time, which is the last use of the environment."""
    try:
        handle = os.open(file, os.O_RDONLY | os.O_NOATIME)
    except PermissionError:  # only the owner may use this flag
        return file.read_text(errors="replace")
    with open(handle, errors="replace") as opened:
        return opened.read()


def _conda_python(folder: Path) -> str | None:
    for file in sorted(folder.glob("conda-meta/python-[0-9]*.json")):
        found = re.match(r"python-(\d+\.\d+\.\d+\w*)-", file.name)
        if found:
            return found[1]
    return _short(_site_of(folder))


def _site_of(folder: Path) -> tuple[Path, ...]:
    """Returns lib/python3.X/site-packages and Debian's dist-packages, newest Python first."""
    libraries = [path for path in folder.glob("lib/python*.*") if _LIBRARY.search(path.name)]
    libraries.sort(key=lambda path: _numbers(path.name), reverse=True)
    found = [path / name for path in libraries for name in ("site-packages", "dist-packages")]
    found += [folder / "lib/python3/dist-packages"]
    return tuple(path for path in found if path.is_dir())


def _own_site() -> tuple[Path, ...]:
    paths = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *sys.path]
    found = [Path(path) for path in paths if path and path.endswith(("site-packages", "dist-packages"))]
    return tuple(dict.fromkeys(path for path in found if path.is_dir()))


def _short(site: tuple[Path, ...]) -> str | None:
    found = [".".join(map(str, _numbers(path.parent.name))) for path in site if _LIBRARY.search(path.parent.name)]
    return found[0] if found else None


def _by_program(folder: Path) -> str | None:
    found = [path.name.removeprefix("python") for path in folder.glob("bin/python3.*") if _LIBRARY.search(path.name)]
    return max(found, key=lambda version: _numbers(f"python{version}"), default=None)


def _numbers(name: str) -> tuple[int, int]:
    found = _LIBRARY.search(name)
    return (int(found[1]), int(found[2])) if found else (0, 0)
