# SPDX-License-Identifier: Apache-2.0
"""Writes a Dockerfile that contains the environment's locks. `printf` writes the locks, because here-documents require
BuildKit or Buildah 1.33.
"""

from __future__ import annotations

import re
import shlex

from ..locks.listing import Listing
from .conda_forms import explicit
from .pip_forms import all_hashed, requirements

# Pinned tags: `latest` changes over time.
_CONDA_BASE = "mambaorg/micromamba:2.0.5-debian12-slim"
_USER = "app"


def dockerfile(listing: Listing, name: str) -> str:
    """Returns the Dockerfile. The header shows the `docker run` options for GPUs and shared memory."""
    conda, pip = listing.of("conda"), listing.of("pip")
    flags = "--gpus all " if (listing.facts.get("torch") or {}).get("cuda") else ""
    lines = [
        f"# {name}: Python {listing.python}, {listing.platform}, fingerprint {listing.fingerprint}",
        f"# docker build -t {name} - < Dockerfile",
        "# Workers pass batches via /dev/shm, which has 64 MB in a container by default; 8888 is Jupyter's port.",
        f'# docker run --rm -it {flags}--shm-size 8g -v "$PWD":/work -p 8888:8888 {name}',
    ]
    lines += _of_conda(listing, name) if conda else [f"FROM python:{listing.python}-slim-bookworm"]
    if pip:
        lock = requirements(listing, name)
        hashed = "--require-hashes " if all_hashed(listing) else ""
        run = "micromamba run -n base pip" if conda else "pip"
        if conda and not any(pin.name == "pip" for pin in conda):
            channel = shlex.quote((listing.channels or ("conda-forge",))[0])
            lines.append(f"RUN micromamba install --yes --name base --channel {channel} --freeze-installed pip")
        lines += _with_lock(
            lock, "/tmp/requirements.txt", f"{run} install --no-cache-dir {hashed}--no-deps -r /tmp/requirements.txt"
        )
    if not conda:
        lines += [f"RUN useradd --create-home {_USER}", f"USER {_USER}"]
    return "\n".join([*lines, "WORKDIR /work", 'CMD ["python"]']) + "\n"


def _of_conda(listing: Listing, name: str) -> list[str]:
    return [
        f"FROM {_CONDA_BASE}",  # its user is mambauser, not root
        *_with_lock(
            explicit(listing, name),
            "/tmp/explicit.txt",
            "micromamba install --yes --name base --file /tmp/explicit.txt && micromamba clean --all --yes",
        ),
    ]


def _with_lock(lock: str, file: str, command: str) -> list[str]:
    """Returns one layer that writes the lock line by line and installs from it."""
    lines = re.sub(r" *\\\n *", " ", lock).splitlines()
    return [
        "RUN printf '%s\\n' \\",
        *(f"    {shlex.quote(line)} \\" for line in lines),
        f"    > {file} \\",
        f" && {command}",
    ]
