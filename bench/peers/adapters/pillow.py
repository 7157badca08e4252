# SPDX-License-Identifier: Apache-2.0
"""torchvision's transforms on Pillow, for peers that transform images in the user's Python code. Random numbers, pixels
and arithmetic are the same as in torchvision's v1 classes, for which no wheel works with a torch without CUDA.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from PIL import Image
from work import MEAN, SHORTER, SIZE, STD, Work

from adapters import boxes

_BILINEAR = Image.Resampling.BILINEAR
_SCALE = (1 / (255 * np.array(STD))).astype(np.float32)
_SHIFT = (-np.array(MEAN) / np.array(STD)).astype(np.float32)


def picture(image: Any, work: Work, draw: Any = random) -> Any:
    """Returns the cropped, resized and flipped image as a Pillow image."""
    if work.train:
        left, top, width, height = boxes.crop_box(*image.size, draw)
        image = image.crop((left, top, left + width, top + height)).resize((SIZE, SIZE), _BILINEAR)
        return image.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if draw.random() < 0.5 else image
    scale = SHORTER / min(image.size)
    image = image.resize((int(image.width * scale), int(image.height * scale)), _BILINEAR)
    left, top = round((image.width - SIZE) / 2), round((image.height - SIZE) / 2)
    return image.crop((left, top, left + SIZE, top + SIZE))


def tensor(image: Any, work: Work) -> Any:
    """Returns a torch tensor in CHW: normalised float32, or unchanged uint8."""
    import torch

    pixels = torch.from_numpy(np.array(image)).permute(2, 0, 1)
    if not work.floating:
        return pixels
    pixels = pixels.contiguous().to(torch.float32).div_(255)
    return pixels.sub_(torch.tensor(MEAN)[:, None, None]).div_(torch.tensor(STD)[:, None, None])


def array(image: Any, work: Work) -> Any:
    """Does the same with NumPy only."""
    pixels = np.asarray(image)
    if work.floating:
        pixels = pixels * _SCALE + _SHIFT
    return np.ascontiguousarray(pixels.transpose(2, 0, 1))
