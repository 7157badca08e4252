# SPDX-License-Identifier: Apache-2.0
"""Provides a book in the public domain from a package of the distribution."""

from __future__ import annotations

import gzip
import subprocess
import tempfile
from pathlib import Path

_PACKAGE, _FILE = "dict-devil", "usr/share/dictd/devil.dict.dz"


def devils_dictionary() -> bytes:
    """Returns The Devil's Dictionary, by Ambrose Bierce; the package states "A Public Domain Text, Copyright Expired".

    If the package is not installed, it is downloaded and unpacked without installing it, which does not need root.

    Raises:
        RuntimeError: apt is not available, or does not find the package.
    """
    installed = Path("/", _FILE)
    if installed.exists():
        return gzip.decompress(installed.read_bytes())
    print(f"downloading {_PACKAGE} (180 kB) with apt-get; it is unpacked, not installed")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # apt's own user writes to this folder
        try:
            subprocess.run(["apt-get", "-q", "download", _PACKAGE], cwd=folder, check=True, capture_output=True)
            (package,) = Path(folder).glob("*.deb")
            subprocess.run(["dpkg-deb", "-x", package, folder], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError) as error:
            detail = getattr(error, "stderr", b"") or b""
            raise RuntimeError(
                f"cannot get {_PACKAGE} ({error}; {detail.decode(errors='replace').strip()}). "
                f"Run `apt-get update`, install {_PACKAGE}, or pass --text FILE"
            ) from error
        return gzip.decompress((Path(folder) / _FILE).read_bytes())
