# SPDX-License-Identifier: Apache-2.0
"""Runs one case of tokens or arrays with one loader in this process and prints what it did, as lines of JSON.

`measure.py` starts it. Lines: the begin and the end of the part in which memory is sampled, then the figures.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import processes
import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset

import feedline

WINDOW, TOKEN_BATCH = 1024, 12
ROWS, COLUMNS, ROW_BATCH = 200_000, 16, 256
SCENES, HEIGHT, WIDTH, SIDE, SCENE_BATCH = 1_000, 240, 320, 160, 32


class Windows(Dataset[Any]):
    """The usual way to read tokens: a dataset in Python over a mapped file."""

    def __init__(self, path: str) -> None:
        self.tokens = np.memmap(path, dtype="uint16", mode="r")

    def __len__(self) -> int:
        return (len(self.tokens) - 1) // WINDOW

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        start = index * WINDOW
        window = torch.from_numpy(self.tokens[start : start + WINDOW + 1].astype(np.int64))
        return window[:-1], window[1:]


class WindowsByHand:
    """NumPy's fancy indexing, a batch at a time, and nothing else."""

    def __init__(self, path: str) -> None:
        self.data = Windows(path)

    def __iter__(self) -> Iterator[Any]:
        starts = np.random.default_rng(0).permutation(len(self.data)) * WINDOW
        places = np.arange(WINDOW + 1)
        for first in range(0, len(starts), TOKEN_BATCH):
            windows = self.data.tokens[starts[first : first + TOKEN_BATCH, None] + places].astype(np.int64)
            yield torch.from_numpy(windows[:, :-1]), torch.from_numpy(windows[:, 1:])


class RowsByHand:
    def __init__(self, rows: np.ndarray[Any, Any]) -> None:
        self.rows = rows

    def __iter__(self) -> Iterator[Any]:
        order = np.random.default_rng(0).permutation(len(self.rows))
        for first in range(0, len(order), ROW_BATCH):
            yield (self.rows[order[first : first + ROW_BATCH]],)


class Scenes(Dataset[Any]):
    """Images, masks and boxes in memory, with torchvision's v2 behind them: 0 to 60 boxes an image."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self.images = rng.integers(0, 255, (SCENES, HEIGHT, WIDTH, 3), dtype=np.uint8)
        self.masks = rng.integers(0, 21, (SCENES, HEIGHT, WIDTH), dtype=np.uint8)
        corners = [np.sort(rng.uniform(0, 1, (i % 61, 2, 2)) * [WIDTH, HEIGHT], axis=1) for i in range(SCENES)]
        self.boxes = [pair.reshape(-1, 4).astype(np.float32) for pair in corners]
        from torchvision.transforms import v2

        geometry = [v2.RandomHorizontalFlip(), v2.RandomCrop((200, 260)), v2.Resize((SIDE, SIDE))]
        self.transform = v2.Compose([*geometry, v2.ToDtype(torch.float32, True)])

    def __len__(self) -> int:
        return SCENES

    def __getitem__(self, index: int) -> Any:
        from torchvision import tv_tensors

        image = tv_tensors.Image(torch.from_numpy(self.images[index]).permute(2, 0, 1))
        boxes = tv_tensors.BoundingBoxes(self.boxes[index], format="XYXY", canvas_size=(HEIGHT, WIDTH))
        return self.transform((image, tv_tensors.Mask(self.masks[index]), boxes))

    def natively(self) -> feedline.Dataset:
        arrays = feedline.arrays(
            image=self.images,
            mask=self.masks,
            boxes=feedline.ragged(self.boxes),
            fields=["image:image", "mask:mask", "boxes:boxes"],
        )
        return arrays.random_horizontal_flip().random_crop((200, 260)).resize((SIDE, SIDE)).to_dtype("float32", True)


def together(samples: Any) -> Any:
    """Boxes stay a list, as many of each image as there are."""
    images, masks, boxes = zip(*samples, strict=True)
    return torch.stack(images), torch.stack(masks), list(boxes)


def rows() -> np.ndarray[Any, Any]:
    return np.random.default_rng(0).random((ROWS, COLUMNS), dtype=np.float32)


MAKE: dict[tuple[str, str], Callable[[argparse.Namespace], Iterable[Any]]] = {
    ("tokens", "stock"): lambda o: DataLoader(
        Windows(o.tokens), TOKEN_BATCH, shuffle=True, num_workers=o.workers, persistent_workers=True
    ),
    ("tokens", "feedline"): lambda o: feedline.tokens(o.tokens, window=WINDOW, dtype="uint16").loader(
        TOKEN_BATCH, shuffle=True, num_workers=o.workers
    ),
    ("tokens", "numpy"): lambda o: WindowsByHand(o.tokens),
    ("scenes", "stock"): lambda o: DataLoader(
        Scenes(), SCENE_BATCH, shuffle=True, num_workers=o.workers, persistent_workers=True, collate_fn=together
    ),
    ("scenes", "feedline"): lambda o: Scenes().natively().loader(SCENE_BATCH, shuffle=True, num_workers=o.workers),
    ("arrays", "stock"): lambda o: DataLoader(TensorDataset(torch.from_numpy(rows())), ROW_BATCH, shuffle=True),
    ("arrays", "feedline"): lambda o: feedline.arrays(x=rows()).loader(ROW_BATCH, shuffle=True, num_workers=o.workers),
    ("arrays", "numpy"): lambda o: RowsByHand(rows()),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", choices=["tokens", "arrays", "scenes"])
    parser.add_argument("kind", choices=["stock", "feedline", "numpy"])
    parser.add_argument("--tokens", help="a file of uint16 tokens")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=3, help="timed ones, after one that warms up")
    options = parser.parse_args()
    torch.set_num_threads(1)
    bare = processes.pss_bytes([os.getpid()])
    print("{}", flush=True)
    loader = MAKE[options.case, options.kind](options)
    elements = sum(batch[0].size if isinstance(batch[0], np.ndarray) else batch[0].numel() for batch in loader)
    print("{}", flush=True)
    started = time.perf_counter()
    for _ in range(options.epochs):
        for _batch in loader:
            pass
    seconds = time.perf_counter() - started
    figures = {"elements_per_s": options.epochs * elements / seconds, "bare_bytes": bare.total}
    print(json.dumps({"case": options.case, "kind": options.kind, **figures}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
