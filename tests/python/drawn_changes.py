# SPDX-License-Identifier: Apache-2.0
"""Pillow calls of torchvision and timm for a change with a drawn amount, written independently of the
implementation.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from PIL import Image, ImageEnhance, ImageFilter, ImageOps


def _sheared(
    image: Image.Image, along_x: float, along_y: float, shift: tuple[float, float], **how: object
) -> Image.Image:
    x, y = (math.tan(math.radians(math.degrees(math.atan(amount)))) for amount in (along_x, along_y))
    sy = math.radians(math.degrees(math.atan(along_y)))
    a, b = math.cos(-sy) / math.cos(sy), -math.cos(-sy) * x / math.cos(sy) - math.sin(0.0)
    c, d = math.sin(-sy) / math.cos(sy), -math.sin(-sy) * x / math.cos(sy) + math.cos(0.0)
    middle = (0.0, 0.0) if along_x or along_y else (image.width * 0.5, image.height * 0.5)
    matrix = [d, -b, 0.0, -c, a, 0.0]
    matrix[2] += matrix[0] * (-middle[0] - shift[0]) + matrix[1] * (-middle[1] - shift[1]) + middle[0]
    matrix[5] += matrix[3] * (-middle[0] - shift[0]) + matrix[4] * (-middle[1] - shift[1]) + middle[1]
    assert y == pytest.approx(along_y)
    return image.transform(image.size, Image.Transform.AFFINE, matrix, how["resample"], fillcolor=how["fillcolor"])


def augmented(image: Image.Image, name: str, amount: float, resample: Image.Resampling, fill: object) -> Image.Image:
    """torchvision's calls."""
    how = {"resample": resample, "fillcolor": fill}
    by_name: dict[str, Callable[[], Image.Image]] = {
        "shear_x": lambda: _sheared(image, amount, 0, (0, 0), **how),
        "shear_y": lambda: _sheared(image, 0, amount, (0, 0), **how),
        "translate_x": lambda: _sheared(image, 0, 0, (amount, 0), **how),
        "translate_y": lambda: _sheared(image, 0, 0, (0, amount), **how),
        "rotate": lambda: image.rotate(amount, resample, fillcolor=fill),
        "brightness": lambda: ImageEnhance.Brightness(image).enhance(amount),
        "color": lambda: ImageEnhance.Color(image).enhance(amount),
        "contrast": lambda: ImageEnhance.Contrast(image).enhance(amount),
        "sharpness": lambda: ImageEnhance.Sharpness(image).enhance(amount),
        "posterize": lambda: ImageOps.posterize(image, int(amount)),
        "solarize": lambda: ImageOps.solarize(image, amount),
        "autocontrast": lambda: ImageOps.autocontrast(image),
        "equalize": lambda: ImageOps.equalize(image),
        "invert": lambda: ImageOps.invert(image),
    }
    return by_name[name]()


def augmented_by_timm(
    image: Image.Image, name: str, amount: float, resample: Image.Resampling, fill: object
) -> Image.Image:
    """timm's calls: geometry with its own matrices, posterize with 0 bits, and solarize_add."""
    matrices = {
        "shear_x": (1, amount, 0, 0, 1, 0),
        "shear_y": (1, 0, 0, amount, 1, 0),
        "translate_x": (1, 0, amount, 0, 1, 0),
        "translate_y": (1, 0, 0, 0, 1, amount),
    }
    if name in matrices:
        return image.transform(image.size, Image.Transform.AFFINE, matrices[name], resample, fillcolor=fill)
    if name == "solarize_add":
        table = [min(255, i + int(amount)) if i < 128 else i for i in range(256)]
        return image.point(table * len(image.getbands()))
    if name == "gaussian_blur":
        return image.filter(ImageFilter.GaussianBlur(amount))
    if name == "posterize" and amount == 0:
        return image.point(lambda _: 0)
    return augmented(image, name, amount, resample, fill)
