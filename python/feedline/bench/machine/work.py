# SPDX-License-Identifier: Apache-2.0
"""Workloads that are the same on every machine; each takes a few milliseconds and is repeated."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import _engine
from .jpeg import encode

_SIDES = (375, 500)  # the size of most ImageNet images
_PICTURES = 2  # decoded per call
_COPIED = 64 << 20  # bytes: more than one core's share of most last-level caches
_LEAST_COPIED = 8 << 20
_LOOPS = 20_000
_MATRIX = 512
_IMAGES = (2, 64, 56, 56)

Piece = tuple[Callable[[], object], float]  # the workload, and its number of units per run


def decoding() -> Piece:
    """Decodes images with one thread of the engine's decoder."""
    rng = np.random.default_rng(0)
    coarse = rng.uniform(0, 255, (_SIDES[0] // 8 + 1, _SIDES[1] // 8 + 1, 3)).repeat(8, 0).repeat(8, 1)
    pixels = coarse[: _SIDES[0], : _SIDES[1]] + rng.normal(0, 12, (*_SIDES, 3))
    picture = encode(np.clip(pixels, 0, 255).astype(np.uint8), 88)

    def decode() -> None:
        for _ in range(_PICTURES):
            _engine.decode_image(picture, None, "RGB")

    return decode, _PICTURES


def copying(threads: int, left_bytes: int | None) -> Piece:
    """Copies memory with several threads, each with its own buffers; a byte read and written counts once.

    `left_bytes`: free memory in bytes, of which at most a quarter is used. None: unknown.
    """
    most = _COPIED if left_bytes is None else left_bytes // (8 * threads)
    size = max(min(_COPIED, most), _LEAST_COPIED)
    pairs = [(np.ones(size, np.uint8), np.zeros(size, np.uint8)) for _ in range(threads)]

    def one(pair: tuple[Any, Any]) -> None:
        np.copyto(pair[1], pair[0])  # NumPy releases the GIL

    def copy() -> None:
        others = [threading.Thread(target=one, args=(pair,)) for pair in pairs[1:]]
        for thread in others:
            thread.start()
        one(pairs[0])
        for thread in others:
            thread.join()

    return copy, float(size * threads)


def multiplying(torch: Any) -> Piece:
    """Multiplies two float32 matrices with torch: shows which BLAS and instructions torch's build uses."""
    left, right = torch.ones(_MATRIX, _MATRIX), torch.ones(_MATRIX, _MATRIX)
    return lambda: torch.mm(left, right), 1.0


def convolving(torch: Any) -> Piece:
    """Applies a 3 x 3 convolution of ResNet-50's second stage with torch: shows whether its build has oneDNN."""
    image, weights = torch.ones(*_IMAGES), torch.ones(_IMAGES[1], _IMAGES[1], 3, 3)

    def convolve() -> object:
        with torch.no_grad():
            return torch.nn.functional.conv2d(image, weights, padding=1)

    return convolve, float(_IMAGES[0])


def interpreting() -> Piece:
    """Runs a pure Python loop, as in datasets, transforms and collate functions."""

    def interpret() -> int:
        groups: dict[int, list[int]] = {}
        for i in range(_LOOPS):
            groups.setdefault(i & 63, []).append(i * 3 % 7)
        return len(groups)

    return interpret, float(_LOOPS)
