# SPDX-License-Identifier: Apache-2.0
"""Conversations with photos as inputs of Qwen2-VL: Feedline, and the model's fast processor in torch's DataLoader.

::

    python bench/images/conversations.py PHOTOS [--samples 64] [--repeat 3] [--workers 2] [--rounds 5]

PHOTOS is a folder of photos, from which JPEGs of 500 to 1,500 pixels are cut, two to four for each sample. The
processor is transformers' Qwen2VLProcessor with the limits of Qwen2-VL's published files. Both loaders deliver each
sample's tokens and pixel values; Feedline's as packed rows of 16,384 tokens, or as samples. Prints images per second of
CPU time (user and system, of all processes) and of wall time, as the median of the rounds, which alternate between the
loaders. Files are in the page cache. Needs transformers and torchvision.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

import feedline

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples" / "vlm"))
import documents

LENGTH, BATCH = 16_384, 2
Samples = list[dict[str, Any]]


def make_samples(photos: Path, folder: Path, count: int, repeat: int) -> Samples:
    sources = [Image.open(path).convert("RGB") for path in sorted(photos.iterdir())]
    rng = np.random.default_rng(0)
    samples: Samples = []
    for number in range(count):
        names = []
        for image in range(int(rng.integers(2, 5))):
            width, height = (int(side) for side in rng.integers(500, 1501, 2))
            source = sources[int(rng.integers(len(sources)))]
            scale = max(width / source.width, height / source.height, 1.0)
            source = source.resize(
                (round(source.width * scale), round(source.height * scale)), Image.Resampling.LANCZOS
            )
            left, top = (int(rng.integers(0, room + 1)) for room in (source.width - width, source.height - height))
            names.append(f"{number:04}-{image}.jpg")
            source.crop((left, top, left + width, top + height)).save(folder / names[-1], quality=90)
        text = [{"type": "image"} for _ in names] + [{"type": "text", "text": "Describe the images. " * 4}]
        messages = [{"role": "user", "content": text}, {"role": "assistant", "content": "They show things. " * 20}]
        samples.append({"messages": messages, "images": names})
    samples *= repeat
    (folder / "chats.jsonl").write_text("".join(f"{json.dumps(sample)}\n" for sample in samples))
    return samples


class Processed(torch.utils.data.Dataset[Any]):
    """Samples by the model's processor."""

    def __init__(self, samples: Samples, folder: Path, model: Path) -> None:
        import transformers

        self.samples, self.folder = samples, folder
        self.processor = transformers.Qwen2VLProcessor(
            transformers.Qwen2VLImageProcessor.from_pretrained(model),
            transformers.AutoTokenizer.from_pretrained(model),
            transformers.Qwen2VLVideoProcessor(),
            chat_template=documents.TEMPLATE,
        )

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> Any:
        from transformers.image_utils import load_image

        sample = self.samples[index]
        text = self.processor.apply_chat_template(sample["messages"], tokenize=False)
        images = [load_image(str(self.folder / name)) for name in sample["images"]]
        return self.processor(text=[text], images=images, return_tensors="pt")


def with_torch(dataset: Processed, workers: int) -> Iterator[int]:
    loader = torch.utils.data.DataLoader(dataset, BATCH, shuffle=True, num_workers=workers, collate_fn=list)
    for batch in loader:
        yield sum(len(sample["image_grid_thw"]) for sample in batch)


def with_samples(chats: feedline.Dataset, workers: int) -> Iterator[int]:
    for batch in chats.loader(BATCH, shuffle=True, num_workers=workers):
        yield sum(len(grid) for grid in batch.image_grid_thw)


def with_packs(packed: feedline.PackedSequences, workers: int) -> Iterator[int]:
    for batch in packed.loader(1, shuffle=True, num_workers=workers, preset="transformers", uneven="exact"):
        yield len(batch["image_grid_thw"])


def cpu_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def measure(load: Callable[[], Iterator[int]], images: int) -> tuple[float, float]:
    """Returns images per second of CPU time and of wall time. Starting workers counts, as in each epoch of torch."""
    cpu, wall = cpu_seconds(), time.perf_counter()
    assert sum(load()) == images
    return images / (cpu_seconds() - cpu), images / (time.perf_counter() - wall)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", type=Path)
    parser.add_argument("--samples", type=int, default=64)
    parser.add_argument("--repeat", type=int, default=3, help="times that each sample occurs in an epoch")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        os.environ["XDG_CACHE_HOME"] = name
        folder = Path(name)
        samples = make_samples(options.photos, folder, options.samples, options.repeat)
        model = documents.write_processor(folder / "model", max_pixels=12_845_056)
        images = sum(len(sample["images"]) for sample in samples)
        begin = time.perf_counter()
        chats = feedline.open(folder / "chats.jsonl", fields=["messages", "images"]).tokenize(
            model, messages="messages", images="images"
        )
        packed = chats.pack_sequences(LENGTH, long="truncate")
        print(f"{images} images, {os.cpu_count()} CPUs, {options.workers} workers")
        print(f"tokens and headers of all samples in {time.perf_counter() - begin:.2f} s")
        dataset = Processed(samples, folder, model)
        ways: dict[str, Callable[[], Iterator[int]]] = {
            "torch": lambda: with_torch(dataset, options.workers),
            "feedline, samples": lambda: with_samples(chats, options.workers),
            "feedline, packed rows": lambda: with_packs(packed, options.workers),
        }
        figures: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
        for number in range(options.rounds):
            for way in list(ways)[:: -1 if number % 2 else 1]:
                figures[way].append(measure(ways[way], images))
    for way, rows in figures.items():
        cpu, wall = (statistics.median(column) for column in zip(*rows, strict=True))
        ratios = [
            statistics.median(ours[i] / torchs[i] for ours, torchs in zip(rows, figures["torch"], strict=True))
            for i in range(2)
        ]
        print(
            f"{way:22} {cpu:7.1f} images per CPU second ({ratios[0]:.1f} x), {wall:7.1f} per second ({ratios[1]:.1f} x)"
        )


if __name__ == "__main__":
    main()
