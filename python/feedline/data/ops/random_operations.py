# SPDX-License-Identifier: Apache-2.0
"""Blur and erasing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Self

from ...errors import ConfigError
from .. import arguments
from .geometry import Geometry
from .operations import Fields


class RandomOperations(Geometry):
    """The blur and random-erasing operations of :class:`Dataset`."""

    def gaussian_blur(
        self, kernel_size: int | Sequence[int], sigma: float | Sequence[float] = (0.1, 2.0), *, fields: Fields = None
    ) -> Self:
        """Applies a Gaussian blur with a random standard deviation for each sample, as torchvision's GaussianBlur does.

        Requires uint8 pixels. Results differ from torchvision's by at most one level. Borders are mirrored.

        Args:
            kernel_size: odd size in pixels, as one number or (along x, along y).
            sigma: standard deviation in pixels, above 0, or a range (low, high) from which it is drawn uniformly.
        """
        where = "gaussian_blur"
        sides = list(kernel_size) if isinstance(kernel_size, Sequence) else [kernel_size]
        if len(sides) not in (1, 2):
            raise ConfigError(f"{where}: kernel_size must be one number or (x, y), not {kernel_size!r}")
        x, y = [arguments.integer(where, "kernel_size", side) for side in sides] * (3 - len(sides))
        spread = (
            arguments.low_high(where, "sigma", sigma)
            if arguments.is_sequence(sigma)
            else (arguments.real(where, "sigma", sigma),) * 2
        )
        return self._operation(where, fields, kernel_size=(x, y), sigma=spread)

    def random_erasing(
        self,
        p: float = 0.5,
        scale: Sequence[float] = (0.02, 0.33),
        ratio: Sequence[float] = (0.3, 3.3),
        value: float | Sequence[float] | str = 0,
        inplace: bool = False,
        *,
        fields: Fields = None,
    ) -> Self:
        """Overwrites a random rectangle (Zhong et al., "Random Erasing Data Augmentation", as implemented in
        torchvision).

        Before ``normalize`` and ``to_dtype``, the operation changes uint8 pixels. After ``normalize`` or ``to_dtype``,
        it changes float values, and ``value`` must be in the units of these values. If ten attempts find no rectangle
        that fits, the image is unchanged.

        Args:
            p: probability, from 0 to 1.
            scale: range (low, high) of the rectangle's area, as a fraction of the image's area, between 0 and 1.
            ratio: range (low, high) of height divided by width, drawn uniformly in the logarithm.
            value: the new value, one number or one per channel; for uint8 pixels, integers from 0 to 255. ``"random"``
                writes a standard normal number to every value; uint8 pixels store its integer part modulo 256, as in
                torchvision.
            inplace: accepted for compatibility with torchvision; has no effect.
        """
        where = "random_erasing"
        arguments.flag(where, "inplace", inplace)
        if isinstance(value, str) and value != "random":
            raise ConfigError(f'{where}: value must be a number, one per channel, or "random", not {value!r}')
        values = [] if isinstance(value, str) else list(value) if isinstance(value, Sequence) else [value]
        if not values and not isinstance(value, str):
            raise ConfigError(f"{where}: value is empty; pass one number, or one per channel")
        written = {"noise": True} if isinstance(value, str) else {"value": values}
        return self._operation(where, fields, p=p, scale=scale, ratio=ratio, **written)

    def timm_random_erasing(
        self,
        probability: float = 0.5,
        min_area: float = 0.02,
        max_area: float = 1 / 3,
        min_aspect: float = 0.3,
        max_aspect: float | None = None,
        mode: Literal["const", "rand", "pixel"] = "const",
        min_count: int = 1,
        max_count: int | None = None,
        *,
        fields: Fields = None,
    ) -> Self:
        """Overwrites random rectangles as timm's RandomErasing does, usually after ``normalize``.

        Args:
            probability: probability, from 0 to 1.
            min_area, max_area: total area of the rectangles as a fraction of the image's area, from 0 to 1.
            min_aspect, max_aspect: range of height divided by width, drawn uniformly in the logarithm; None for
                ``max_aspect`` means ``1 / min_aspect``.
            mode: ``"const"`` writes zeros. ``"rand"`` writes one standard normal number per channel of a rectangle.
                ``"pixel"`` writes a separate standard normal number to every value. ``"rand"`` and ``"pixel"`` require
                float values, so place the operation after ``normalize`` or ``to_dtype``.
            min_count, max_count: range of the number of rectangles, drawn uniformly, at most 100; None for
                ``max_count`` means ``min_count``.
        """
        where = "timm_random_erasing"
        least = arguments.real(where, "min_aspect", min_aspect)
        if least <= 0:
            raise ConfigError(f"{where}: min_aspect must be above 0, not {min_aspect!r}")
        return self._operation(
            where,
            fields,
            probability=probability,
            min_area=min_area,
            max_area=max_area,
            min_aspect=least,
            max_aspect=1 / least if max_aspect is None else max_aspect,
            mode=mode,
            min_count=min_count,
            max_count=min_count if max_count is None else max_count,
        )
