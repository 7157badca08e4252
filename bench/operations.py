# SPDX-License-Identifier: Apache-2.0
"""Measures each operation of the augmentation recipes on one thread: Feedline, Pillow as called by torchvision and
timm, and torchvision v2 on uint8 tensors.

    python bench/operations.py [--rounds 7] [--sizes 500x375,224x224] [--only NAME]

A round times every candidate in turn, every second round backwards; a figure is the median over the rounds, a ratio the
median of the rounds' ratios. A time is the thread's CPU time of the fastest of several calls. The image is a photo from
scikit-image.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import measure
import numpy as np
from PIL import Image, ImageEnhance, ImageOps

import feedline.testing

Candidate = Callable[[], Any]


def photo(width: int, height: int) -> np.ndarray:
    from skimage import data

    picture = Image.fromarray(data.chelsea()).resize((width, height), Image.Resampling.BICUBIC)
    return np.ascontiguousarray(np.asarray(picture))


def adjust_hue(image: Image.Image, factor: float) -> Image.Image:
    hue, saturation, value = image.convert("HSV").split()
    shifted = np.asarray(hue) + np.int32(factor * 255).astype(np.uint8)
    return Image.merge("HSV", (Image.fromarray(shifted), saturation, value)).convert("RGB")


def whole_calls(pixels: np.ndarray) -> dict[str, tuple[Candidate, Candidate | None, Candidate | None]]:
    """Returns by name: calls of Feedline's functions, including NumPy's part, and those of Pillow and torchvision."""
    import torch
    from torchvision.transforms.v2 import InterpolationMode
    from torchvision.transforms.v2 import functional as F

    image = Image.fromarray(pixels)
    tensor = torch.from_numpy(pixels.copy()).permute(2, 0, 1).contiguous()
    height, width = pixels.shape[:2]
    found: dict[str, tuple[Candidate, Candidate | None, Candidate | None]] = {}
    for name in ("bilinear", "bicubic", "lanczos"):
        filtering, mode = Image.Resampling[name.upper()], InterpolationMode[name.upper()]
        for size in (96, 160, 512):

            def torchs(mode: InterpolationMode = mode, size: int = size) -> Any:
                return F.resize(tensor, [size, size], interpolation=mode, antialias=True)

            found[f"resize to {size} {name}"] = (
                lambda n=name, s=size: feedline.resize_image(pixels, (s, s), interpolation=n),
                lambda f=filtering, s=size: image.resize((s, s), f),
                torchs if name != "lanczos" else None,  # torchvision supports this only for Pillow's images
            )
    moved = feedline.testing.elastic_displacement(height, width, (50.0, 50.0), (5.0, 5.0), index=0, stream=0)
    noise, displacement = moved.view(np.uint8).ravel(), torch.from_numpy(moved).permute(1, 2, 0)[None].contiguous()
    found["elastic bilinear"] = (
        lambda: feedline.testing.pixel_operation(pixels, "elastic", interpolation="bilinear", noise=noise),
        None,
        lambda: F.elastic(tensor, displacement, interpolation=InterpolationMode.BILINEAR),
    )
    return found


def cases(pixels: np.ndarray) -> dict[str, tuple[tuple[Any, ...], dict[str, Any], Candidate, Candidate | None]]:
    """Returns by name: Feedline's values and options, Pillow's call, and torchvision's, or None if it has none."""
    import torch
    from torchvision.transforms.v2 import InterpolationMode
    from torchvision.transforms.v2 import functional as F

    image = Image.fromarray(pixels)
    tensor = torch.from_numpy(pixels.copy()).permute(2, 0, 1).contiguous()
    height, width = pixels.shape[:2]
    shear, center = (1.0, 0.3, 0.0, 0.0, 1.0, 0.0), (width * 0.5, height * 0.5)
    turned = [float(v) for v in feedline._engine.inverse_affine_matrix(center, 12.0, (9.0, -5.0), 1.1, (8.0, 0.0))]
    corners = [(0.0, 0.0), (width - 1.0, 0.0), (width - 1.0, height - 1.0), (0.0, height - 1.0)]
    moved = [(11.0, 7.0), (width - 20.0, 3.0), (width - 5.0, height - 30.0), (17.0, height - 9.0)]
    view = feedline._engine.perspective_coefficients(corners, moved)
    modes = {"nearest": InterpolationMode.NEAREST, "bilinear": InterpolationMode.BILINEAR}
    resample = {name: Image.Resampling[name.upper()] for name in ("nearest", "bilinear", "bicubic")}
    found: dict[str, tuple[tuple[Any, ...], dict[str, Any], Candidate, Candidate | None]] = {
        "autocontrast": ((), {}, lambda: ImageOps.autocontrast(image), lambda: F.autocontrast(tensor)),
        "equalize": ((), {}, lambda: ImageOps.equalize(image), lambda: F.equalize(tensor)),
        "invert": ((), {}, lambda: ImageOps.invert(image), lambda: F.invert(tensor)),
        "posterize": ((4,), {}, lambda: ImageOps.posterize(image, 4), lambda: F.posterize(tensor, 4)),
        "solarize": ((110,), {}, lambda: ImageOps.solarize(image, 110), lambda: F.solarize(tensor, 110)),
        "solarize_add": (
            (44, 128), {}, lambda: image.point([min(255, i + 44) if i < 128 else i for i in range(256)] * 3), None,
        ),
        "brightness": (
            (1.4,), {}, lambda: ImageEnhance.Brightness(image).enhance(1.4), lambda: F.adjust_brightness(tensor, 1.4),
        ),
        "contrast": (
            (1.4,), {}, lambda: ImageEnhance.Contrast(image).enhance(1.4), lambda: F.adjust_contrast(tensor, 1.4),
        ),
        "saturation": (
            (1.4,), {}, lambda: ImageEnhance.Color(image).enhance(1.4), lambda: F.adjust_saturation(tensor, 1.4),
        ),
        "sharpness": (
            (1.4,), {}, lambda: ImageEnhance.Sharpness(image).enhance(1.4), lambda: F.adjust_sharpness(tensor, 1.4),
        ),
        "hue": ((0.1,), {}, lambda: adjust_hue(image, 0.1), lambda: F.adjust_hue(tensor, 0.1)),
        "grayscale": ((3,), {}, lambda: image.convert("L").convert("RGB"), lambda: F.rgb_to_grayscale(tensor, 3)),
        "erase": (
            (40, 30, 90, 80), {}, lambda: image.copy().paste((0, 0, 0), (40, 30, 130, 110)),
            lambda: F.erase(tensor, 30, 40, 80, 90, torch.zeros(3, 1, 1, dtype=torch.uint8)),
        ),
    }  # fmt: skip
    for size, sigma in ((3, 0.8), (9, 1.0), (23, 2.0)):
        found[f"gaussian_blur {size}"] = (
            (size, size, sigma, sigma), {}, None, lambda k=size, s=sigma: F.gaussian_blur(tensor, [k, k], [s, s]),
        )  # fmt: skip
    for name, filtering in resample.items():
        mode = modes.get(name)
        options = {"interpolation": name}

        def pillows(kind: Image.Transform, values: Any, filtering: Image.Resampling = filtering) -> Candidate:
            return lambda: image.transform(image.size, kind, values, filtering)

        def torchs(call: Callable[..., Any], *values: Any, mode: Any = mode, **named: Any) -> Candidate | None:
            return None if mode is None else lambda: call(tensor, *values, interpolation=mode, **named)

        found[f"translate {name}"] = (
            (1, 0, 31.0, 0, 1, 0), options, pillows(Image.Transform.AFFINE, (1, 0, 31.0, 0, 1, 0)),
            torchs(F.affine, angle=0.0, translate=[31, 0], scale=1.0, shear=[0.0, 0.0]),
        )  # fmt: skip
        found[f"shear {name}"] = (
            shear, options, pillows(Image.Transform.AFFINE, shear),
            torchs(F.affine, angle=0.0, translate=[0, 0], scale=1.0, shear=[16.7, 0.0]),
        )  # fmt: skip
        found[f"rotate {name}"] = (
            (17.0, 0), options, lambda f=filtering: image.rotate(17.0, f), torchs(F.rotate, 17.0),
        )  # fmt: skip
        found[f"affine {name}"] = (
            tuple(turned), options, pillows(Image.Transform.AFFINE, turned),
            torchs(F.affine, angle=12.0, translate=[9, -5], scale=1.1, shear=[8.0, 0.0]),
        )  # fmt: skip
        found[f"perspective {name}"] = (
            tuple(view), options, pillows(Image.Transform.PERSPECTIVE, view),
            torchs(F.perspective, startpoints=corners, endpoints=moved),
        )  # fmt: skip
    return found


