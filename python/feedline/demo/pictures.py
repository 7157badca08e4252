# SPDX-License-Identifier: Apache-2.0
"""Generates synthetic photos: class folders of JPEG files with the size of ImageNet's images and a photo-like
spectrum.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from feedline.machine import limits

from ..bench.machine.jpeg import encode

CLASSES = ("dot", "ring", "square", "frame", "stripes", "columns", "checks", "cross", "wedge", "waves")
SIDES = (375, 500)  # height and width of most ImageNet images
QUALITY = 88  # results in about 90 kB

Array = np.ndarray[Any, Any]


def make(folder: Path, count: int, seed: int = 0, done: Callable[[int], object] = lambda made: None) -> Path:
    """Writes ``count`` images to ``folder/CLASS/NNNN.jpg``, identical for the same seed; returns the folder.

    ``done`` is called with 1 after each file is written. Other files in the folder are not changed.
    """
    for name in CLASSES:
        (folder / name).mkdir(parents=True, exist_ok=True)

    def write(number: int) -> None:
        kind = number % len(CLASSES)
        path = folder / CLASSES[kind] / f"{number // len(CLASSES):04d}.jpg"
        path.write_bytes(encode(picture(kind, np.random.default_rng([seed, number])), QUALITY))

    with ThreadPoolExecutor(limits.usable_cpus()) as pool:  # NumPy releases the GIL
        for _ in pool.map(write, range(count)):
            done(1)
    return folder


def picture(kind: int, rng: np.random.Generator) -> Array:
    """Returns uint8 (375, 500, 3): a shape of class ``kind`` on noise with the power spectrum of photos."""
    height, width = SIDES
    light = _noise(rng)
    tint = np.stack([_noise(rng) for _ in range(3)], axis=2)
    background, foreground = rng.uniform(60, 190, 3), rng.uniform(30, 225, 3)
    shape = _shape(kind, height, width, rng)[:, :, None]
    pixels = (1 - shape) * background + shape * foreground + 38 * light[:, :, None] + 14 * tint
    return np.clip(pixels, 0, 255).astype(np.uint8)


def _noise(rng: np.random.Generator) -> Array:
    """Returns noise of shape (height, width) with mean 0, standard deviation 1, and amplitudes like 1/frequency."""
    frequencies = np.fft.rfft2(rng.standard_normal(SIDES))
    noise = np.fft.irfft2(frequencies / _radius(), s=SIDES)
    return np.asarray((noise - noise.mean()) / noise.std())


@functools.cache
def _radius() -> Array:
    down, across = np.fft.fftfreq(SIDES[0])[:, None], np.fft.rfftfreq(SIDES[1])[None, :]
    radius = np.hypot(down, across)
    radius[0, 0] = 1
    return np.asarray(radius**1.1)


def _shape(kind: int, height: int, width: int, rng: np.random.Generator) -> Array:
    """Returns a mask of a shape with random position, size and phase: values from 0 to 1, with smooth edges."""
    y, x = np.mgrid[:height, :width]
    size = rng.uniform(0.22, 0.42) * height
    y, x = y - rng.uniform(0.35, 0.65) * height, x - rng.uniform(0.35, 0.65) * width
    r, box = np.hypot(x, y), np.maximum(np.abs(x), np.abs(y))
    down, across = np.sin(6 * y / size + rng.uniform(0, 6)), np.sin(6 * x / size + rng.uniform(0, 6))
    inside = (
        size - r,
        size / 4 - np.abs(size - r),
        size - box,
        size / 4 - np.abs(size - box),
        9 * down,
        9 * across,
        9 * down * across,
        size / 4 - np.minimum(np.abs(x), np.abs(y)),
        np.minimum(size - box, y - x),
        9 * np.sin(6 * (y + size / 3 * np.sin(4 * x / size)) / size),
    )
    return np.clip(inside[kind] / 3 + 0.5, 0, 1)
