# SPDX-License-Identifier: Apache-2.0
"""Trains a ResNet-50 with three loaders and precisions, and writes one page with three bars:

    1. torch's DataLoader with the settings of common guides
    2. Feedline's loader, with the same step
    3. Feedline's loader, and the step in mixed precision

so that the gains of the loader and of mixed precision are shown separately.

    python examples/before_and_after/before_and_after.py imagenet/train --page before_and_after.html
    python examples/before_and_after/before_and_after.py --made 500          # generated photos, on any machine

Without a GPU, the step is simulated: it waits as long as a GPU with --gpu-rate images per second (in mixed precision,
--amp-rate) would compute. The page and the JSON object state this.
"""

from __future__ import annotations

import argparse
import html
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.utils.data import DataLoader

import feedline
from feedline.bench.stock_loader import FolderDataset, transform_of
from feedline.demo import pictures
from feedline.machine import limits

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from resnet50_amp import resnet

# Images per second of a V100 in float32 and in mixed precision, approximately as published by NVIDIA for a ResNet-50.
# They are defaults of the simulated step: pass those of your GPU.
GPU_RATE, AMP_RATE = 380.0, 800.0
WARM = 3  # batches that are not counted

Step = Callable[[torch.Tensor, torch.Tensor], None]


class Case(NamedTuple):
    name: str
    loader: str  # "stock" or "feedline"
    is_amp: bool


CASES = (
    Case("torch's DataLoader, the guides' settings", "stock", False),
    Case("Feedline's loader", "feedline", False),
    Case("Feedline's loader and mixed precision", "feedline", True),
)


