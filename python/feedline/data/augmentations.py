# SPDX-License-Identifier: Apache-2.0
"""Random changes of images, and the augmentations that choose among them by themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from . import arguments
from .operations import Fields, Operations


class Augmentations(Operations):
    """The part of a :class:`Dataset` that augments images.

    Names, arguments, defaults and probabilities are torchvision's; pixels are those of Pillow, bit for bit. Images are
    uint8, of 1 or 3 channels, and keep their size. ``p`` is a probability from 0 to 1. What is drawn for a sample
    follows from the seed, the epoch, the sample and the operation's place alone.

    Raises:
        ConfigError: at the call: an argument out of its range, an operation behind ``normalize`` or ``to_dtype``.
    """

    def random_invert(self, p: float = 0.5, *, fields: Fields = None) -> Self:
        """255 minus each value, as ``PIL.ImageOps.invert``."""
        where = "random_invert"
        return self._with(self._engine.random_invert(*_with_probability(where, fields, p)))

    def random_posterize(self, bits: int, p: float = 0.5, *, fields: Fields = None) -> Self:
        """Keeps the highest ``bits`` (0 to 8) of each value, as ``PIL.ImageOps.posterize``."""
        where = "random_posterize"
        kept = arguments.integer(where, "bits", bits, 0, 8)
        names, probability = _with_probability(where, fields, p)
        return self._with(self._engine.random_posterize(names, float(kept), probability))

    def random_solarize(self, threshold: float, p: float = 0.5, *, fields: Fields = None) -> Self:
        """Inverts the values from ``threshold`` (0 to 256) on, as ``PIL.ImageOps.solarize``."""
        where = "random_solarize"
        names, probability = _with_probability(where, fields, p)
        bound = arguments.real(where, "threshold", threshold)
        return self._with(self._engine.random_solarize(names, bound, probability))

    def random_adjust_sharpness(self, sharpness_factor: float, p: float = 0.5, *, fields: Fields = None) -> Self:
        """Sharpness times a factor, as ``PIL.ImageEnhance.Sharpness``: 0 blurs, 1 changes nothing, 2 doubles it."""
        where = "random_adjust_sharpness"
        names, probability = _with_probability(where, fields, p)
        factor = arguments.real(where, "sharpness_factor", sharpness_factor)
        return self._with(self._engine.random_adjust_sharpness(names, factor, probability))

    def random_autocontrast(self, p: float = 0.5, *, fields: Fields = None) -> Self:
        """Stretches each channel from 0 to 255, as ``PIL.ImageOps.autocontrast``."""
        return self._with(self._engine.random_autocontrast(*_with_probability("random_autocontrast", fields, p)))

    def random_equalize(self, p: float = 0.5, *, fields: Fields = None) -> Self:
        """Evens out the histogram of each channel, as ``PIL.ImageOps.equalize``."""
        return self._with(self._engine.random_equalize(*_with_probability("random_equalize", fields, p)))

    def random_grayscale(self, p: float = 0.1, *, fields: Fields = None) -> Self:
        """Luma in all channels, which stay as many, as ``PIL.Image.convert("L")`` has it."""
        return self._with(self._engine.random_grayscale(*_with_probability("random_grayscale", fields, p)))

    def auto_augment(
        self,
        policy: Any = "imagenet",
        interpolation: Any = "nearest",
        fill: int | Sequence[int] | None = None,
        *,
        fields: Fields = None,
    ) -> Self:
        """One of 25 learned pairs of changes (Cubuk et al., "AutoAugment", CVPR 2019, as torchvision has it).

        Args:
            policy: ``"imagenet"``, ``"cifar10"`` or ``"svhn"``, or torchvision's AutoAugmentPolicy.
            interpolation: ``"nearest"``, ``"bilinear"`` or ``"bicubic"``, of what moves pixels.
            fill: 0 to 255, one value or (red, green, blue): what comes from outside the image; None is black.
        """
        where = "auto_augment"
        word = arguments.choice(where, "policy", getattr(policy, "value", policy), ("imagenet", "cifar10", "svhn"))
        return self._with(
            self._engine.auto_augment(arguments.field_names(where, fields), word, *_moved(where, interpolation, fill))
        )

    def rand_augment(
        self,
        num_ops: int = 2,
        magnitude: int = 9,
        num_magnitude_bins: int = 31,
        interpolation: Any = "nearest",
        fill: int | Sequence[int] | None = None,
        *,
        fields: Fields = None,
    ) -> Self:
        """``num_ops`` changes of one magnitude (Cubuk et al., "RandAugment", 2020, as torchvision has it).

        Args:
            num_ops: how many, one after the other; at most 64.
            magnitude: which of the bins, from 0.
            num_magnitude_bins: how many bins there are, 2 or more.
            interpolation, fill: as for :meth:`auto_augment`.
        """
        where = "rand_augment"
        return self._with(
            self._engine.rand_augment(
                arguments.field_names(where, fields),
                arguments.integer(where, "num_ops", num_ops),
                arguments.integer(where, "magnitude", magnitude),
                arguments.integer(where, "num_magnitude_bins", num_magnitude_bins),
                *_moved(where, interpolation, fill),
            )
        )

    def trivial_augment_wide(
        self,
        num_magnitude_bins: int = 31,
        interpolation: Any = "nearest",
        fill: int | Sequence[int] | None = None,
        *,
        fields: Fields = None,
    ) -> Self:
        """One change of any magnitude (Mueller and Hutter, "TrivialAugment", ICCV 2021, as torchvision has it).

        Args:
            num_magnitude_bins: how many bins there are, 2 or more.
            interpolation, fill: as for :meth:`auto_augment`.
        """
        where = "trivial_augment_wide"
        return self._with(
            self._engine.trivial_augment_wide(
                arguments.field_names(where, fields),
                arguments.integer(where, "num_magnitude_bins", num_magnitude_bins),
                *_moved(where, interpolation, fill),
            )
        )


def _with_probability(where: str, fields: Fields, p: float) -> tuple[list[str], float]:
    return arguments.field_names(where, fields), arguments.real(where, "p", p)


def _moved(where: str, interpolation: Any, fill: Any) -> tuple[str, tuple[int, int, int]]:
    return arguments.interpolation(where, interpolation), arguments.color(where, fill)
