# SPDX-License-Identifier: Apache-2.0
"""The wheel on an older system: FEEDLINE_OLD_SYSTEM names the root of one, FEEDLINE_OLD_PYTHON a Python >= 3.11 in it.

Such as Debian 11: `debootstrap bullseye FOLDER`, then Python of the sources of Debian 12's python3.11, compiled in it.
To enter it takes root. Not run without the two.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = os.environ.get("FEEDLINE_OLD_SYSTEM")
PYTHON = os.environ.get("FEEDLINE_OLD_PYTHON", "/usr/bin/python3")
WHEEL = os.environ.get("FEEDLINE_WHEEL")

# Prints a digest of an epoch, which draws, decodes, resizes, changes colours and normalizes, in two threads.
EPOCH = """
import hashlib, sys
sys.path.insert(0, sys.argv[1])
import feedline
data = feedline.open(sys.argv[2]).random_resized_crop(64).color_jitter(0.4, 0.4, 0.4, 0.1)
data = data.normalize(feedline.IMAGENET_MEAN, feedline.IMAGENET_STD)
digest = hashlib.sha256()
with data.loader(8, shuffle=True, seed=0, output="numpy", num_workers=2) as loader:
    for batch in loader:
        digest.update(batch.image.tobytes() + batch.label.tobytes())
print(loader.stats()["samples"], digest.hexdigest())
"""


def epoch_of(command: list[str], site: str, photos: str) -> str:
    return subprocess.run([*command, "-c", EPOCH, site, photos], check=True, capture_output=True, text=True).stdout


@pytest.mark.skipif(ROOT is None or WHEEL is None, reason="FEEDLINE_OLD_SYSTEM or FEEDLINE_WHEEL names none")
def test_the_wheel_gives_the_same_batches_on_an_older_system(tmp_path: Path) -> None:
    from feedline.demo import pictures

    assert ROOT is not None and WHEEL is not None
    inside = Path(ROOT) / "opt" / "feedline-test"
    shutil.rmtree(inside, ignore_errors=True)
    try:
        pictures.make(inside / "photos", 24)
        platforms = ("manylinux_2_28_x86_64", "manylinux_2_27_x86_64", "manylinux2014_x86_64")
        options = [word for name in platforms for word in ("--platform", name)]
        install = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "-q",
            "--only-binary=:all:",
            "--target",
            str(inside / "site"),
        ]
        subprocess.run([*install, *options, "--python-version", "3.11", WHEEL], check=True)
        there = epoch_of(["chroot", ROOT, PYTHON], "/opt/feedline-test/site", "/opt/feedline-test/photos")
        here = epoch_of([sys.executable], str(inside / "site"), str(inside / "photos"))
        assert there == here and there.startswith("24 ")
    finally:
        shutil.rmtree(inside, ignore_errors=True)
