# SPDX-License-Identifier: Apache-2.0
"""Environments generated file by file, as venv, pip and conda create them, without running these tools."""

from __future__ import annotations

import base64
import hashlib
import json
import struct
from pathlib import Path
from typing import Any

Contents = dict[str, bytes]


class Environment:
    """A prefix in which projects and conda packages are installed."""

    def __init__(self, prefix: Path, kind: str = "venv", python: str = "3.11.7") -> None:
        self.prefix = prefix
        self.site = prefix / f"lib/python{'.'.join(python.split('.')[:2])}/site-packages"
        self.site.mkdir(parents=True)
        (prefix / "bin").mkdir()
        (prefix / "bin/python3").write_bytes(b"")
        if kind == "venv":
            (prefix / "pyvenv.cfg").write_text(f"home = /usr/bin\nversion = {python}\n")
        if kind == "conda":
            self.conda("python", python, build="h0_cpython", files={"bin/python3.11": b"ELF"})

    def project(
        self,
        name: str,
        version: str = "1.0",
        *,
        files: Contents | None = None,
        requires: tuple[str, ...] = (),
        tag: str = "py3-none-any",
        installer: str = "pip",
        origin: dict[str, Any] | None = None,
    ) -> Path:
        """Installs a project like pip; returns its dist-info folder."""
        files = {f"{name}/__init__.py": f"# {name} {version}\n".encode()} if files is None else files
        info = self.site / f"{name}-{version}.dist-info"
        needs = "".join(f"Requires-Dist: {line}\n" for line in requires)
        own = {
            "METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}\nText: no header\n",
            "WHEEL": f"Wheel-Version: 1.0\nTag: {tag}\n",
            "INSTALLER": f"{installer}\n",
        }
        if origin is not None:
            own["direct_url.json"] = json.dumps(origin)
        all_files = {**files, **{f"{info.name}/{part}": text.encode() for part, text in own.items()}}
        lines = []
        for path, content in all_files.items():
            write(self.site / path, content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            lines.append(f"{path},sha256={digest},{len(content)}")
        write(info / "RECORD", ("\n".join([*lines, f"{info.name}/RECORD,,"]) + "\n").encode())
        return info

    def conda(
        self,
        name: str,
        version: str = "1.0",
        *,
        build: str = "h1_0",
        channel: str = "conda-forge",
        files: Contents | None = None,
        depends: tuple[str, ...] = (),
        noarch: bool = False,
    ) -> Path:
        """Installs a package like conda; returns its file in conda-meta.

        `noarch`: for any Python. conda's `paths_data` contains its paths in the archive, `files` those in the
        environment.
        """
        site = f"{self.site.relative_to(self.prefix)}/"
        files = {f"share/{name}.txt": f"{name} {version}".encode()} if files is None else files
        paths = []
        for path, content in files.items():
            write(self.prefix / path, content)
            digest = hashlib.sha256(content).hexdigest()
            told = f"site-packages/{path.removeprefix(site)}" if noarch and path.startswith(site) else path
            paths.append({"_path": told, "path_type": "hardlink", "sha256": digest, "size_in_bytes": len(content)})
        file = f"{name}-{version}-{build}"
        folder = f"https://conda.anaconda.org/{channel}/linux-64"
        meta = {
            "name": name,
            "version": version,
            "build": build,
            "build_number": 0,
            "channel": folder,
            "subdir": "linux-64",
            "url": f"{folder}/{file}.conda",
            "sha256": hashlib.sha256(file.encode()).hexdigest(),
            "depends": list(depends),
            "files": list(files),
            "paths_data": {"paths_version": 1, "paths": paths},
        }
        if noarch:
            meta["noarch"] = "python"
        write(self.prefix / f"conda-meta/{file}.json", json.dumps(meta).encode())
        return self.prefix / f"conda-meta/{file}.json"

    def conda_project(
        self, name: str, version: str, *, depends: tuple[str, ...] = (), requires: str = "", noarch: bool = False
    ) -> Path:
        """Installs a Python package like conda, with its dist-info; returns its file in conda-meta."""
        site = str(self.site.relative_to(self.prefix))
        info = f"{site}/{name}-{version}.dist-info"
        files = {
            f"{site}/{name}/__init__.py": f"# {name} {version}, by conda\n".encode(),
            f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requires}".encode(),
            f"{info}/INSTALLER": b"conda\n",
            f"{info}/RECORD": f"{name}/__init__.py,,\n".encode(),
        }
        needs = ("python >=3.11,<3.12.0a0", *depends)
        return self.conda(name, version, build="py311_0", files=files, depends=needs, noarch=noarch)

    def torch(
        self, version: str = "2.9.0+cu128", *, cuda: str | None = "12.8", library: bytes = b"", headers: str = ""
    ) -> None:
        """torch, with the files from which its build is determined."""
        text = f"__version__ = '{version}'\ndebug = False\ncuda: Optional[str] = {cuda!r}\nhip: Optional[str] = None\n"
        files = {"torch/__init__.py": b"", "torch/version.py": text.encode()}
        if library:
            files["torch/lib/libtorch_cuda.so"] = library
        if headers:
            files["torch/include/ATen/cuda/CUDAConfig.h"] = headers.encode()
        self.project("torch", version, files=files, tag="cp311-cp311-linux_x86_64")


