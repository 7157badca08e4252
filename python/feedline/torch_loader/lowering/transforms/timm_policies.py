# SPDX-License-Identifier: Apache-2.0
"""Converts timm's RandAugment, AutoAugment and AugMixAugment, as created by timm's functions, to the engine's
`timm_augment`.

The engine accepts timm's configuration strings. timm's objects do not store their strings, so a string is reconstructed
from an object's attributes. If no string produces an attribute's value, an error names the attribute.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy

from ....errors import ConfigError
from .chains import Chain, is_altered

MODULE = "timm.data.auto_augment"
_RANDOM = (2, 3)  # the interpolations, by Pillow's numbers, from which timm chooses for each operation
_HIGHEST = 10  # maximum level without magnitude_max

_ENHANCERS = ("Color", "Contrast", "Brightness", "Sharpness")
# For each operation: its function in the module, the function that converts its level, and that function's arguments.
_CHANGES: dict[str, tuple[Any, ...]] = {
    "AutoContrast": ("auto_contrast", None),
    "Equalize": ("equalize", None),
    "Invert": ("invert", None),
    "Rotate": ("rotate", "_rotate_level_to_arg"),
    "Posterize": ("posterize", "_posterize_level_to_arg"),
    "PosterizeIncreasing": ("posterize", "_posterize_increasing_level_to_arg"),
    "PosterizeOriginal": ("posterize", "_posterize_original_level_to_arg"),
    "Solarize": ("solarize", "_solarize_level_to_arg"),
    "SolarizeIncreasing": ("solarize", "_solarize_increasing_level_to_arg"),
    "SolarizeAdd": ("solarize_add", "_solarize_add_level_to_arg"),
    "ShearX": ("shear_x", "_shear_level_to_arg"),
    "ShearY": ("shear_y", "_shear_level_to_arg"),
    "TranslateXRel": ("translate_x_rel", "_translate_rel_level_to_arg"),
    "TranslateYRel": ("translate_y_rel", "_translate_rel_level_to_arg"),
    "Desaturate": ("desaturate", "_minmax_level_to_arg", {"min_val": 0.5, "max_val": 1.0}),
    "GaussianBlur": ("gaussian_blur", "_minmax_level_to_arg", {"min_val": 0.1, "max_val": 2.0}),
    "GaussianBlurRand": ("gaussian_blur_rand", "_minmax_level_to_arg"),
    **{name: (name.lower(), "_enhance_level_to_arg") for name in _ENHANCERS},
    **{name + "Increasing": (name.lower(), "_enhance_increasing_level_to_arg") for name in _ENHANCERS},
}
_MOVES = ("Rotate", "ShearX", "ShearY", "TranslateXRel", "TranslateYRel")
_PLAIN = {"AutoContrast", "Equalize", "Invert", "Posterize", "Solarize", "SolarizeAdd", *_ENHANCERS, *_MOVES}
_INCREASING = {name + "Increasing" if name in (*_ENHANCERS, "Posterize", "Solarize") else name for name in _PLAIN}
_MIXED = _INCREASING - {"Invert", "SolarizeAdd"}
_WEIGHTS = {
    **dict.fromkeys(_INCREASING, 0.05),
    **dict.fromkeys(("ColorIncreasing", "SharpnessIncreasing", "AutoContrast"), 0.25),
    "Rotate": 3,
    "ShearX": 2,
    "ShearY": 2,
    "TranslateXRel": 1,
    "TranslateYRel": 1,
}
_THREE = ("SolarizeIncreasing", "Desaturate", "GaussianBlur")
_WEIGHTS_OF_THREE = {
    **dict.fromkeys(_INCREASING - {"SolarizeAdd", "TranslateXRel", "TranslateYRel"}, 1),
    **dict.fromkeys(_THREE, 6),
    "Rotate": 3,
    "ShearX": 2,
    "ShearY": 2,
}
_POLICIES = ("original", "originalr", "v0", "v0r", "3a")


def rand_augment(chain: Chain, t: Any) -> Any:
    first = _alike(t, t.ops)
    names = [op.name for op in t.ops]
    sections = [f"m{_whole('magnitude', first.magnitude)}", f"n{_whole('num_layers', t.num_layers)}"]
    sections += [f"p{_decimal('prob', first.prob)}", *_noise(t, first)]
    if first.magnitude_max:
        sections.append(f"mmax{_whole('magnitude_max', first.magnitude_max)}")
    if t.choice_weights is not None:
        sections.append(_weighted(names, t.choice_weights))
    elif sorted(names) == sorted(_INCREASING):
        sections.append("inc1")
    elif sorted(names) == sorted(_THREE):
        sections.append("t3a")
    elif sorted(names) != sorted(_PLAIN):
        raise ConfigError(f"RandAugment with these operations is not supported: {', '.join(names)}")
    return _augment(chain, "-".join(["rand", *sections]), t.ops)


def auto_augment(chain: Chain, t: Any) -> Any:
    ops = [op for part in t.policy for op in part]
    first = _alike(t, ops, but=("prob", "magnitude"))
    _standard_levels(t, first)
    names = [[(op.name, op.prob, op.magnitude) for op in part] for part in t.policy]
    for name in _POLICIES:
        made = getattr(_module(t), f"auto_augment_policy_{name}", None)  # older versions have fewer
        policy = [] if made is None else made(first.hparams)
        if names == [[(op.name, op.prob, op.magnitude) for op in part] for part in policy]:
            return _augment(chain, "-".join([name, *_noise(t, first, is_rand=False)]), ops)
    raise ConfigError("AutoAugment with a policy other than timm's is not supported")


def aug_mix(chain: Chain, t: Any) -> Any:
    first = _alike(t, t.ops)
    _standard_levels(t, first)
    if sorted(op.name for op in t.ops) != sorted(_MIXED) or first.prob != 1:
        raise ConfigError("AugMixAugment with operations other than timm's is not supported")
    sections = [f"m{_whole('magnitude', first.magnitude)}", f"w{_whole('width', t.width)}"]
    sections += [f"a{_decimal('alpha', t.alpha)}"]
    sections += [f"d{_whole('depth', t.depth)}"] if t.depth > 0 else []
    sections += ["b1"] if t.blended else []
    sections += [] if math.isinf(first.magnitude_std) else _noise(t, first)
    return _augment(chain, "-".join(["augmix", *sections]), t.ops)


def _augment(chain: Chain, config: str, ops: Sequence[Any]) -> Any:
    first = ops[0]
    fill, resample = first.kwargs["fillcolor"], first.kwargs["resample"]
    if chain.channels == 1 and isinstance(fill, int):
        fill = (fill,) * 3
    elif not isinstance(fill, tuple) or len(fill) != chain.channels:
        raise ConfigError(f"fillcolor={fill!r} must have one value for each of {chain.channels} channels")
    if isinstance(resample, (tuple, list)):
        if tuple(resample) != _RANDOM:
            raise ConfigError(f"resample={resample!r} is not supported by the engine")
        resample = "random"
    translate = first.hparams.get("translate_pct", 0.45)
    return chain.dataset.timm_augment(config, fill, resample, translate)


def _module(t: Any) -> Any:
    return sys.modules[type(t).__module__]


def _alike(t: Any, ops: Sequence[Any], but: tuple[str, ...] = ()) -> Any:
    """Returns the first operation. All operations must be equal except for their names and the attributes in `but`."""
    if not ops:
        raise ConfigError(f"{type(t).__name__} has no operations to choose from")
    shared = [name for name in ("prob", "magnitude", "magnitude_std", "magnitude_max", "kwargs") if name not in but]
    first = ops[0]
    for op in ops:
        _check(t, op)
        for name in shared:
            if getattr(op, name) != getattr(first, name):
                raise ConfigError(f"the operations of {type(t).__name__} differ in {name}")
        if op.hparams.get("translate_pct") != first.hparams.get("translate_pct"):
            raise ConfigError(f"the operations of {type(t).__name__} differ in translate_pct")
    if set(first.kwargs) != {"fillcolor", "resample"}:
        raise ConfigError(f"the operations of {type(t).__name__} have the arguments {', '.join(first.kwargs)}")
    return first


def _check(t: Any, op: Any) -> None:
    """Checks that `op` is one of timm's operations and has timm's functions for its name."""
    module = _module(t)
    known = _CHANGES.get(getattr(op, "name", ""))
    if type(op) is not module.AugmentOp or is_altered(op) or known is None:
        name = getattr(op, "name", type(op).__name__)
        raise ConfigError(f"{type(t).__name__} has {name}, which is not supported by the engine")
    if not (_is_of(module, op.aug_fn, known[0]) and _is_of(module, op.level_fn, *known[1:])):
        raise ConfigError(f"{op.name} of {type(t).__name__} has a function that is not timm's")


def _is_of(
    module: Any, function: Callable[..., Any] | None, name: str | None, arguments: dict[str, Any] | None = None
) -> bool:
    if name is None:
        return function is None
    if arguments is not None:
        if type(function) is not functools.partial or function.args or function.keywords != arguments:
            return False
        function = function.func
    written = (getattr(function, "__module__", ""), getattr(function, "__qualname__", ""))
    return written == (module.__name__, name) and getattr(module, name) is function


def _standard_levels(t: Any, op: Any) -> None:
    if op.magnitude_max not in (None, 0, _HIGHEST):
        raise ConfigError(f"{type(t).__name__} with magnitude_max={op.magnitude_max!r} is not supported by the engine")


def _noise(t: Any, op: Any, is_rand: bool = True) -> list[str]:
    std = op.magnitude_std
    if std == math.inf and is_rand:
        return ["mstd101"]  # in timm's notation: uniform above 100
    if not (0 <= std <= 100 if is_rand else 0 <= std < math.inf):
        raise ConfigError(f"{type(t).__name__} with magnitude_std={std!r} is not supported by the engine")
    return [f"mstd{_decimal('magnitude_std', std)}"] if std else ["mstd0"]


def _weighted(names: Sequence[str], weights: Any) -> str:
    for section, table in (("tweights", _WEIGHTS), ("t3aw", _WEIGHTS_OF_THREE)):
        wanted = [table.get(name, 0.0) / sum(table.values()) for name in names]
        if sorted(names) == sorted(table) and numpy.allclose(weights, wanted, rtol=1e-12, atol=0):
            return section
    raise ConfigError("RandAugment has weights that are not timm's")


def _whole(name: str, value: Any) -> int:
    if isinstance(value, bool) or value != int(value):
        raise ConfigError(f"{name}={value!r} must be a whole number for the engine")
    return int(value)


def _decimal(name: str, value: Any) -> str:
    """Formats a number without an exponent, since the exponent's sign would end the string's section."""
    number = float(value)
    if not (math.isfinite(number) and number >= 0):
        raise ConfigError(f"{name}={value!r} is not supported by the engine")
    return str(numpy.format_float_positional(number, trim="-"))
