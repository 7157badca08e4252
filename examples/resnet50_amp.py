# SPDX-License-Identifier: Apache-2.0
"""Trains a ResNet-50 in mixed precision: on one GPU, on several, or on a CPU with a small network.

    python examples/resnet50_amp.py imagenet/train --precision bf16
    torchrun --nproc-per-node 8 examples/resnet50_amp.py imagenet/train --precision bf16 --compile
    python examples/resnet50_amp.py demo/photos --network small --side 64 --batch-size 16 --steps 20     # anywhere

FOLDER has a folder of photos per class, or is another source for feedline.open(). With --checkpoint, it resumes at the
next sample, with the current number of ranks. --profile FOLDER writes a trace of some steps, which `feedline trace`
explains. At the end, it prints one JSON object: images per second, and the share of time in which the loop waited for
batches.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.nn  # imported before the process group exists; see examples/torchrun_resume
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import feedline

PRECISIONS = {"fp32": None, "bf16": torch.bfloat16, "fp16": torch.float16}


class Bottleneck(nn.Module):
    """1x1, 3x3 and 1x1 convolutions with a shortcut (He et al., "Deep Residual Learning"); the 3x3 has the stride."""

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()

        def convolution(of: int, to: int, side: int, step: int = 1) -> list[nn.Module]:
            return [nn.Conv2d(of, to, side, step, side // 2, bias=False), nn.BatchNorm2d(to)]

        out = 4 * width
        self.path = nn.Sequential(
            *convolution(channels, width, 1), nn.ReLU(inplace=True),
            *convolution(width, width, 3, stride), nn.ReLU(inplace=True),
            *convolution(width, out, 1),
        )  # fmt: skip
        same = channels == out and stride == 1
        self.shortcut = nn.Identity() if same else nn.Sequential(*convolution(channels, out, 1, stride))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.path(x) + self.shortcut(x))


def resnet(classes: int, blocks: tuple[int, ...] = (3, 4, 6, 3), width: int = 64) -> nn.Module:
    """ResNet-50; with fewer blocks and a smaller width, a network that also runs on a CPU."""
    layers: list[nn.Module] = [
        nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1),
    ]  # fmt: skip
    channels = width
    for stage, count in enumerate(blocks):
        for block in range(count):
            layers.append(Bottleneck(channels, width << stage, 2 if block == 0 and stage > 0 else 1))
            channels = 4 * (width << stage)
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


class Training:
    """The state that a checkpoint stores, and a training step."""

    def __init__(self, options: argparse.Namespace, classes: int, device: torch.device) -> None:
        torch.manual_seed(options.seed)
        network = resnet(classes, (1, 1), 8) if options.network == "small" else resnet(classes)
        # half-precision convolutions are fastest with this layout, which the loader delivers at no cost
        self.network = network.to(device, memory_format=torch.channels_last)
        self.optimizer = torch.optim.SGD(self.network.parameters(), lr=options.lr, momentum=0.9, weight_decay=5e-5)
        # without scaling, small gradients would become 0 in float16; bfloat16 has float32's exponent range
        self.scaler = torch.amp.GradScaler(device.type, enabled=options.precision == "fp16")
        self.device, self.dtype = device, PRECISIONS[options.precision]
        self.steps = 0
        self.model: Any = self.network
        if dist.is_initialized():
            self.model = DistributedDataParallel(self.network, device_ids=[device] if device.type == "cuda" else None)
        if options.compile:
            self.model = torch.compile(self.model)

    def step(self, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        images = images.permute(0, 3, 1, 2)  # (N, H, W, 3) as delivered: channels_last without a copy
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast(self.device.type, dtype=self.dtype, enabled=self.dtype is not None):
            loss = nn.functional.cross_entropy(self.model(images), labels)
        # backward uses the types that autocast chose, and must be outside autocast
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.steps += 1
        return loss.detach()

    def state(self, loader: feedline.Loader) -> dict[str, Any]:
        return {
            "network": self.network.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scaler": self.scaler.state_dict(),
            "loader": loader.state_dict(),
            "steps": self.steps,
        }

    def load(self, state: dict[str, Any], loader: feedline.Loader) -> None:
        self.network.load_state_dict(state["network"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.scaler.load_state_dict(state["scaler"])
        loader.load_state_dict(state["loader"])
        self.steps = state["steps"]


def make_loader(options: argparse.Namespace, device: torch.device) -> tuple[feedline.Loader, int]:
    """Returns a loader that delivers this rank's share of the batches on the device, and the number of classes."""
    photos = feedline.open(options.folder)
    train = (
        photos.random_resized_crop(options.side)
        .random_horizontal_flip()
        .normalize(feedline.IMAGENET_MEAN, feedline.IMAGENET_STD)
    )
    loader = train.loader(
        options.batch_size,
        shuffle=True,
        seed=options.seed,
        drop_last=True,
        layout="NHWC",
        device=device if device.type == "cuda" else None,
    )
    return loader, options.classes or len(photos.classes)


