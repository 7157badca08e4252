# SPDX-License-Identifier: Apache-2.0
"""Converts timm's transforms, as created by its create_transform(), to operations of the engine."""

from __future__ import annotations

import math
from typing import Any

import torch

from ....errors import ConfigError
from . import timm_policies as policies
from .chains import ARRAY, BYTES, FLOATS, PIL, Chain, Family, Known, fill_of, keep
from .torchvision_transforms import to_float

_RANDOM = ("bilinear", "bicubic")  # timm's choices for interpolation="random"


def _interpolation(value: Any) -> Any:
    """Returns one of timm's interpolations, or the name of a random choice between two of them for each image."""
    if not isinstance(value, (tuple, list)):
        return value
    words = tuple(getattr(item, "value", item) for item in value)
    if words != _RANDOM:
        raise ConfigError(f"interpolation={words!r} is not supported by the engine")
    return "random"


def _random_resized_crop(chain: Chain, t: Any) -> Any:
    return chain.dataset.random_resized_crop(t.size, t.scale, t.ratio, _interpolation(t.interpolation))


def _center_crop_or_pad(chain: Chain, t: Any) -> Any:
    return chain.dataset.center_crop(t.size, fill_of(chain, t.fill), t.padding_mode)


def _random_crop_or_pad(chain: Chain, t: Any) -> Any:
    return chain.dataset.random_crop_or_pad(t.size, fill_of(chain, t.fill), t.padding_mode)


def _resize_keep_ratio(chain: Chain, t: Any) -> Any:
    return chain.dataset.resize_keep_ratio(
        t.size, t.longest, _interpolation(t.interpolation), t.random_scale_prob, t.random_scale_range,
        bool(t.random_scale_area), t.random_aspect_prob, t.random_aspect_range,
    )  # fmt: skip


def _trim_border(chain: Chain, t: Any) -> Any:
    return chain.dataset.trim_border(t.border_size)


def _unscaled(chain: Chain, t: Any) -> Any:
    if t.dtype is not torch.float32:
        raise ConfigError(f"the engine converts to torch.float32 here, not to {t.dtype}")
    return chain.dataset.to_dtype("float32", scale=False)


def _random_erasing(chain: Chain, t: Any) -> Any:
    if t.device != "cpu" or (t.rand_color, t.per_pixel) != (t.mode == "rand", t.mode == "pixel"):
        raise ConfigError(f"RandomErasing on {t.device} is not supported by the engine")
    least, most = (math.exp(bound) for bound in t.log_aspect_ratio)
    return chain.dataset.timm_random_erasing(
        t.probability, t.min_area, t.max_area, least, most, t.mode or "const", t.min_count, t.max_count
    )


_TRANSFORMS = {
    "RandomResizedCropAndInterpolation": Known((PIL,), _random_resized_crop),
    "CenterCropOrPad": Known((PIL,), _center_crop_or_pad),
    "RandomCropOrPad": Known((PIL,), _random_crop_or_pad),
    "TrimBorder": Known((PIL,), _trim_border),
    "ResizeKeepRatio": Known((PIL,), _resize_keep_ratio),
    "MaybeToTensor": Known((PIL,), to_float, FLOATS),
    "MaybePILToTensor": Known((PIL,), keep, BYTES),
    "ToTensor": Known((PIL,), _unscaled, FLOATS),
    "RandAugment": Known((PIL,), policies.rand_augment),
    "AutoAugment": Known((PIL,), policies.auto_augment),
    "AugMixAugment": Known((PIL,), policies.aug_mix),
    "RandomErasing": Known((FLOATS,), _random_erasing),
    "ToNumpy": Known((PIL,), keep, ARRAY),
}
TIMM = Family(("timm.data.transforms", policies.MODULE, "timm.data.random_erasing"), _TRANSFORMS)
