#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adds to a wheel the licences of the libraries that auditwheel is about to put into it.

bundle_notices.py WHEEL: asks the distribution which package each library comes from and stores that package's
copyright file in the wheel's licence folder. To run before `auditwheel repair`, which lists the new files in RECORD.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

# Left to the system by the manylinux policies, so never put into a wheel.
PLATFORM = re.compile(r"(linux-vdso|ld-linux[-\w]*|libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+|libz)\.so.*")


def needed_libraries(extension: Path) -> set[Path]:
    listed = subprocess.run(["ldd", extension], check=True, capture_output=True, text=True).stdout
    paths = {Path(found[1]) for found in re.finditer(r"=> (/\S+)", listed)}
    return {path for path in paths if not PLATFORM.fullmatch(path.name)}


def package_of(library: Path) -> str:
    # A package may own the file under /lib or under /usr/lib, which are one folder on a merged system.
    for path in (library, library.resolve(), Path("/usr") / library.relative_to("/")):
        found = subprocess.run(["dpkg-query", "-S", path], capture_output=True, text=True)
        if found.returncode == 0:
            return found.stdout.partition(":")[0]
    raise SystemExit(f"bundle_notices.py: no package owns {library}, so its licence is not known")


def main(wheel: Path) -> None:
    with zipfile.ZipFile(wheel, "a", zipfile.ZIP_DEFLATED) as archive, tempfile.TemporaryDirectory() as folder:
        names = archive.namelist()
        licences = next(name for name in names if name.endswith(".dist-info/WHEEL")).replace("/WHEEL", "/licenses/")
        libraries: set[Path] = set()
        for name in names:
            if ".so" in Path(name).suffixes:
                libraries |= needed_libraries(Path(archive.extract(name, folder)))
        # the C++ library's, which is linked into the module
        for package in sorted({"libstdc++6"} | {package_of(library) for library in libraries}):
            archive.write(f"/usr/share/doc/{package}/copyright", f"{licences}bundled/{package}.txt")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
