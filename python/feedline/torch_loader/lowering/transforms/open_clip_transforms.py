# SPDX-License-Identifier: Apache-2.0
"""OpenCLIP's own transforms, which its image_transform() combines with torchvision's."""

from __future__ import annotations

from typing import Any

from ....errors import ConfigError
from .chains import FLOATS, PIL, Chain, Family, Known, fill_of
from .torchvision_transforms import to_float, to_rgb


def _maybe_convert_mode(chain: Chain, t: Any) -> Any:
    if t.mode != "RGB":
        raise ConfigError(f"MaybeConvertMode({t.mode!r}) is not supported by the engine")
    return to_rgb(chain, t)


def _center_crop_or_pad(chain: Chain, t: Any) -> Any:
    return chain.dataset.center_crop(t.size, fill_of(chain, t.fill))


def _resize_keep_ratio(chain: Chain, t: Any) -> Any:
    """OpenCLIP contains a copy of an earlier version of timm's class, with a different factor for the aspect ratio."""
    if t.random_aspect_prob > 0:
        raise ConfigError("ResizeKeepRatio of open_clip with random_aspect_prob is not supported by the engine")
    return chain.dataset.resize_keep_ratio(
        t.size, t.longest, t.interpolation, t.random_scale_prob, t.random_scale_range
    )


def _by_chance(chain: Chain, t: Any, inner: Any) -> Any:
    """OpenCLIP's transform applies another transform with a given probability."""
    return chain.dataset.random_apply(inner, t.p)


def _members(t: Any) -> list[list[Any]]:
    return [[t.transf]]


_TRANSFORMS = {
    "_convert_to_rgb": Known((PIL,), to_rgb),
    "MaybeConvertMode": Known((PIL,), _maybe_convert_mode),
    "MaybeToTensor": Known((PIL,), to_float, FLOATS),
    "ResizeKeepRatio": Known((PIL,), _resize_keep_ratio),
    "CenterCropOrPad": Known((PIL,), _center_crop_or_pad),
    "color_jitter": Known((PIL,), _by_chance, members=_members),
    "gray_scale": Known((PIL,), _by_chance, members=_members),
}
OPEN_CLIP = Family(("open_clip.transform",), _TRANSFORMS)
