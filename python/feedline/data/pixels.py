# SPDX-License-Identifier: Apache-2.0
"""Pixel datasets: images are decoded once, written to a file, and read without decoding."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Literal

from .. import _engine
from ..errors import ConfigError
from . import arguments
from .dataset import Dataset
from .sources import open

# Rows per batch of a pass run for its side effect: large enough to rarely wake Python, small enough for a progress bar.
_SAMPLES_AT_A_TIME = 256


def pack_pixels(
    dataset: Dataset,
    path: str | os.PathLike[str],
    *,
    num_workers: int | Literal["auto"] = "auto",
    spool: str | os.PathLike[str] | None = None,
    progress: Callable[[int], None] | None = None,
) -> Dataset:
    """Writes the uint8 pixels after ``dataset``'s operations to one file, which :func:`open` reads.

    ``pack_pixels(feedline.open("imagenet/train").resize(256), "train.pixels")`` stores every photo with a smaller edge
    of 256 pixels; a photo with an aspect ratio of 3:4 takes 262 KB. Apply random operations to the returned dataset.
    All other fields, keys, classes and the order of samples are unchanged. Pixels are read only from local files: for a
    bucket, ``dataset`` itself is returned, and ``feedline stage`` downloads the file.

    The file is named ``PATH.filling`` until it is complete. After an interruption, the next call resumes from this
    file.

    Args:
        dataset: a dataset of images, with operations that :meth:`Dataset.cache` supports.
        path: output file, in an existing folder; or ``s3://bucket/key``, ``gs://bucket/key``.
        spool: for a bucket, a local folder with space for the whole file, which is written there and then uploaded; by
            default the folder for temporary files. To resume, pass the same folder.
        num_workers: number of threads; ``"auto"`` uses one for each CPU that this process may use.
        progress: function that is called repeatedly with the number of finished samples.

    Raises:
        ConfigError: the dataset cannot be cached (see :meth:`Dataset.cache`), the folder does not exist, or the URL
            cannot be written.
        DataError: any field of a sample is damaged; ``PATH.filling`` contains the earlier samples.
        StorageError: the file cannot be written, for example because the disk is full or the bucket is not writable.
    """
    if not isinstance(dataset, Dataset):
        raise ConfigError(
            f"pack_pixels: dataset must be a feedline.Dataset, not {dataset!r}; create one with feedline.open()"
        )
    given = arguments.output_path("pack_pixels", "path", path, urls=True)
    if "://" not in given:
        return _fill(dataset, os.path.abspath(given), num_workers, progress)
    from ..machine.uploading import Uploads
    from ..machine.uploading import spool as spooled

    target_folder = _engine.ObjectFolder(given.rpartition("/")[0])
    name = given.removeprefix(target_folder.url + "/")
    target_folder.entries()  # detects a missing bucket before the work starts
    with spooled("pack_pixels", given, spool) as folder:
        made = folder / "pixels"
        _fill(dataset, str(made), num_workers, progress)
        with Uploads(target_folder) as uploads:
            uploads.begin([(made, name)]).result()
        made.unlink()
    return dataset


def _fill(
    dataset: Dataset, absolute: str, num_workers: int | Literal["auto"], progress: Callable[[int], None] | None
) -> Dataset:
    # The loader returns one pixel per image: only its cache matters, and image sizes may vary.
    passing = dataset.cache(absolute).center_crop(1).collate("list")
    with passing.loader(_SAMPLES_AT_A_TIME, num_workers=num_workers, output="numpy") as loader:
        done = 0
        cached = loader.stats()["cache"]
        for batch in loader if cached["present"] < cached["samples"] else ():
            done += len(batch[0])
            if progress is not None:
                progress(done)
    return open(absolute, format="pixels")
