# SPDX-License-Identifier: Apache-2.0
"""Compares Feedline's loaders with torch's on a GPU, alternating on the same machine: the figures of tools/gpu_check.

Each figure is a median over rounds in which the loaders alternate, with the lowest and the highest round. Prints JSON.

    copy_heavy     only batches of float32 arrays, 154 MB each: bytes that reach the GPU per second
    photos         JPEG photos, cropped, mirrored, normalised, in batches of 256: images per second on the GPU
    resnet50       the same with ResNet-50 in bfloat16 and channels_last: the share of time in which the GPU waits
    two_cameras    two JPEG fields of 480 x 640, four transforms, eight workers, and a step with which torch's loader
                   leaves the GPU idle for 63 % of the time (lerobot's issue 4627): the idle time with Feedline
"""

from __future__ import annotations

import argparse
import io
import json
import os
import statistics
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

import feedline
from feedline.demo import pictures

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
ON_GPU = DEVICE.type == "cuda"
MEAN, STD = feedline.IMAGENET_MEAN, feedline.IMAGENET_STD
Ways = dict[str, Callable[[], Iterable[Any]]]


def wait() -> None:
    if ON_GPU:
        torch.cuda.synchronize()


def summary(values: list[float]) -> dict[str, float]:
    return {"median": statistics.median(values), "low": min(values), "high": max(values), "rounds": len(values)}


def timed(batches: Iterable[Any], limit: int, step: Callable[[Any], object], skipped: int = 2) -> float:
    """Returns seconds per batch after the first batches, which were prefetched; includes all work of the GPU."""
    source: Iterator[Any] = iter(batches)
    for _ in range(skipped):
        step(next(source))
    wait()
    begin, number = time.perf_counter(), 0
    for batch in source:
        step(batch)
        number += 1
        if number == limit:
            break
    wait()
    return (time.perf_counter() - begin) / number


def in_turns(
    ways: Ways, rounds: int, limit: int, step: Callable[[Any], object], skipped: int = 2
) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, make in ways.items():
            found[name].append(timed(make(), limit, step, skipped))
    return found


def rates(found: dict[str, list[float]], rows: int, ours: str, theirs: str) -> dict[str, Any]:
    """Returns the samples per second of each loader, and the ratio of Feedline's to torch's, by round."""
    shown: dict[str, Any] = {name: summary([rows / value for value in values]) for name, values in found.items()}
    shown["ratio"] = summary([other / own for own, other in zip(found[ours], found[theirs], strict=True)])
    return shown


def moved(batches: Iterable[Any]) -> Iterator[tuple[torch.Tensor, ...]]:
    """Copies batches to the GPU like a training loop for torch's loader."""
    for batch in batches:
        yield tuple(field.to(DEVICE, non_blocking=True) for field in batch)


def first_value(batch: Any) -> torch.Tensor:
    """A kernel that reads the batch."""
    return batch[0].flatten()[0] + 1


class Rows(Dataset[Any]):
    def __init__(self, values: np.ndarray[Any, Any], repeat: int) -> None:
        self._values, self._repeat = values, repeat

    def __len__(self) -> int:
        return len(self._values) * self._repeat

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return torch.from_numpy(self._values[index % len(self._values)]), index


def copy_heavy(scale: float, workers: int) -> dict[str, Any]:
    rows, batch, limit = int(2048 * scale), int(256 * scale), 40
    values = np.random.default_rng(0).random((rows, 3 * 224 * 224), np.float32)
    repeat = 6
    torchs = DataLoader(
        Rows(values, repeat), batch, shuffle=True, num_workers=workers, pin_memory=ON_GPU, persistent_workers=True
    )
    loader = feedline.arrays(x=values, y=np.arange(rows)).loader(
        batch, shuffle=True, repeat=repeat, device=DEVICE if ON_GPU else None
    )
    ways: Ways = {"feedline": lambda: loader, "torch": lambda: moved(torchs)}
    found = in_turns(ways, 3, limit, first_value)
    shown = rates(found, batch, "feedline", "torch")
    shown["bytes_per_s"] = summary([values[:batch].nbytes / value for value in found["feedline"]])
    return shown


