# SPDX-License-Identifier: Apache-2.0
"""TurboLoader. Variants: tar, tar-antialias (regions from one tar), raw-256 (squashed to 256 x 256 once, then crops).
Its thread pool has one thread per CPU, which cannot be changed: on two CPUs, two threads, like all other loaders.
"""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import turboloader
from work import SHORTER, SIZE, Work, refuse

DISTRIBUTIONS = ("turboloader", "numpy")


def _tar(work: Work) -> Path:
    return work.made_file(f"{Path(work.folder).name}.tar")


def _raw(work: Work) -> Path:
    return work.made_file(f"{Path(work.folder).name}-{SHORTER}.tbl")


def prepare(work: Work) -> None:
    if not _tar(work).exists():
        part = _tar(work).with_suffix(".part")
        with tarfile.open(part, "w", format=tarfile.USTAR_FORMAT) as tar:
            for path in work.files()[0]:
                data = Path(path).read_bytes()  # tar.add would write no data for the second hard link to a file
                entry = tarfile.TarInfo(str(Path(path).relative_to(work.folder)))
                entry.size = len(data)
                tar.addfile(entry, io.BytesIO(data))
        os.replace(part, _tar(work))
    if work.variant == "raw-256" and not _raw(work).exists():
        part = _raw(work).with_name(f"part-{_raw(work).name}")
        turboloader.preprocess_to_tbl(str(_tar(work)), str(part), image_size=SHORTER)
        os.replace(part, _raw(work))


def make(work: Work) -> Any:
    refuse(not work.floating, "returns only float32 and float16")
    loader = turboloader.DataLoader(
        str(_raw(work) if work.variant == "raw-256" else _tar(work)),
        batch_size=work.batch,
        num_workers=work.threads,
        shuffle=work.train,
        transform=turboloader.ImageNetNormalize(),
        image_size=SIZE,
        output_format="pytorch",
        drop_last=True,
        train_aug=work.train,
        antialias=work.variant == "tar-antialias",
    )
    passed = iter(range(1 << 30))

    def epoch() -> Iterator[Any]:
        loader.set_epoch(next(passed))
        for images, _about in loader:
            yield images

    return epoch
