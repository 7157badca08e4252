# SPDX-License-Identifier: Apache-2.0
"""Converts torchvision's v1 and v2 transforms to operations of the engine.

A transform is supported if its effect on a PIL image equals that of the engine's operation of the same name. uint8
tensors are resized with torch's arithmetic, which the engine supports. torchvision's colour transforms round
differently for tensors, including all transforms after ToTensor, than for PIL images. For tensors, therefore, only
those that have equal results for every value are supported. If the engine does not support an argument, the transform
is not supported, and the engine's message is the reason.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Literal

import torch

from ....data.dataset import Dataset
from ....errors import ConfigError
from .chains import BYTES, FLOATS, PIL, TUPLE, Chain, Family, Known, keep, v2_fill

V1 = ("torchvision.transforms.transforms", "torchvision.transforms.autoaugment")
V2 = "torchvision.transforms.v2"
_V2_GEOMETRY = "torchvision.transforms.v2.functional._geometry"
_POLICY_BINS = 10  # for AutoAugment's magnitudes


def is_v1(transform: Any) -> bool:
    return type(transform).__module__ in V1


def check_ratio(t: Any) -> None:
    """Checks that the ratio is unchanged, because v2 draws from a stored logarithm of the ratio."""
    drawn_from = getattr(t, "_log_ratio", None)
    if drawn_from is not None and not torch.equal(drawn_from, torch.log(torch.tensor(t.ratio))):
        raise ConfigError(f"{type(t).__name__} uses a ratio that differs from its ratio={t.ratio!r}")


# -- geometry


def _interpolation(chain: Chain, t: Any) -> Any:
    """Returns the interpolation of a resize. For tensors, this is one of torch's interpolations."""
    if chain.flows != BYTES:
        return t.interpolation
    name, word = type(t).__name__, getattr(t.interpolation, "value", t.interpolation)
    if is_v1(t) or not resizes_uint8(word):
        raise ConfigError(f"{name} of {chain.flows} by {word!r} is not supported by the engine")
    if t.antialias is not True:
        raise ConfigError(f"{name} with antialias={t.antialias!r} is not supported by the engine")
    return f"torch_{word}"


def resizes_uint8(word: Any) -> bool:
    """Returns whether v2 resizes uint8 tensors directly rather than as float32. v2 uses float32 for bilinear
    interpolation without AVX2.
    """
    geometry = sys.modules.get(_V2_GEOMETRY)
    leaves_to_torch: Any = getattr(geometry, "_do_native_uint8_resize_on_cpu", None)
    modes: Any = getattr(geometry, "InterpolationMode", None)
    if word not in ("bilinear", "bicubic") or leaves_to_torch is None or modes is None:
        return False
    return bool(leaves_to_torch(modes(word)))


def _check_border(chain: Chain, t: Any) -> None:
    """Checks the padding mode. torchvision rejects some modes for tensors that it supports for PIL images."""
    if chain.flows == BYTES and t.padding_mode != "constant":
        name, mode = type(t).__name__, t.padding_mode
        raise ConfigError(f"{name} of {chain.flows} with padding_mode={mode!r} is not supported by the engine")


def _resize(chain: Chain, t: Any) -> Any:
    return chain.dataset.resize(t.size, _interpolation(chain, t), t.max_size)


def _center_crop(chain: Chain, t: Any) -> Any:
    return chain.dataset.center_crop(t.size)


def _random_crop(chain: Chain, t: Any) -> Any:
    _check_border(chain, t)
    return chain.dataset.random_crop(t.size, t.padding, t.pad_if_needed, v2_fill(chain, t), t.padding_mode)


def _random_resized_crop(chain: Chain, t: Any) -> Any:
    check_ratio(t)
    return chain.dataset.random_resized_crop(t.size, t.scale, t.ratio, _interpolation(chain, t))


def _random_horizontal_flip(chain: Chain, t: Any) -> Any:
    return chain.dataset.random_horizontal_flip(t.p)


def _random_vertical_flip(chain: Chain, t: Any) -> Any:
    return chain.dataset.random_vertical_flip(t.p)


def _pad(chain: Chain, t: Any) -> Any:
    _check_border(chain, t)
    return chain.dataset.pad(t.padding, v2_fill(chain, t), t.padding_mode)


def _five_crop(chain: Chain, t: Any) -> Any:
    return _images(chain, t).five_crop(t.size)


def _ten_crop(chain: Chain, t: Any) -> Any:
    return _images(chain, t).ten_crop(t.size, t.vertical_flip)


def _images(chain: Chain, t: Any) -> Any:
    if not isinstance(chain.dataset, Dataset):
        raise ConfigError(f"{type(t).__name__} within another transform is not supported by the engine")
    return chain.dataset


def _random_rotation(chain: Chain, t: Any) -> Any:
    return chain.dataset.random_rotation(t.degrees, t.interpolation, t.expand, t.center, v2_fill(chain, t))


def _random_affine(chain: Chain, t: Any) -> Any:
    return chain.dataset.random_affine(
        t.degrees, t.translate, t.scale, t.shear, t.interpolation, v2_fill(chain, t), t.center
    )


