# SPDX-License-Identifier: Apache-2.0
"""Generated wheels and a conda channel of a few kB; nothing is downloaded."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import http.server
import io
import json
import os
import platform
import sys
import tarfile
import threading
import time
import zipfile
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from feedline.env.reading.place import platform_name


def wheel(folder: Path, name: str, version: str, *, code: str = "", requires: tuple[str, ...] = ()) -> Path:
    """A wheel with one module, and a script whose first line will contain the environment's path."""
    info = f"{name}-{version}.dist-info"
    needs = "".join(f"Requires-Dist: {line}\n" for line in requires)
    files = {
        f"{name}/__init__.py": f"# {version}\n{code}\n\n\ndef main():\n    print({version!r})\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[console_scripts]\n{name}-run = {name}:main\n",
    }
    lines = []
    for path, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        lines.append(f"{path},sha256={digest},{len(text.encode())}")
    files[f"{info}/RECORD"] = "\n".join([*lines, f"{info}/RECORD,,"]) + "\n"
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(made, "w") as archive:
        for path, text in files.items():
            archive.writestr(zipfile.ZipInfo(path), text)
    return made


@contextlib.contextmanager
def serving(folder: Path, index_s: float = 0.0) -> Iterator[tuple[str, list[str]]]:
    """Serves a folder over HTTP, with indexes that take this long; yields the URL, and the paths requested so far."""
    requested: list[str] = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            requested.append(self.path)
            if self.path.endswith("/repodata.json"):
                time.sleep(index_s)
            super().do_GET()

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", requested
        server.shutdown()


class Channel:
    """A conda channel in a folder: packages, and the repodata.json that lists them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._packages: dict[str, dict[str, dict[str, Any]]] = {platform_name(): {}, "noarch": {}}

    @property
    def url(self) -> str:
        return self.folder.as_uri()

    def add(
        self, name: str, version: str, *, build: str = "h1_0", depends: tuple[str, ...] = (), text: str = ""
    ) -> None:
        """A package with one file, and one that contains the prefix."""
        content = (text or f"{name} {version} {build}\n").encode()
        holder = b"/opt/placeholder_for_the_prefix"
        script = b"#!/bin/sh\n# " + holder + b"\n"
        index = {"name": name, "version": version, "build": build, "build_number": 0, "depends": list(depends)}
        index["subdir"] = platform_name()
        paths = [
            {"_path": f"share/{name}.txt", **_told(content)},
            {"_path": f"bin/{name}-run", **_told(script), "file_mode": "text", "prefix_placeholder": holder.decode()},
        ]
        files = {
            f"share/{name}.txt": content,
            f"bin/{name}-run": script,
            "info/index.json": json.dumps(index).encode(),
            "info/paths.json": json.dumps({"paths": paths, "paths_version": 1}).encode(),
        }
        self._write(f"{name}-{version}-{build}.tar.bz2", _archive(files), index)

    def add_python(self) -> str:
        """The running interpreter as a package: a link to it, and the file that makes the folder its prefix."""
        version = platform.python_version()
        base = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
        files: dict[str, bytes | str] = {
            "pyvenv.cfg": f"home = {os.path.dirname(base)}\nversion = {version}\n".encode()
        }
        files |= {f"bin/{name}": base for name in ("python", "python3")}
        files[f"lib/python{'.'.join(version.split('.')[:2])}/site-packages/made.txt"] = b""
        self._pack("python", version, "h0_made", (), files)
        return version

    def _pack(
        self, name: str, version: str, build: str, depends: tuple[str, ...], files: dict[str, bytes | str]
    ) -> None:
        """`files`: contents, or the target of a link."""
        index = {"name": name, "version": version, "build": build, "build_number": 0, "depends": list(depends)}
        index["subdir"] = platform_name()
        paths = [
            {"_path": path, **_told(content)}
            if isinstance(content, bytes)
            else {"_path": path, "path_type": "softlink"}
            for path, content in files.items()
        ]
        whole = files | {
            "info/index.json": json.dumps(index).encode(),
            "info/paths.json": json.dumps({"paths": paths, "paths_version": 1}).encode(),
        }
        self._write(f"{name}-{version}-{build}.tar.bz2", _archive(whole), index)

    def _write(self, file: str, data: bytes, index: dict[str, Any]) -> None:
        subdir = platform_name()
        (self.folder / subdir).mkdir(parents=True, exist_ok=True)
        (self.folder / subdir / file).write_bytes(data)
        digests = {"sha256": hashlib.sha256(data).hexdigest(), "md5": hashlib.md5(data).hexdigest(), "size": len(data)}
        self._packages[subdir][file] = {**index, **digests}
        for name, packages in self._packages.items():
            (self.folder / name).mkdir(exist_ok=True)
            document = {"info": {"subdir": name}, "packages": packages, "packages.conda": {}, "repodata_version": 1}
            (self.folder / name / "repodata.json").write_text(json.dumps(document))


def _archive(files: Mapping[str, bytes | str]) -> bytes:
    """`files`: contents, or the target of a link."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:bz2") as archive:
        for path, content in files.items():
            member = tarfile.TarInfo(path)
            if isinstance(content, bytes):
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
            else:
                member.type, member.linkname = tarfile.SYMTYPE, content
                archive.addfile(member)
    return made.getvalue()


def _told(content: bytes) -> dict[str, Any]:
    return {"path_type": "hardlink", "sha256": hashlib.sha256(content).hexdigest(), "size_in_bytes": len(content)}