def folder_of_photos(folder: Path, count: int) -> Path:
    pictures.make(folder / "few", count)
    return folder / "few"


def torchs_photos(folder: Path, batch: int, workers: int) -> DataLoader[Any]:
    from torchvision import datasets, transforms

    recipe = transforms.Compose(
        [
            transforms.RandomResizedCrop(224),
            transforms.RandomHorizontalFlip(),
            transforms.ToTensor(),
            transforms.Normalize(MEAN, STD),
        ]
    )
    return DataLoader(
        datasets.ImageFolder(str(folder), recipe),
        batch,
        shuffle=True,
        drop_last=True,
        num_workers=workers,
        pin_memory=ON_GPU,
        persistent_workers=True,
    )


def our_photos(folder: Path, batch: int, **options: Any) -> feedline.Loader:
    chain = feedline.open(folder).random_resized_crop(224).random_horizontal_flip().normalize(MEAN, STD)
    return chain.loader(batch, shuffle=True, drop_last=True, device=DEVICE if ON_GPU else None, **options)


def epochs(loader: Any, of: Callable[[Any], Iterable[Any]] = lambda batches: batches) -> Iterator[Any]:
    while True:
        yield from of(loader)


def photos(folder: Path, scale: float, workers: int) -> dict[str, Any]:
    batch = int(256 * scale)
    ours, theirs = our_photos(folder, batch), torchs_photos(folder, batch, workers)
    ways: Ways = {"feedline": lambda: epochs(ours), "torch": lambda: epochs(theirs, moved)}
    return rates(in_turns(ways, 2, 24, first_value), batch, "feedline", "torch")


def resnet50(folder: Path, scale: float, workers: int) -> dict[str, Any]:
    from torchvision import models

    batch = int(256 * scale)
    model = models.resnet50().to(DEVICE).to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    loss_of = torch.nn.CrossEntropyLoss()

    def step(given: Any) -> None:
        images = given[0].permute(0, 3, 1, 2)  # delivered as (N, H, W, C), which is channels_last
        with torch.autocast(DEVICE.type, dtype=torch.bfloat16):
            loss = loss_of(model(images), given[1])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    loader = our_photos(folder, batch, layout="NHWC")
    held_batch = next(iter(loader))
    ways: Ways = {"kept batch": lambda: (held_batch for _ in range(10_000)), "feedline": lambda: epochs(loader)}
    for _ in range(5):
        step(held_batch)
    found = in_turns(ways, 3, 40, step)
    shown: dict[str, Any] = {name: summary([batch / value for value in values]) for name, values in found.items()}
    pairs = zip(found["kept batch"], found["feedline"], strict=True)
    shown["gpu_waits"] = summary([max(0.0, 1 - alone / fed) for alone, fed in pairs])
    return shown


TRANSFORMS = 4  # colours, sharpness, a crop and normalisation
REPEATS = 16  # repetitions of the frames, so that an epoch does not end within a round


def tars_of_cameras(folder: Path, count: int) -> Path:
    from PIL import Image

    folder.mkdir()
    rng = np.random.default_rng(1)
    with tarfile.open(folder / "frames.tar", "w") as tar:
        for number in range(count):
            for camera in ("a", "b"):
                picture = Image.fromarray(pictures.picture(number % 10, rng)).resize((640, 480))
                buffer = io.BytesIO()
                picture.save(buffer, "JPEG", quality=90)
                entry = tarfile.TarInfo(f"{number:06}.{camera}.jpg")
                entry.size = buffer.tell()
                tar.addfile(entry, io.BytesIO(buffer.getvalue()))
    return folder / "frames.tar"