def _random_perspective(chain: Chain, t: Any) -> Any:
    return chain.dataset.random_perspective(t.distortion_scale, t.p, t.interpolation, v2_fill(chain, t))


def _elastic_transform(chain: Chain, t: Any) -> Any:
    alpha, sigma = (values if len(values) > 1 else values[0] for values in (t.alpha, t.sigma))
    if getattr(t.interpolation, "value", t.interpolation) == "bicubic":
        raise ConfigError(
            "ElasticTransform with bicubic interpolation is not supported by the engine: the values overflow"
        )
    return chain.dataset.elastic_transform(alpha, sigma, t.interpolation, v2_fill(chain, t))


def _random_resize(chain: Chain, t: Any) -> Any:
    return chain.dataset.random_resize(t.min_size, t.max_size, _interpolation(chain, t))


def _random_shortest_size(chain: Chain, t: Any) -> Any:
    return chain.dataset.random_short_side(t.min_size, t.max_size, _interpolation(chain, t))


def _scale_jitter(chain: Chain, t: Any) -> Any:
    return chain.dataset.scale_jitter(t.target_size, t.scale_range, _interpolation(chain, t))


# -- colours


def _grayscale(chain: Chain, t: Any) -> Any:
    return chain.dataset.grayscale(t.num_output_channels)


def to_rgb(chain: Chain, t: Any) -> Any:
    if chain.channels != 3:
        raise ConfigError("converting a grey image to RGB is not supported by the engine")
    return chain.dataset


def _color_jitter(chain: Chain, t: Any) -> Any:
    ranges = [0 if r is None else tuple(r) for r in (t.brightness, t.contrast, t.saturation, t.hue)]
    return chain.dataset.color_jitter(*ranges)


def _random_invert(chain: Chain, t: Any) -> Any:
    return chain.dataset.random_invert(t.p)


def _random_posterize(chain: Chain, t: Any) -> Any:
    return chain.dataset.random_posterize(t.bits, t.p)


def _random_solarize(chain: Chain, t: Any) -> Any:
    if chain.flows == BYTES and t.threshold > 255:
        raise ConfigError(f"torchvision rejects threshold={t.threshold!r} for tensors")
    return chain.dataset.random_solarize(t.threshold, t.p)


def _random_adjust_sharpness(chain: Chain, t: Any) -> Any:
    return chain.dataset.random_adjust_sharpness(t.sharpness_factor, t.p)


def _random_autocontrast(chain: Chain, t: Any) -> Any:
    return chain.dataset.random_autocontrast(t.p)


def _random_equalize(chain: Chain, t: Any) -> Any:
    return chain.dataset.random_equalize(t.p)


def _random_grayscale(chain: Chain, t: Any) -> Any:
    return chain.dataset.random_grayscale(t.p)


def _gaussian_blur(chain: Chain, t: Any) -> Any:
    return chain.dataset.gaussian_blur(list(t.kernel_size), t.sigma)


def _random_erasing(chain: Chain, t: Any) -> Any:
    check_ratio(t)
    value = "random" if t.value is None else t.value
    if isinstance(value, Sequence) and not isinstance(value, str):
        if len(value) not in (1, chain.channels):
            raise ConfigError(f"value={value!r} must have one value for each of {chain.channels} channels")
        value = list(value) if len(value) > 1 else value[0]
    return chain.dataset.random_erasing(t.p, t.scale, t.ratio, value)


# -- containers


def _random_apply(chain: Chain, t: Any, inner: Any) -> Any:
    return chain.dataset.random_apply(inner, t.p)


def _random_choice(chain: Chain, t: Any, *inner: Any) -> Any:
    return chain.dataset.random_choice(inner, t.p)


def _random_order(chain: Chain, t: Any, inner: Any) -> Any:
    return chain.dataset.random_order(inner)


def _in_one_list(t: Any) -> list[list[Any]]:
    return [list(t.transforms)]


def _one_by_one(t: Any) -> list[list[Any]]:
    return [[one] for one in t.transforms]


# -- automatic augmentation


def _auto_augment(chain: Chain, t: Any) -> Any:
    policies = t.policies if is_v1(t) else t._policies
    if policies != t._get_policies(t.policy):
        raise ConfigError("AutoAugment has policies that are not torchvision's")
    version = _version(t, _POLICY_BINS)
    return chain.dataset.auto_augment(t.policy, t.interpolation, v2_fill(chain, t), version=version)


def _rand_augment(chain: Chain, t: Any) -> Any:
    bins, fill, version = t.num_magnitude_bins, v2_fill(chain, t), _version(t, t.num_magnitude_bins)
    return chain.dataset.rand_augment(t.num_ops, t.magnitude, bins, t.interpolation, fill, version=version)


def _trivial_augment_wide(chain: Chain, t: Any) -> Any:
    bins, version = t.num_magnitude_bins, _version(t, t.num_magnitude_bins)
    return chain.dataset.trivial_augment_wide(bins, t.interpolation, v2_fill(chain, t), version=version)