def write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def elf(
    *,
    needed: tuple[str, ...] = (),
    soname: str = "",
    rpath: str = "",
    runpath: str = "",
    sass: tuple[int, ...] = (),
    ptx: tuple[int, ...] = (),
) -> bytes:
    """A shared library that consists only of headers: the libraries that it is linked with, and empty kernels for these
    GPUs.
    """
    strings = bytearray(b"\0")

    def text(value: str) -> int:
        strings.extend(value.encode() + b"\0")
        return len(strings) - len(value) - 1

    entries = [(1, text(name)) for name in needed]
    entries += [(tag, text(value)) for tag, value in ((14, soname), (15, rpath), (29, runpath)) if value]
    names = b"\0.nv_fatbin\0.shstrtab\0"
    dynamic_at = 64 + 2 * 56
    strings_at = dynamic_at + 16 * (len(entries) + 2)
    fatbin_at = strings_at + len(strings) + -(strings_at + len(strings)) % 8
    payloads = b"".join(_entry(2, one) for one in sass) + b"".join(_entry(1, one) for one in ptx)
    fatbin = struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(payloads)) + payloads if payloads else b""
    names_at = fatbin_at + len(fatbin)
    sections_at = names_at + len(names) + -(names_at + len(names)) % 8
    head = b"\x7fELF\x02\x01\x01" + bytes(9)
    head += struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, sections_at, 0, 64, 56, 2, 64, 3, 2)
    size = fatbin_at
    head += struct.pack("<IIQQQQQQ", 1, 5, 0, 0x1000, 0x1000, size, size, 4096)
    head += struct.pack("<IIQQQQQQ", 2, 6, dynamic_at, 0, 0, strings_at - dynamic_at, strings_at - dynamic_at, 8)
    dynamic = b"".join(struct.pack("<QQ", *one) for one in [*entries, (5, 0x1000 + strings_at), (0, 0)])
    data = (head + dynamic + bytes(strings)).ljust(fatbin_at, b"\0") + fatbin + names
    sections = bytes(64)
    sections += struct.pack("<IIQQQQIIQQ", 1, 1, 0, 0, fatbin_at, len(fatbin), 0, 0, 8, 0)
    sections += struct.pack("<IIQQQQIIQQ", 12, 3, 0, 0, names_at, len(names), 0, 0, 1, 0)
    return data.ljust(sections_at, b"\0") + sections


def _entry(kind: int, architecture: int) -> bytes:
    head = struct.pack("<HHIQIIHHI", kind, 0x101, 64, 24, 0, 0, 0, 1, architecture)
    return head.ljust(64, b"\0") + b"compressed, as it may be"