def stock_batches(options: argparse.Namespace, device: torch.device) -> Iterator[Any]:
    """The guides' settings: workers for 75 % of the CPUs, page-locked memory, two batches each, persistent workers."""
    transform, _ = transform_of(options.side)
    loader: Any = DataLoader(
        FolderDataset(options.folder, transform),  # type: ignore[arg-type]
        options.batch_size,
        shuffle=True,
        num_workers=max(limits.usable_cpus() * 3 // 4, 1),
        pin_memory=device.type == "cuda",
        prefetch_factor=2,
        persistent_workers=True,
        drop_last=True,
    )
    while True:
        for images, labels in loader:
            yield images.to(device, non_blocking=True), labels.to(device, non_blocking=True)


def feedline_batches(options: argparse.Namespace, device: torch.device) -> Iterator[Any]:
    dataset = (
        feedline.open(options.folder)
        .random_resized_crop(options.side)
        .random_horizontal_flip()
        .normalize(feedline.IMAGENET_MEAN, feedline.IMAGENET_STD)
    )
    with dataset.loader(
        options.batch_size,
        shuffle=True,
        drop_last=True,
        layout="NHWC",
        device=device if device.type == "cuda" else None,
    ) as loader:
        while True:
            for images, labels in loader:
                yield images.permute(0, 3, 1, 2), labels  # channels_last without a copy


class StandIn:
    """Waits as long as a GPU would compute, measured from the end of the previous step."""

    def __init__(self, images_per_s: float) -> None:
        self._rate = images_per_s

    def __call__(self, images: torch.Tensor, labels: torch.Tensor) -> None:
        time.sleep(len(images) / self._rate)


class Training:
    """A training step of a ResNet-50 on a GPU, in float32, or in bfloat16 with autocast."""

    def __init__(self, device: torch.device, is_amp: bool, classes: int) -> None:
        torch.manual_seed(0)
        self._network = resnet(classes).to(device, memory_format=torch.channels_last)
        self._optimizer = torch.optim.SGD(self._network.parameters(), lr=0.05, momentum=0.9)
        self._device, self._is_amp = device, is_amp

    def __call__(self, images: torch.Tensor, labels: torch.Tensor) -> None:
        self._optimizer.zero_grad(set_to_none=True)
        with torch.autocast(self._device.type, torch.bfloat16, enabled=self._is_amp):
            loss = nn.functional.cross_entropy(self._network(images), labels)
        loss.backward()
        self._optimizer.step()
        torch.cuda.synchronize(self._device)  # so that the measured time includes the GPU's work


def measure(batches: Iterator[Any], step: Step, count: int) -> dict[str, float]:
    """Returns images per second, and the share of the time spent in steps, over `count` batches after a warm-up."""
    images = 0
    in_steps = 0.0
    begin = 0.0
    for number in range(WARM + count):
        if number == WARM:
            begin, images, in_steps = time.perf_counter(), 0, 0.0
        inputs, labels = next(batches)
        began = time.perf_counter()
        step(inputs, labels)
        in_steps += time.perf_counter() - began
        images += len(inputs)
    took = time.perf_counter() - begin
    return {"images_per_s": images / took, "utilisation": in_steps / took}


def compare(options: argparse.Namespace) -> dict[str, Any]:
    """Measures each case in turn, in several rounds, and returns the medians."""
    device = torch.device(options.device or ("cuda" if torch.cuda.is_available() else "cpu"))
    is_stand_in = device.type == "cpu"
    classes = sum(path.is_dir() for path in Path(options.folder).iterdir())
    rounds: dict[str, list[dict[str, float]]] = {case.name: [] for case in CASES}
    for number in range(options.rounds):
        for case in CASES if number % 2 == 0 else CASES[::-1]:
            batches = stock_batches if case.loader == "stock" else feedline_batches
            rate = options.amp_rate if case.is_amp else options.gpu_rate
            step: Step = StandIn(rate) if is_stand_in else Training(device, case.is_amp, classes)
            source = batches(options, device)
            try:
                rounds[case.name].append(measure(source, step, options.steps))
            finally:
                source.close()  # type: ignore[attr-defined]
    rows = [
        {
            "case": name,
            **{figure: statistics.median(one[figure] for one in found) for figure in ("images_per_s", "utilisation")},
            "lowest": min(one["images_per_s"] for one in found),
            "highest": max(one["images_per_s"] for one in found),
        }
        for name, found in rounds.items()
    ]
    stock, loader, amp = (row["images_per_s"] for row in rows)
    return {
        "step": (
            f"simulated GPU: waits as for {options.gpu_rate:g} images/s, and {options.amp_rate:g} in mixed precision"
            if is_stand_in
            else f"ResNet-50 on {torch.cuda.get_device_name(device)}"
        ),
        "is_stand_in": is_stand_in,
        "batch_size": options.batch_size,
        "cpus": limits.usable_cpus(),
        "rounds": options.rounds,
        "rows": rows,
        "gain_of_loader": loader / stock,
        "gain_of_mixed_precision": amp / loader,
    }


def page(found: dict[str, Any]) -> str:
    """Returns a page with a bar for each case."""
    most = max(row["highest"] for row in found["rows"])
    bars = []
    for number, row in enumerate(found["rows"]):
        y, width = 20 + 70 * number, 560 * row["images_per_s"] / most
        low, high = 20 + 560 * row["lowest"] / most, 20 + 560 * row["highest"] / most
        words = f"{row['images_per_s']:.0f} images/s, {row['utilisation']:.0%} of the time in the step"
        bars.append(
            f'<text x="20" y="{y}">{html.escape(row["case"])}: {words}</text>'
            f'<rect x="20" y="{y + 8}" width="{width:.1f}" height="26" fill="#3b6ea5"/>'
            f'<line x1="{low:.1f}" x2="{high:.1f}" y1="{y + 21}" y2="{y + 21}" stroke="#111"/>'
        )
    gains = (
        f"The loader: {found['gain_of_loader']:.2f} times as many images. Mixed precision, in addition: "
        f"{found['gain_of_mixed_precision']:.2f} times."
    )
    return (
        '<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>Before and after</title>'
        '<body style="font-family: sans-serif; max-width: 640px">'
        f"<h1>Before and after</h1><p>Step: {html.escape(found['step'])}. Batches of {found['batch_size']}, "
        f"{found['cpus']} CPUs, median of {found['rounds']} rounds; the lines show the lowest and highest round.</p>"
        f'<svg width="640" height="230" role="img">{"".join(bars)}</svg><p>{gains}</p></body></html>\n'
    )


def parsed(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", nargs="?", help="folder with a folder of photos per class")
    parser.add_argument("--made", type=int, metavar="N", help="generate N photos instead")
    parser.add_argument("--page", type=Path, help="write the page to this file")
    parser.add_argument("--device", help="such as cuda:1; cpu simulates the step")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--side", type=int, default=224)
    parser.add_argument("--steps", type=int, default=30, help="batches per measurement")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--gpu-rate", type=float, default=GPU_RATE)
    parser.add_argument("--amp-rate", type=float, default=AMP_RATE)
    options = parser.parse_args(words)
    if (options.folder is None) == (options.made is None):
        parser.error("pass either a folder or --made N")
    if options.folder is not None and not Path(options.folder).is_dir():
        parser.error(f"{options.folder} is not a folder: pass one with a folder of photos per class")
    if min(options.batch_size, options.steps, options.rounds, options.gpu_rate, options.amp_rate) <= 0:
        parser.error("--batch-size, --steps, --rounds, --gpu-rate and --amp-rate must be positive")
    if options.made is not None and options.made < options.batch_size:
        parser.error(f"--made must be at least --batch-size, {options.batch_size}")
    return options


def main(words: list[str] | None = None) -> dict[str, Any]:
    options = parsed(words)
    with tempfile.TemporaryDirectory(prefix="before_and_after-") as folder:
        if options.made is not None:
            options.folder = str(pictures.make(Path(folder), options.made))
        found = compare(options)
    print(json.dumps(found, indent=2))
    if options.page is not None:
        options.page.write_text(page(found), encoding="utf-8")
    return found


if __name__ == "__main__":
    main()