def seconds(call: Candidate, at_least: float = 0.02) -> float:
    best, start = float("inf"), time.thread_time()
    while time.thread_time() - start < at_least or best == float("inf"):
        began = time.thread_time()
        call()
        best = min(best, time.thread_time() - began)
    return best


def ours(pixels: np.ndarray, name: str, values: tuple[Any, ...], options: dict[str, Any]) -> float:
    operation = {"translate": "affine", "shear": "affine"}.get(name.split()[0], name.split()[0])

    def best(runs: int) -> float:
        return min(feedline.testing.time_pixel_operation(pixels, operation, *values, runs=runs, **options))

    return best(max(3, int(0.02 / best(3))))


def timed(pixels: np.ndarray, rounds: int, only: str) -> dict[str, dict[str, float]]:
    """Returns the microseconds of each candidate, and the ratios of the others to Feedline."""
    table = {}
    rows: dict[str, tuple[Callable[[], float], Candidate | None, Candidate | None]] = {
        name: (lambda n=name, v=values, o=options: ours(pixels, n, v, o), pillow, torchvision)
        for name, (values, options, pillow, torchvision) in cases(pixels).items()
    }
    for name, (own, pillow, torchvision) in whole_calls(pixels).items():
        rows[name] = (lambda c=own: seconds(c), pillow, torchvision)
    for name, (own_seconds, pillow, torchvision) in rows.items():
        if only not in name:
            continue
        candidates: dict[str, Callable[[], float]] = {"feedline": own_seconds}
        for peer, call in (("pillow", pillow), ("torchvision", torchvision)):
            if call is not None:
                candidates[peer] = lambda c=call: seconds(c)
        found: dict[str, list[float]] = {candidate: [] for candidate in candidates}
        for turn in range(rounds):
            for candidate in list(candidates)[:: 1 if turn % 2 == 0 else -1]:
                found[candidate].append(candidates[candidate]())
        row = {f"{candidate} us": statistics.median(times) * 1e6 for candidate, times in found.items()}
        for peer in list(found)[1:]:
            ratios = [a / b for a, b in zip(found[peer], found["feedline"], strict=True)]
            row[f"{peer} / feedline"] = statistics.median(ratios)
        table[name] = row
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--sizes", default="500x375,224x224")
    parser.add_argument("--only", default="", help="only operations with names that contain this")
    parser.add_argument("--json", help="output file for the figures and the machine")
    arguments = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    tables = {}
    for size in arguments.sizes.split(","):
        width, height = map(int, size.split("x"))
        tables[size] = table = timed(photo(width, height), arguments.rounds, arguments.only)
        columns = ["feedline us", "pillow us", "torchvision us", "pillow / feedline", "torchvision / feedline"]
        print(f"\n{size}, RGB, {feedline.active_simd_variant()}\n| operation | " + " | ".join(columns) + " |")
        print("|" + "---|" * (len(columns) + 1))
        for name, row in table.items():
            print(f"| {name} | " + " | ".join(f"{row[c]:.1f}" if c in row else "-" for c in columns) + " |")
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"machine": measure.machine(), "rounds": arguments.rounds, "tables": tables}, file, indent=1)


if __name__ == "__main__":
    main()
