# SPDX-License-Identifier: Apache-2.0
"""Random colour operations, augmentation policies, and operations that apply chains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

from ... import _engine
from ...errors import ConfigError
from .. import arguments
from .operations import Fields
from .random_operations import RandomOperations

if TYPE_CHECKING:
    from .chain import Chain


class Augmentations(RandomOperations):
    """The methods of :class:`Dataset` that augment images.

    Names, arguments, defaults and probabilities are torchvision's; pixels match Pillow, bit for bit. Images are uint8
    with 1 or 3 channels and keep their size. ``p`` is a probability from 0 to 1. Random draws depend only on the seed,
    the epoch, the sample and the operation's position.

    Raises:
        ConfigError: an argument is out of range, or the operation follows ``normalize`` or ``to_dtype``. This error is
            raised at the call.
    """

    def random_invert(self, p: float = 0.5, *, fields: Fields = None) -> Self:
        """Inverts pixels to 255 minus the value, like ``PIL.ImageOps.invert``."""
        return self._operation("random_invert", fields, p=p)

    def random_posterize(self, bits: int, p: float = 0.5, *, fields: Fields = None) -> Self:
        """Keeps the highest ``bits`` (0 to 8) of each value, like ``PIL.ImageOps.posterize``."""
        return self._operation("random_posterize", fields, bits=bits, p=p)

    def random_solarize(self, threshold: float, p: float = 0.5, *, fields: Fields = None) -> Self:
        """Inverts values of at least ``threshold`` (0 to 256), like ``PIL.ImageOps.solarize``."""
        return self._operation("random_solarize", fields, threshold=threshold, p=p)

    def random_adjust_sharpness(self, sharpness_factor: float, p: float = 0.5, *, fields: Fields = None) -> Self:
        """Multiplies sharpness by a factor: 0 blurs, 2 doubles it. Same as ``PIL.ImageEnhance.Sharpness``."""
        return self._operation("random_adjust_sharpness", fields, sharpness_factor=sharpness_factor, p=p)

    def random_autocontrast(self, p: float = 0.5, *, fields: Fields = None) -> Self:
        """Stretches each channel to the range 0 to 255, like ``PIL.ImageOps.autocontrast``."""
        return self._operation("random_autocontrast", fields, p=p)

    def random_equalize(self, p: float = 0.5, *, fields: Fields = None) -> Self:
        """Equalizes the histogram of each channel, like ``PIL.ImageOps.equalize``."""
        return self._operation("random_equalize", fields, p=p)

    def random_grayscale(self, p: float = 0.1, *, fields: Fields = None) -> Self:
        """Sets all channels to luma, like ``PIL.Image.convert("L")``; the number of channels does not change."""
        return self._operation("random_grayscale", fields, p=p)

    def auto_augment(
        self,
        policy: Any = "imagenet",
        interpolation: Any = "nearest",
        fill: int | Sequence[int] | None = None,
        *,
        version: Literal["v1", "v2"] = "v1",
        fields: Fields = None,
    ) -> Self:
        """Applies one of 25 learned pairs of operations (Cubuk et al., "AutoAugment", CVPR 2019, as in torchvision).

        Args:
            policy: ``"imagenet"``, ``"cifar10"`` or ``"svhn"``, or torchvision's AutoAugmentPolicy.
            interpolation: ``"nearest"``, ``"bilinear"``, ``"bicubic"`` or ``"random"``, for geometric operations.
            fill: value of pixels from outside the image, from 0 to 255: one value or (red, green, blue); None is black.
            version: ``"v1"`` uses the solarize thresholds of ``torchvision.transforms``, ``"v2"`` those of
                ``torchvision.transforms.v2``, some of which are larger by a millionth.
        """
        return self._operation(
            "auto_augment",
            fields,
            policy=getattr(policy, "value", policy),
            interpolation=interpolation,
            fill=fill,
            version=version,
        )

    def rand_augment(
        self,
        num_ops: int = 2,
        magnitude: int = 9,
        num_magnitude_bins: int = 31,
        interpolation: Any = "nearest",
        fill: int | Sequence[int] | None = None,
        *,
        version: Literal["v1", "v2"] = "v1",
        fields: Fields = None,
    ) -> Self:
        """Applies ``num_ops`` random operations with the same magnitude (Cubuk et al., "RandAugment", 2020, as in
        torchvision).

        Args:
            num_ops: number of operations, applied in sequence; at most 64.
            magnitude: index of the magnitude bin, from 0.
            num_magnitude_bins: number of bins, 2 or more.
            interpolation, fill, version: as for :meth:`auto_augment`.
        """
        return self._operation(
            "rand_augment",
            fields,
            num_ops=num_ops,
            magnitude=magnitude,
            num_magnitude_bins=num_magnitude_bins,
            interpolation=interpolation,
            fill=fill,
            version=version,
        )

    def trivial_augment_wide(
        self,
        num_magnitude_bins: int = 31,
        interpolation: Any = "nearest",
        fill: int | Sequence[int] | None = None,
        *,
        version: Literal["v1", "v2"] = "v1",
        fields: Fields = None,
    ) -> Self:
        """Applies one random operation with a random magnitude (Mueller and Hutter, "TrivialAugment", ICCV 2021, as in
        torchvision).

        Args:
            num_magnitude_bins: number of bins, 2 or more.
            interpolation, fill, version: as for :meth:`auto_augment`.
        """
        return self._operation(
            "trivial_augment_wide",
            fields,
            num_magnitude_bins=num_magnitude_bins,
            interpolation=interpolation,
            fill=fill,
            version=version,
        )

    def aug_mix(
        self,
        severity: int = 3,
        mixture_width: int = 3,
        chain_depth: int = -1,
        alpha: float = 1.0,
        all_ops: bool = True,
        interpolation: Any = "bilinear",
        fill: int | Sequence[int] | None = None,
        *,
        fields: Fields = None,
    ) -> Self:
        """Blends the image with the results of random chains of operations (Hendrycks et al., "AugMix", ICLR 2020, as
        in torchvision).

        Args:
            severity: number of magnitude bins, 1 to 10, from which magnitudes are drawn.
            mixture_width: number of chains, 1 to 32.
            chain_depth: number of operations in each chain, at most 64; a value below 1 draws 1 to 3.
            alpha: parameter of the Dirichlet and Beta distributions of the weights, above 0.
            all_ops: True includes brightness, colour, contrast and sharpness.
            interpolation, fill: as for :meth:`auto_augment`.
        """
        return self._operation(
            "aug_mix",
            fields,
            severity=severity,
            mixture_width=mixture_width,
            chain_depth=chain_depth,
            alpha=alpha,
            all_ops=all_ops,
            interpolation=interpolation,
            fill=fill,
        )

    def timm_augment(
        self,
        config: str,
        img_mean: int | Sequence[int] = (124, 116, 104),
        interpolation: Any = "random",
        translate_pct: float | None = None,
        *,
        fields: Fields = None,
    ) -> Self:
        """Applies a timm policy string: ``"rand-m9-mstd0.5-inc1"``, ``"original-mstd0.5"``, ``"augmix-m5-w4"``.

        Args:
            config: begins with ``rand``, ``original``, ``originalr``, ``v0``, ``v0r``, ``3a`` or ``augmix``, followed
                by sections in timm's syntax. ``rand`` accepts the operation sets ``tweights``, ``t3a`` and ``t3aw``.
            img_mean: value of pixels from outside the image, from 0 to 255: one value or (red, green, blue).
            interpolation: ``"nearest"``, ``"bilinear"`` or ``"bicubic"``; ``"random"`` draws bilinear or bicubic for
                each operation.
            translate_pct: translation at level 10, as a fraction of the image's side; None is 0.45, or 0.3 for
                ``augmix``, as in timm's ``create_transform``.
        """
        where = "timm_augment"
        if not isinstance(config, str):
            raise ConfigError(f'{where}: config must be text such as "rand-m9-mstd0.5-inc1", not {config!r}')
        share = (0.3 if config.startswith("augmix") else 0.45) if translate_pct is None else translate_pct
        return self._operation(
            where, fields, config=config, img_mean=img_mean, interpolation=interpolation, translate_pct=share
        )

    def random_apply(self, chain: Chain, p: float = 0.5, *, fields: Fields = None) -> Self:
        """Applies all operations of a chain, or none: ``random_apply(feedline.chain().gaussian_blur(23), p=0.1)``.

        Geometric operations in a chain transform masks too. Operations that accept a chain can be nested two levels
        deep. A chain cannot contain ``normalize`` or ``to_dtype``. If all images of a batch must have the same size,
        the chain must not change the size, or a later operation must set it.

        Args:
            chain: from :func:`feedline.chain`.
            p: probability of applying the chain, from 0 to 1.
        """
        return self._operation("random_apply", fields, chain=_engine_of("random_apply", chain), p=p)

    def random_choice(
        self, chains: Sequence[Chain], p: Sequence[float] | None = None, *, fields: Fields = None
    ) -> Self:
        """Applies one of several chains, which follow the rules of :meth:`random_apply`.

        Args:
            chains: one or more chains from :func:`feedline.chain`. An empty chain leaves the image unchanged.
            p: a non-negative weight for each chain; None gives all chains the same weight.
        """
        where = "random_choice"
        if not arguments.is_sequence(chains):
            raise ConfigError(f"{where}: chains must be a sequence of feedline.chain(), not {chains!r}")
        weights = [] if p is None else arguments.channel_values(where, "p", p)
        if p is not None and len(weights) != len(chains):
            raise ConfigError(f"{where}: p must have one number for each of {len(chains)} chains, not {p!r}")
        engines = [_engine_of(where, chain) for chain in chains]
        return self._operation(where, fields, chains=engines, p=weights)

    def random_order(self, chain: Chain, *, fields: Fields = None) -> Self:
        """Applies all operations of a chain, which follows the rules of :meth:`random_apply`, in random order.

        Args:
            chain: from :func:`feedline.chain`.
        """
        return self._operation("random_order", fields, chain=_engine_of("random_order", chain))


def _engine_of(where: str, chain: Any) -> _engine.Dataset:
    from .chain import Chain

    if not isinstance(chain, Chain):
        raise ConfigError(f"{where}: a chain must come from feedline.chain(), not {chain!r}")
    return chain._engine
