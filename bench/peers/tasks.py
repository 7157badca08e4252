# SPDX-License-Identifier: Apache-2.0
"""The tasks, the loaders of each task, and differences that limit comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

OWN = ""  # environment: the one with Feedline


@dataclass(frozen=True)
class Loader:
    """One loader in one configuration. `note` describes its differences from Feedline in exact mode."""

    name: str
    environment: str
    adapter: str
    variant: str = ""
    note: str = ""

    @property
    def ours(self) -> bool:
        return self.adapter == "feedline" or (self.adapter == "sequences" and self.variant.endswith("feedline"))


@dataclass(frozen=True)
class Task:
    name: str
    title: str
    unit: str  # the unit counted per second
    loaders: tuple[Loader, ...]
    limits: tuple[str, ...] = ()  # names in limits.py, with the same unit
    transform: str = "train"
    dtype: str = "float32"
    data: str = "photos"  # or "large", "few"
    batch: int = 64
    epochs: int = 2
    quick_epochs: int = 1
    step_s: float = 0.0


_AREA = "downscales by area"
_NO_ANTIALIAS = "no antialiasing"
_WHOLE = "decodes whole photos"

FEEDLINE = Loader("Feedline", OWN, "feedline", "folder")
FEEDLINE_TAR = Loader("Feedline, tar", OWN, "feedline", "tar", "index present")
FEEDLINE_NUMPY = Loader("Feedline, NumPy", OWN, "feedline", "numpy", "torch is not imported")
FEEDLINE_FAST = Loader("Feedline, fast", OWN, "feedline", "fast", "DCT scaling: pixels differ from Pillow's")
FEEDLINE_CACHED = Loader("Feedline, cached", OWN, "feedline", "cached", "pixels at full size")
FEEDLINE_CACHED_256 = Loader("Feedline, cached 256", OWN, "feedline", "cached-256", "shorter side 256")

STOCK = Loader("DataLoader + Pillow", "stock", "stock", "pillow")
DALI = Loader("DALI fused", "dali", "dali", "fused")
DALI_PLAIN = Loader("DALI fused, no antialias", "dali", "dali", "fused-no-antialias", _NO_ANTIALIAS)
DALI_FULL = Loader("DALI", "dali", "dali", "full", _WHOLE)
TFDATA = Loader("tf.data fused", "tfdata", "tfdata", "fused", _NO_ANTIALIAS)
TFDATA_FULL = Loader("tf.data", "tfdata", "tfdata", "full", _NO_ANTIALIAS)
FFCV = Loader("FFCV", "ffcv", "ffcv", "jpg", f"{_WHOLE}, {_AREA}, re-encoded at quality 96")
FFCV_VALIDATE = replace(FFCV, note=f"{FFCV.note}; crops 224/256 of the shorter side, then resizes")
FFCV_RAW = Loader("FFCV raw", "ffcv", "ffcv", "raw", f"pixels at full size; {_AREA}")
TURBO = Loader("TurboLoader", "turboloader", "turboloader", "tar", f"one tar, no labels; {_NO_ANTIALIAS}")
TURBO_LARGE = replace(TURBO, note=f"{TURBO.note}; uses DCT scaling automatically")
TURBO_ANTIALIAS = Loader("TurboLoader antialias", "turboloader", "turboloader", "tar-antialias", "one tar, no labels")
TURBO_RAW = Loader("TurboLoader raw 256", "turboloader", "turboloader", "raw-256", "squashed to 256 x 256; no labels")
GRAIN = Loader("Grain threads", "grain", "grain", "threads", "Pillow; normalises in NumPy")
WEBDATASET = Loader("WebDataset", "webdataset", "webdataset", "tar", "Pillow; shuffles in a buffer of 1,000")
SPDL = Loader("SPDL", "spdl", "spdl", "ffmpeg", f"FFmpeg {_WHOLE}, other chroma; normalises in NumPy")
DATAGO = Loader("datago", "datago", "datago", "file", "square of the shorter side to 224; batches and floats by NumPy")


def _sequence(what: str) -> tuple[Loader, ...]:
    return (
        Loader("Feedline", OWN, "sequences", f"{what}-feedline"),
        Loader("DataLoader", OWN, "sequences", f"{what}-stock"),
        Loader("NumPy by hand", OWN, "sequences", f"{what}-numpy"),
    )


TASKS = (
    Task(
        "float32",
        "ImageNet-sized JPEG, random_resized_crop 224, flip, float32 normalised",
        "images",
        (
            *(FEEDLINE, FEEDLINE_TAR, FEEDLINE_NUMPY, STOCK, DALI, DALI_PLAIN, TFDATA, FFCV, TURBO, TURBO_ANTIALIAS),
            *(GRAIN, WEBDATASET, SPDL),
        ),
        limits=("regions, 1 thread", "regions, 2 threads"),
    ),
    Task(
        "uint8",
        "ImageNet-sized JPEG, random_resized_crop 224, flip, uint8",
        "images",
        (FEEDLINE, STOCK, DALI, DALI_PLAIN, TFDATA, FFCV, GRAIN, WEBDATASET, SPDL),
        limits=("regions, 2 threads",),
        dtype="uint8",
    ),
    Task(
        "validate",
        "ImageNet-sized JPEG, resize 256, centre crop 224, float32 normalised",
        "images",
        (FEEDLINE, STOCK, DALI_FULL, TFDATA_FULL, FFCV_VALIDATE, SPDL, DATAGO),
        transform="validate",
    ),
    Task(
        "large",
        "photos of 1,920 to 2,048 pixels, random_resized_crop 224, flip, float32 normalised",
        "images",
        (FEEDLINE, FEEDLINE_FAST, STOCK, DALI, TFDATA, TURBO_LARGE, SPDL),
        limits=("regions, 1 thread", "regions, 2 threads"),
        data="large",
        batch=50,
        epochs=1,
    ),
    Task(
        "raw_float32",
        "pixels decoded once, random_resized_crop 224, flip, float32 normalised",
        "images",
        (FEEDLINE_CACHED, FEEDLINE_CACHED_256, FFCV_RAW, TURBO_RAW),
    ),
    Task(
        "raw_uint8",
        "pixels decoded once, random_resized_crop 224, flip, uint8",
        "images",
        (FEEDLINE_CACHED, FFCV_RAW),
        dtype="uint8",
    ),
    Task(
        "gap",
        "400 photos, a training step of 150 ms: from an epoch's last step to the next epoch's first batch",
        "images",
        (FEEDLINE, STOCK),
        data="few",
        epochs=4,
        quick_epochs=4,
        step_s=0.15,
    ),
    Task(
        "rows",
        "200,000 rows of 16 floats, batch 256, shuffled",
        "rows",
        _sequence("rows"),
        limits=("gather of rows, 1 thread",),
        transform="rows",
        batch=256,
        epochs=10,
        quick_epochs=10,
    ),
    Task(
        "tokens",
        "windows of 1,024 tokens out of 50,000,000, batch 32, shuffled",
        "windows",
        _sequence("tokens"),
        limits=("widening copy, 1 thread", "memcpy of the windows, 1 thread"),
        transform="tokens",
        batch=32,
        epochs=3,
        quick_epochs=3,
    ),
    Task(
        "decoder",
        "region decode, one thread: speed of our decoder relative to libjpeg-turbo's",
        "times",
        (),
        limits=("photos, standard", "photos, optimised", "large, standard", "large, optimised"),
    ),
)


def chosen(names: Sequence[str], tasks: Sequence[Task] = TASKS) -> list[Task]:
    """Returns the tasks with only the named tasks, environments or loaders, and Feedline; without names, all.

    Raises ValueError for an unknown name.
    """
    of_tasks = {task.name for task in tasks}
    of_loaders = {key for task in tasks for loader in task.loaders for key in (loader.name, loader.environment) if key}
    unknown = sorted(set(names) - of_tasks - of_loaders)
    if unknown:
        raise ValueError(f"unknown: {', '.join(unknown)}; known names are {', '.join(sorted(of_tasks | of_loaders))}")
    wanted = set(names) & of_loaders
    selected = []
    for task in tasks:
        if set(names) & of_tasks and task.name not in names:
            continue
        loaders = tuple(x for x in task.loaders if not wanted or x.ours or wanted & {x.name, x.environment})
        if wanted and all(x.ours for x in loaders):
            continue  # the task has none of the named loaders
        selected.append(replace(task, loaders=loaders))
    return selected