def _version(t: Any, bins: int) -> Literal["v1", "v2"]:
    """Returns the version of the magnitudes, after checking that v2's magnitudes of solarize and posterize equal the
    engine's.
    """
    if is_v1(t) or bins < 2:
        return "v1"
    space = type(t)._AUGMENTATION_SPACE
    solarize, posterize = (space[name][0](bins, 1, 1) for name in ("Solarize", "Posterize"))
    fewest = 2 if type(t).__name__ == "TrivialAugmentWide" else 4
    bits = 8 - (torch.arange(bins) / ((bins - 1) / (8 - fewest))).round().int()
    if not torch.equal(solarize, torch.linspace(1.0, 0.0, bins)) or not torch.equal(posterize, bits):
        raise ConfigError(f"v2.{type(t).__name__} of this torchvision version has different magnitudes than the engine")
    return "v2"


# -- conversion to tensors


def to_float(chain: Chain, t: Any) -> Any:
    _require_float32(torch.get_default_dtype())  # the dtype of ToTensor's result
    return chain.dataset.to_dtype("float32", scale=True)


def _convert(chain: Chain, t: Any) -> Any:
    _require_float32(t.dtype)
    return chain.dataset.to_dtype("float32", scale=True)


def _to_dtype(chain: Chain, t: Any) -> Any:
    _require_float32(t.dtype)
    return chain.dataset.to_dtype("float32", scale=bool(t.scale))


def _normalize(chain: Chain, t: Any) -> Any:
    mean, std = (_channel_values(values, chain.channels) for values in (t.mean, t.std))
    return chain.dataset.normalize(mean, std)


def _require_float32(dtype: Any) -> None:
    if dtype is not torch.float32:
        raise ConfigError(f"the engine converts to torch.float32 here, not to {dtype}")


def _channel_values(values: Any, channels: int) -> list[float]:
    numbers = [float(value) for value in values]
    return numbers * channels if len(numbers) == 1 else numbers


_TRANSFORMS = {
    "Resize": Known((PIL, BYTES), _resize),
    "CenterCrop": Known((PIL, BYTES), _center_crop),
    "RandomCrop": Known((PIL, BYTES), _random_crop),
    "RandomResizedCrop": Known((PIL, BYTES), _random_resized_crop),
    "RandomHorizontalFlip": Known((PIL, BYTES, FLOATS), _random_horizontal_flip),
    "RandomVerticalFlip": Known((PIL, BYTES, FLOATS), _random_vertical_flip),
    "Pad": Known((PIL, BYTES), _pad),
    "FiveCrop": Known((PIL, BYTES), _five_crop, crops=TUPLE),
    "TenCrop": Known((PIL, BYTES), _ten_crop, crops=TUPLE),
    "RandomRotation": Known((PIL,), _random_rotation),
    "RandomAffine": Known((PIL,), _random_affine),
    "RandomPerspective": Known((PIL,), _random_perspective),
    "ElasticTransform": Known((PIL,), _elastic_transform),
    "RandomResize": Known((PIL, BYTES), _random_resize),
    "RandomShortestSize": Known((PIL, BYTES), _random_shortest_size),
    "ScaleJitter": Known((PIL, BYTES), _scale_jitter),
    "Grayscale": Known((PIL,), _grayscale, channels=lambda t: int(t.num_output_channels)),
    "RGB": Known((PIL, BYTES), to_rgb),
    "ColorJitter": Known((PIL,), _color_jitter),
    "RandomInvert": Known((PIL, BYTES), _random_invert),
    "RandomPosterize": Known((PIL, BYTES), _random_posterize),
    "RandomSolarize": Known((PIL, BYTES), _random_solarize),
    "RandomAdjustSharpness": Known((PIL,), _random_adjust_sharpness),
    "RandomAutocontrast": Known((PIL,), _random_autocontrast),
    "RandomEqualize": Known((PIL, BYTES), _random_equalize),
    "RandomGrayscale": Known((PIL,), _random_grayscale),
    "GaussianBlur": Known((PIL,), _gaussian_blur),
    "RandomErasing": Known((FLOATS,), _random_erasing),
    "RandomApply": Known((PIL, BYTES, FLOATS), _random_apply, members=_in_one_list),
    "RandomChoice": Known((PIL, BYTES, FLOATS), _random_choice, members=_one_by_one),
    "RandomOrder": Known((PIL, BYTES, FLOATS), _random_order, members=_in_one_list),
    "AutoAugment": Known((PIL,), _auto_augment),
    "RandAugment": Known((PIL,), _rand_augment),
    "TrivialAugmentWide": Known((PIL,), _trivial_augment_wide),
    "ToTensor": Known((PIL,), to_float, FLOATS),
    "PILToTensor": Known((PIL,), keep, BYTES),
    "ToImage": Known((PIL,), keep, BYTES),
    "ConvertImageDtype": Known((BYTES,), _convert, FLOATS),
    "ToDtype": Known((BYTES,), _to_dtype, FLOATS),
    "Normalize": Known((FLOATS,), _normalize, FLOATS),
    "ToPureTensor": Known((BYTES, FLOATS), keep),
    "Identity": Known((PIL, BYTES, FLOATS), keep),
}
TORCHVISION = Family((*V1, V2), _TRANSFORMS)