def save(path: Path, state: dict[str, Any]) -> None:
    """Writes the checkpoint atomically: completely or not at all, even if the process dies."""
    torch.save(state, path.with_suffix(".part"))
    path.with_suffix(".part").replace(path)


@contextlib.contextmanager
def profiled(folder: Path | None) -> Iterator[Any]:
    """Yields a profiler for steps 5 to 8, or None without a folder. Its step() is called after each training step."""
    if folder is None:
        yield None
        return
    folder.mkdir(parents=True, exist_ok=True)
    with torch.profiler.profile(
        schedule=torch.profiler.schedule(wait=2, warmup=2, active=4, repeat=1),
        on_trace_ready=lambda run: run.export_chrome_trace(str(folder / "trace.json")),
    ) as profiler:
        yield profiler


def train(training: Training, loader: feedline.Loader, options: argparse.Namespace) -> dict[str, Any]:
    """Trains until the steps or epochs are done. Returns images per second and the share of time spent waiting."""
    first = not dist.is_initialized() or dist.get_rank() == 0
    images, waited, begin, loss = 0, 0.0, time.perf_counter(), torch.zeros(())
    with profiled(options.profile if first else None) as profiler:
        while loader.epoch < options.epochs and not _is_done(training, options):
            before = time.perf_counter()
            for batch, labels in loader:
                waited += time.perf_counter() - before
                loss = training.step(batch, labels)
                images += len(batch)
                if profiler is not None:
                    profiler.step()
                if first and training.steps % options.print_every == 0:  # .item() waits for the GPU
                    print(f"step {training.steps}: loss {loss.item():.3f}", flush=True)
                if first and options.checkpoint and training.steps % options.save_every == 0:
                    save(options.checkpoint, training.state(loader))
                if _is_done(training, options):
                    break
                before = time.perf_counter()
    final = float(loss)  # waits for the last step
    seconds = time.perf_counter() - begin
    if first and options.checkpoint:
        save(options.checkpoint, training.state(loader))
    return {"steps": training.steps, "loss": final, "images_per_s": images / seconds, "waited": waited / seconds}


def _is_done(training: Training, options: argparse.Namespace) -> bool:
    return options.steps is not None and training.steps >= options.steps


def run(options: argparse.Namespace) -> dict[str, Any]:
    local = int(os.environ.get("LOCAL_RANK", "0"))
    device = torch.device("cuda", local) if torch.cuda.is_available() else torch.device("cpu")
    if device.type == "cuda":
        torch.cuda.set_device(device)
    if "RANK" in os.environ:  # torchrun's
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    loader, classes = make_loader(options, device)
    with loader:
        training = Training(options, classes, device)
        if options.checkpoint and options.checkpoint.exists():
            training.load(torch.load(options.checkpoint, map_location=device), loader)
        return train(training, loader, options)


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--network", choices=("resnet50", "small"), default="resnet50")
    parser.add_argument("--precision", choices=tuple(PRECISIONS), default="bf16")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--batch-size", type=int, default=256, help="batch size per rank")
    parser.add_argument("--side", type=int, default=224, help="side of the crops in pixels")
    parser.add_argument("--classes", type=int, help="number of classes, if the source does not have it")
    parser.add_argument("--epochs", type=int, default=90)
    parser.add_argument("--steps", type=int, help="total number of steps, including those before a resume")
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--checkpoint", type=Path)
    parser.add_argument("--save-every", type=int, default=500, metavar="STEPS")
    parser.add_argument("--print-every", type=int, default=50, metavar="STEPS")
    parser.add_argument("--profile", type=Path, metavar="FOLDER")
    return parser.parse_args(words)


def main(words: list[str] | None = None) -> dict[str, Any]:
    try:
        found = run(arguments(words))
        if not dist.is_initialized() or dist.get_rank() == 0:
            print(json.dumps(found))
        return found
    finally:
        if dist.is_initialized():
            gc.collect()  # the model references the group, and a group's threads may outlive Python
            dist.destroy_process_group()


if __name__ == "__main__":
    main()
