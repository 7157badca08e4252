# SPDX-License-Identifier: Apache-2.0
"""Creates a virtual environment for each peer of peers.toml; a failed installation is reported, not fatal."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_HERE = Path(__file__).resolve().parent
_PIP_S = 1800
_LAST_WORDS = 300  # maximum number of characters of a tool's last line in the reason


class NotInstalled(Exception):
    """A peer is not available on this machine; the message states the reason."""


@dataclass(frozen=True)
class Peer:
    name: str
    packages: tuple[str, ...]
    imports: tuple[str, ...]
    apt: tuple[str, ...] = ()


def peers(path: Path = _HERE / "peers.toml") -> dict[str, Peer]:
    tables = tomllib.loads(path.read_text())
    return {name: Peer(name, **{key: tuple(value) for key, value in table.items()}) for name, table in tables.items()}


def _run(command: list[str], log: Path, **options: Any) -> None:
    """Runs `command` with its output in `log`; raises NotInstalled with the tool's last line."""
    with log.open("a") as out:
        out.write(f"$ {' '.join(command)}\n")
        out.flush()
        try:
            done = subprocess.run(command, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, **options)
        except subprocess.TimeoutExpired as error:
            raise NotInstalled(f"{command[0]} took over {error.timeout:.0f} s; see {log}") from None
    if done.returncode != 0:
        lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
        said = [line for line in lines if line.lower().startswith("error")] or lines
        raise NotInstalled(f"{said[-1][-_LAST_WORDS:]} (complete output: {log})")


def _apt(peer: Peer, log: Path) -> None:
    if not peer.apt:
        return
    if shutil.which("dpkg-query") is None:
        return  # other distributions have other package names; there, the build reports missing files
    query = ["dpkg-query", "-W", "-f=${db:Status-Status}"]
    missing = [
        name
        for name in peer.apt
        if subprocess.run([*query, name], capture_output=True, text=True).stdout != "installed"
    ]
    if not missing:
        return
    if os.geteuid() != 0:
        raise NotInstalled(f"needs these packages: apt-get install {' '.join(missing)}")
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    _run(["apt-get", "-q", "update"], log, env=quiet)
    _run(["apt-get", "-q", "install", "-y", "--no-install-recommends", *missing], log, env=quiet)


def _imports(peer: Peer, python: Path, log: Path) -> None:
    _run([str(python), "-c", "\n".join(f"import {name}" for name in peer.imports)], log, timeout=120)


def _make(peer: Peer, folder: Path, log: Path) -> None:
    _apt(peer, log)
    _run([sys.executable, "-m", "venv", "--clear", str(folder / "venv")], log)
    python = folder / "venv" / "bin" / "python"
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "--prefer-binary", *peer.packages]
    _run(pip, log, timeout=_PIP_S)
    _imports(peer, python, log)


def ensure(peer: Peer, root: Path) -> Path:
    """Returns the peer's Python in `root`; creates its environment if it is missing or has other versions.

    Raises NotInstalled; the next call tries again. If two processes call it at the same time, one environment is
    created.
    """
    folder = root / peer.name
    stamp, log = folder / "installed", folder / "install.log"
    wanted = hashlib.sha256(repr(peer).encode()).hexdigest()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.read_text() != wanted:
            stamp.unlink(missing_ok=True)
            log.unlink(missing_ok=True)
            _make(peer, folder, log)
            stamp.write_text(wanted)
    return folder / "venv" / "bin" / "python"
