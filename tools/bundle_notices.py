#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adds to a wheel the licences of the libraries that auditwheel will include in it.

bundle_notices.py WHEEL [SYSTEM]: finds the distribution's package of each library, and stores that package's copyright
file in the wheel's licence folder. Run it before `auditwheel repair`, which lists the new files in RECORD. For a wheel
for another processor, SYSTEM is the root of a system with its libraries, created by tools/systems.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from elftools.elf.elffile import ELFFile

# Manylinux policies require these from the system, so a wheel never includes them.
PLATFORM = re.compile(r"(linux-vdso|ld-linux[-\w]*|libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+|libz)\.so.*")


def needed_libraries(extension: Path, system: Path | None = None) -> set[Path]:
    if system is not None:
        return needed_within(system, extension)
    listed = subprocess.run(["ldd", extension], check=True, capture_output=True, text=True).stdout
    paths = {Path(found[1]) for found in re.finditer(r"=> (/\S+)", listed)}
    return {path for path in paths if not PLATFORM.fullmatch(path.name)}


def needed_within(system: Path, extension: Path) -> set[Path]:
    """Returns what ldd would list, for a library for another processor."""
    found: set[Path] = set()
    to_see = [extension]
    while to_see:
        with to_see.pop().open("rb") as file:
            dynamic = ELFFile(file).get_section_by_name(".dynamic")
            names = [tag.needed for tag in dynamic.iter_tags("DT_NEEDED")]
        for name in names:
            if PLATFORM.fullmatch(name):
                continue
            places = sorted(system.glob(f"usr/lib/*-linux-gnu/{name}"))
            if not places:
                raise SystemExit(f"bundle_notices.py: {name} is not in {system}")
            if places[0] not in found:
                found.add(places[0])
                to_see.append(places[0])
    return found


def package_of(library: Path, system: Path | None = None) -> str:
    if system is not None:  # its packages are only unpacked, so dpkg knows only their lists of files
        inside = "/" + str(library.relative_to(system))
        for listing in sorted((system / "var/lib/dpkg/info").glob("*.list")):
            if {inside, inside.removeprefix("/usr")} & set(listing.read_text().splitlines()):
                return listing.name.partition(":")[0].removesuffix(".list")
        raise SystemExit(f"bundle_notices.py: no package in {system} contains {inside}, so its licence is unknown")
    # A package may own the file under /lib or under /usr/lib, which are one folder on a merged system.
    for path in (library, library.resolve(), Path("/usr") / library.relative_to("/")):
        found = subprocess.run(["dpkg-query", "-S", path], capture_output=True, text=True)
        if found.returncode == 0:
            return found.stdout.partition(":")[0]
    raise SystemExit(f"bundle_notices.py: no package owns {library}, so its licence is unknown")


def main(wheel: Path, system: Path | None = None) -> None:
    with zipfile.ZipFile(wheel, "a", zipfile.ZIP_DEFLATED) as archive, tempfile.TemporaryDirectory() as folder:
        names = archive.namelist()
        licences = next(name for name in names if name.endswith(".dist-info/WHEEL")).replace("/WHEEL", "/licenses/")
        libraries: set[Path] = set()
        for name in names:
            if ".so" in Path(name).suffixes:
                libraries |= needed_libraries(Path(archive.extract(name, folder)), system)
        # the libraries that are linked into the module statically
        for package in sorted({"libexpat1", "libstdc++6"} | {package_of(library, system) for library in libraries}):
            archive.write(
                (system or Path("/")) / f"usr/share/doc/{package}/copyright", f"{licences}bundled/{package}.txt"
            )


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