class Cameras(Dataset[Any]):
    """Encoded frames in memory, decoded by Pillow and transformed by torchvision v2, as in lerobot."""

    def __init__(self, tar: Path) -> None:
        from torchvision.transforms import v2

        frames: dict[str, dict[str, bytes]] = {}
        with tarfile.open(tar) as opened:
            for entry in opened:
                key, camera, _ = entry.name.split(".")
                data = opened.extractfile(entry)
                frames.setdefault(key, {})[camera] = data.read() if data else b""
        self._frames = list(frames.values())
        self._recipe = v2.Compose(
            [
                v2.ColorJitter(0.3, 0.3, 0.3, 0.05),
                v2.RandomAdjustSharpness(2.0, p=0.5),
                v2.RandomCrop((448, 608)),
                v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)]),
            ]
        )

    def __len__(self) -> int:
        return len(self._frames) * REPEATS

    def __getitem__(self, index: int) -> tuple[torch.Tensor, ...]:
        from PIL import Image

        frame = self._frames[index % len(self._frames)]
        return tuple(self._recipe(Image.open(io.BytesIO(frame[camera])).convert("RGB")) for camera in ("a", "b"))


def two_cameras(folder: Path, scale: float) -> dict[str, Any]:
    batch, workers, ahead = int(32 * scale), 8, 16  # number of batches that torch's workers prefetch
    tar = tars_of_cameras(folder / "cameras", int(512 * scale))
    theirs = DataLoader(
        Cameras(tar), batch, shuffle=True, num_workers=workers, pin_memory=ON_GPU, persistent_workers=True
    )
    chain = feedline.open(tar, fields=["a.jpg:image", "b.jpg:image"])
    chain = chain.color_jitter(0.3, 0.3, 0.3, 0.05).random_adjust_sharpness(2.0, p=0.5).random_crop((448, 608))
    ours = chain.normalize(MEAN, STD).loader(
        batch, shuffle=True, repeat=REPEATS, num_workers=workers, device=DEVICE if ON_GPU else None
    )
    alone = timed(epochs(theirs, moved), 32, first_value, ahead + 2)
    step_s = 0.37 * alone  # share of the time of a batch, so that the GPU is idle for 63 %

    matrix = torch.randn(2048, 2048, device=DEVICE)

    def work(times: int) -> None:
        for _ in range(times):
            torch.mm(matrix, matrix)
        wait()

    work(3)
    begin = time.perf_counter()
    work(20)
    times = max(1, round(step_s / ((time.perf_counter() - begin) / 20)))

    def step(given: Any) -> None:
        first_value(given)
        work(times)

    bare = timed((None for _ in range(10_000)), 10, lambda given: work(times))
    ways: Ways = {"torch": lambda: epochs(theirs, moved), "feedline": lambda: epochs(ours)}
    found = in_turns(ways, 2, 24, step, ahead + 2)
    return {
        "step_ms": 1000 * bare,
        "workers": workers,
        "transforms": TRANSFORMS,
        "gpu_idle": {name: summary([max(0.0, 1 - bare / value) for value in found[name]]) for name in found},
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="gpu_figures")
    parser.add_argument("--scale", type=float, default=1.0, help="of batches and data, to try the script")
    parser.add_argument("--only", nargs="+", default=["copy_heavy", "photos", "resnet50", "two_cameras"])
    options = parser.parse_args()
    scale = options.scale
    workers = max(1, len(os.sched_getaffinity(0)))
    found: dict[str, Any] = {"device": torch.cuda.get_device_name() if ON_GPU else "cpu", "workers": workers}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = folder_of_photos(folder, int(2560 * scale)) if {"photos", "resnet50"} & set(options.only) else folder
        for what in options.only:
            try:
                if what == "copy_heavy":
                    found[what] = copy_heavy(scale, workers)
                elif what == "photos":
                    found[what] = photos(data, scale, workers)
                elif what == "resnet50":
                    found[what] = resnet50(data, scale, workers)
                else:
                    found[what] = two_cameras(folder, scale)
            except Exception as error:
                found[what] = {"error": f"{type(error).__name__}: {error}"}
            print(f"{what}: {json.dumps(found[what])}", file=sys.stderr, flush=True)
    print(json.dumps(found))
    return 1 if any("error" in one for one in found.values() if isinstance(one, dict)) else 0


if __name__ == "__main__":
    sys.exit(main())
