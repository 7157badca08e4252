# SPDX-License-Identifier: Apache-2.0
"""Datasets of pixels: decoded once, written to a file, read without decoding."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Literal

from .. import _engine
from ..errors import ConfigError
from . import arguments
from .dataset import Dataset
from .sources import open

# Rows of a pass that is for its side effect alone. Enough that Python is woken rarely, few enough for a progress bar.
_SAMPLES_AT_A_TIME = 256


def pack_pixels(
    dataset: Dataset,
    path: str | os.PathLike[str],
    *,
    num_workers: int | Literal["auto"] = "auto",
    spool: str | os.PathLike[str] | None = None,
    progress: Callable[[int], None] | None = None,
) -> Dataset:
    """Writes the uint8 pixels that ``dataset``'s operations give to one file, which :func:`open` reads again.

    ``pack_pixels(feedline.open("imagenet/train").resize(256), "train.pixels")`` keeps every photo with a smaller edge
    of 256 pixels: 262 KB for 3:4. Random operations then go to the dataset that is returned. All other fields, keys
    and classes are kept; the samples and their order are ``dataset``'s. Pixels are read from local files: of a bucket
    ``dataset`` is returned as it is, and ``feedline stage`` copies the file to where it can be opened.

    The file is ``PATH.filling`` until it is complete. A call that was interrupted, or killed, goes on there.

    Args:
        dataset: images, with operations that :meth:`Dataset.cache` takes.
        path: of the file, in a folder that is there; or ``s3://bucket/key``, ``gs://bucket/key``.
        spool: for a bucket: a local folder with room for the whole file, which is filled there and then sent; by
            default that for temporary files. A call that goes on has to find it again.
        num_workers: threads; ``"auto"`` is the CPUs that this process may use.
        progress: is told how many samples are done, now and then.

    Raises:
        ConfigError: see :meth:`Dataset.cache`; a folder that does not exist, or a URL that is not written to.
        DataError: a sample is damaged, in any of its fields; those before it are in ``PATH.filling``.
        StorageError: the file cannot be written, such as when the disk is full or the keys may not write to the bucket.
    """
    if not isinstance(dataset, Dataset):
        raise ConfigError(
            f"pack_pixels: dataset must be a feedline.Dataset, not {dataset!r}; feedline.open() gives one"
        )
    given = arguments.output_path("pack_pixels", "path", path, urls=True)
    if "://" not in given:
        return _fill(dataset, os.path.abspath(given), num_workers, progress)
    from ..machine.uploading import Uploads
    from ..machine.uploading import spool as spooled

    place = _engine.StoredPlace(given.rpartition("/")[0])
    name = given.removeprefix(place.url + "/")
    place.entries()  # a bucket that is not there is found before the work
    with spooled("pack_pixels", given, spool) as folder:
        made = folder / "pixels"
        _fill(dataset, str(made), num_workers, progress)
        with Uploads(place) as uploads:
            uploads.begin([(made, name)]).result()
        made.unlink()
    return dataset


def _fill(
    dataset: Dataset, absolute: str, num_workers: int | Literal["auto"], progress: Callable[[int], None] | None
) -> Dataset:
    # one pixel of each image: what matters is that the loader keeps the rest, whatever sizes there are
    passing = dataset.cache(absolute).center_crop(1).collate("list")
    with passing.loader(_SAMPLES_AT_A_TIME, num_workers=num_workers, output="numpy") as loader:
        done = 0
        kept = loader.stats()["cache"]
        for batch in loader if kept["present"] < kept["samples"] else ():
            done += len(batch[0])
            if progress is not None:
                progress(done)
    return open(absolute, format="pixels")
