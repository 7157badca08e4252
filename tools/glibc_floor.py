#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Creates copies of a wheel's libraries that can be loaded with glibc 2.28: glibc_floor.py WHEEL FOLDER [SYSTEM].

A distribution's library requires function versions of the glibc that it was linked with, such as `pow` from 2.29 and
`pthread_create` from 2.34. glibc still has the first versions of both, with the same behaviour; the copies require
these. If a library requires any other function after 2.28, nothing is copied, and an error names it.
`auditwheel repair` uses the copies if FOLDER is first in its library search path. SYSTEM: as in bundle_notices.py.
"""

from __future__ import annotations

import struct
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from bundle_notices import needed_libraries
from elftools.elf.elffile import ELFFile

FLOOR = (2, 28)
# the first version of glibc for each processor
FIRST = {"EM_X86_64": b"GLIBC_2.2.5", "EM_AARCH64": b"GLIBC_2.17"}
KEPT = {"exp", "log", "pow", "pthread_create", "pthread_detach", "pthread_join"}  # also in that version
AUXILIARY = "<IHHII"  # Elf64_Vernaux: hash, flags, other, name, next


def elf_hash(name: bytes) -> int:
    value = 0
    for byte in name:
        value = (value << 4) + byte
        high = value & 0xF0000000
        value = (value ^ high >> 24) & ~high
    return value


def version_of(name: str) -> tuple[int, ...]:
    return tuple(map(int, name.removeprefix("GLIBC_").split(".")))


def later_versions(elf: ELFFile) -> Iterator[tuple[int, int, str]]:
    """Returns (offset in the file, number, name) for each required glibc version after 2.28."""
    needs = elf.get_section_by_name(".gnu.version_r")
    if needs is None:
        return
    offset = needs["sh_offset"]
    for need, versions in needs.iter_versions():
        at = offset + need["vn_aux"]
        for version in versions:
            if version.name.startswith("GLIBC_2") and version_of(version.name) > FLOOR:
                yield at, version["vna_other"], version.name
            at += version["vna_next"]
        offset += need["vn_next"]


def asked_under(elf: ELFFile, number: int) -> set[str]:
    """Returns the functions that are required in the version with this number."""
    symbols = list(elf.get_section_by_name(".dynsym").iter_symbols())
    numbers = elf.get_section_by_name(".gnu.version").iter_symbols()
    return {symbol.name for symbol, entry in zip(symbols, numbers, strict=True) if entry["ndx"] == number}


def lowered(path: Path) -> bytes | None:
    """Returns the library's bytes with requirements after 2.28 replaced; None if it has none."""
    with path.open("rb") as file:
        elf = ELFFile(file)
        later = list(later_versions(elf))
        if not later:
            return None
        first = FIRST[elf.header.e_machine]
        strings = elf.get_section_by_name(".dynstr").data()
        name = strings.find(b"\0" + first + b"\0") + 1
        if name == 0:
            raise SystemExit(f"glibc_floor.py: {path.name} requires nothing of {first.decode()}")
        content = bytearray(path.read_bytes())
        for at, number, version in later:
            unknown = asked_under(elf, number) - KEPT
            if unknown:
                raise SystemExit(f"glibc_floor.py: {path.name} requires {', '.join(sorted(unknown))} of {version}")
            _, flags, other, _, following = struct.unpack_from(AUXILIARY, content, at)
            struct.pack_into(AUXILIARY, content, at, elf_hash(first), flags, other, name, following)
        return bytes(content)


def main(wheel: Path, folder: Path, system: Path | None = None) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as unpacked:
        modules = [name for name in archive.namelist() if ".so" in Path(name).suffixes]
        extracted = [Path(archive.extract(name, unpacked)) for name in modules]
        libraries = {path for module in extracted for path in needed_libraries(module, system)}
        for path in sorted(libraries):
            content = lowered(path)
            if content is not None:
                (folder / path.name).write_bytes(content)
                (folder / path.name).chmod(0o755)
                print(f"{path.name}: now requires glibc's first version")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
