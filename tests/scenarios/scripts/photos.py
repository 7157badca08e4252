# SPDX-License-Identifier: Apache-2.0
"""A folder of photos for Feedline's own loaders. It stays: experiments read it after the script has ended."""

import os
import shutil
import tempfile
from pathlib import Path

from work import jpeg

import feedline.testing


def photos(count, side):
    """A folder of two classes with `count` JPEG files of `side` pixels squared in all."""
    folder = Path(tempfile.gettempdir(), f"feedline-scenario-photos-{count}-{side}")
    if not folder.exists():
        unfinished, encoded = tempfile.mkdtemp(), jpeg(side)
        for number in range(count):
            path = Path(unfinished, f"class{number % 2}", f"{number}.jpg")
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(encoded)
        try:
            os.rename(unfinished, folder)
        except OSError:  # another run was quicker
            shutil.rmtree(unfinished)
    return str(folder)


def slow_storage(ms):
    """Delays every read of Feedline's engine. Before the first loader is created."""
    feedline.testing.force(read_latency=ms / 1000)
