# SPDX-License-Identifier: Apache-2.0
"""Reads a shared library's dynamic section and GPU architectures from its ELF headers."""

from __future__ import annotations

import mmap
import os
import struct
from dataclasses import dataclass

_DYNAMIC, _LOAD = 2, 1
_NEEDED, _STRTAB, _SONAME, _RPATH, _RUNPATH = 1, 5, 14, 15, 29
_FATBIN = b".nv_fatbin"
_FATBIN_MAGIC = 0xBA55ED50
_PTX, _SASS = 1, 2
_MOST_ENTRIES = 1 << 16  # limit for damaged files


@dataclass(frozen=True)
class Linking:
    """The dynamic section of a library. The loader searches `rpath` before LD_LIBRARY_PATH and `runpath` after it."""

    needed: tuple[str, ...] = ()
    soname: str = ""
    rpath: tuple[str, ...] = ()
    runpath: tuple[str, ...] = ()


@dataclass(frozen=True)
class Kernels:
    """The GPU architectures of a library, such as 90 for 9.0, for machine code and for PTX, which newer GPUs
    compile.
    """

    sass: frozenset[int]
    ptx: frozenset[int]

    def run_on(self, capability: int) -> bool:
        """Whether the library runs on a GPU. Machine code runs on later minor versions of its major version, PTX on all
        later GPUs.
        """
        return any(one // 10 == capability // 10 and one <= capability for one in self.sass) or any(
            one <= capability for one in self.ptx
        )


def linking_of(path: str | os.PathLike[str]) -> Linking | None:
    """Returns the dynamic section, or None if the file is unreadable, damaged, or not 64-bit little-endian ELF."""
    try:
        with open(path, "rb") as file:
            return _linking(file.fileno())
    except (OSError, ValueError, struct.error, IndexError):
        return None


def kernels_of(path: str | os.PathLike[str]) -> Kernels | None:
    """Returns the GPU architectures, or None if there are none or the file is unreadable. Reads only headers, because
    libraries may be very large.
    """
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            place = _section(data, _FATBIN)
            return None if place is None else _kernels(data, *place)
    except (OSError, ValueError, struct.error, IndexError):
        return None


def _linking(handle: int) -> Linking | None:
    with mmap.mmap(handle, 0, access=mmap.ACCESS_READ) as data:
        if data[:6] != b"\x7fELF\x02\x01":
            return None
        start, size, count = struct.unpack_from("<Q", data, 32)[0], *struct.unpack_from("<HH", data, 54)
        segments = [struct.unpack_from("<IIQQQQQQ", data, start + i * size) for i in range(count)]
        loads = [(at, offset, length) for kind, _, offset, at, _, length, _, _ in segments if kind == _LOAD]
        dynamic = next((one for one in segments if one[0] == _DYNAMIC), None)
        if dynamic is None:
            return Linking()
        entries = list(struct.iter_unpack("<QQ", data[dynamic[2] : dynamic[2] + dynamic[5] // 16 * 16]))
        address = next(value for tag, value in entries if tag == _STRTAB)
        strings = next(offset + address - at for at, offset, length in loads if at <= address < at + length)

        def texts(tag: int) -> list[str]:
            found = []
            for one, value in entries:
                if one == tag:
                    end = data.find(b"\0", strings + value)
                    found.append(data[strings + value : end].decode(errors="replace"))
            return found

        def paths(tag: int) -> tuple[str, ...]:
            return tuple(path for text in texts(tag) for path in text.split(":") if path)

        return Linking(tuple(texts(_NEEDED)), next(iter(texts(_SONAME)), ""), paths(_RPATH), paths(_RUNPATH))


def _section(data: mmap.mmap, name: bytes) -> tuple[int, int] | None:
    if data[:6] != b"\x7fELF\x02\x01":
        return None
    start = struct.unpack_from("<Q", data, 40)[0]
    size, count, names = struct.unpack_from("<HHH", data, 58)
    headers = [struct.unpack_from("<IIQQQQ", data, start + i * size) for i in range(count)]
    for header in headers:
        at = headers[names][4] + header[0]
        if data[at : at + len(name) + 1] == name + b"\0":
            return header[4], header[5]
    return None


def _kernels(data: mmap.mmap, start: int, length: int) -> Kernels:
    """Reads consecutive fat binaries. Each fat binary has a header and entries with a kind, header and payload sizes,
    and an architecture.
    """
    sass: set[int] = set()
    ptx: set[int] = set()
    at, end = start, start + length
    for _ in range(_MOST_ENTRIES):
        if at + 16 > end:
            break
        magic, _, header, size = struct.unpack_from("<IHHQ", data, at)
        if magic != _FATBIN_MAGIC:
            at += 8  # padding
            continue
        entry, last = at + header, min(at + header + size, end)
        while entry + 32 <= last:
            kind, _, header_size, payload = struct.unpack_from("<HHIQ", data, entry)
            architecture = struct.unpack_from("<I", data, entry + 28)[0]
            (ptx if kind == _PTX else sass if kind == _SASS else set()).add(architecture)
            if header_size + payload == 0:
                break
            entry += header_size + payload
        at = last + (-last % 8)
    return Kernels(frozenset(sass), frozenset(ptx))
