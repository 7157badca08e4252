# SPDX-License-Identifier: Apache-2.0
"""Functions that the tests pass to map(); they are in a module so that other processes can import them."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from typing import Any

import numpy as np


def flipped(image: np.ndarray) -> np.ndarray:
    return image[:, :, ::-1]


def plain(value: Any) -> Any:
    return value


def noisy(image: np.ndarray, label: int, *, rng: np.random.Generator) -> tuple[np.ndarray, float]:
    return image + rng.integers(0, 9, image.shape, dtype=np.uint8), label + rng.random()


def rebuilt(sample: dict[str, Any]) -> dict[str, Any]:
    """Fields of every kind: some removed, some added, some with another kind than before."""
    boxes = sample["boxes.npy"]
    return {
        "picture": np.ascontiguousarray(sample["left.jpg"][:, ::2, ::2]),
        "sum": int(sample["mask.png"].sum()),
        "mean": float(sample["right.jpg"].mean()),
        "big": bool(sample["cls"] > 2),
        "boxes": boxes * 2,
        "about": {"name": sample["json"]["name"], "words": sample["txt"].split(), "n": len(boxes)},
        "text": sample["txt"].upper(),
        "raw": sample["txt"].encode(),
        "half": np.float16(sample["cls"]),
    }


def kinds(sample: dict[str, Any]) -> dict[str, str]:
    """Returns the kind of each received value."""
    return {name: _kind(value) for name, value in sample.items()}


def _kind(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{value.shape} {'writable' if value.flags.writeable else 'read-only'}"
    return type(value).__name__


def wrong_where_three(label: int) -> int:
    if label == 3:
        raise LookupError("three is no label")
    return label


def process_and_thread(label: int) -> np.ndarray:
    return np.array([label, os.getpid(), threading.get_ident()])


def asks_for_the_end(label: int) -> int:
    if label == 3:
        sys.exit("enough")
    return label


def slow(label: int) -> int:
    time.sleep(0.05)
    return label


def stuck(label: int) -> int:
    if label >= 2:
        while True:
            time.sleep(3600)
    return label


class Unpicklable(Exception):
    def __init__(self, one: int, other: int) -> None:
        super().__init__(f"{one} and {other}")


# The following functions work in this process, which calls them for the first sample's shape, but not in another
# process.


def _is_process() -> bool:
    return multiprocessing.parent_process() is not None


def raises_unpicklable_in_process(label: int) -> int:
    if _is_process():
        raise Unpicklable(label, 2)
    return label


def gives_a_lock_in_process(label: int) -> Any:
    return threading.Lock() if _is_process() else label


def dies_where_three(label: int) -> int:
    if label == 3 and _is_process():
        os.kill(os.getpid(), signal.SIGKILL)
    return label


def exits_where_three(label: int) -> int:
    if label == 3 and _is_process():
        os._exit(7)
    return label
