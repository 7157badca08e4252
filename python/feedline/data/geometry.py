# SPDX-License-Identifier: Apache-2.0
"""Resizes of every kind, borders up to a size, and changes of where pixels stand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

from . import arguments, words
from .detection import Detection
from .operations import Fields


class Geometry(Detection):
    """The part of a :class:`Dataset` that turns, slants, bends and resizes images, by chance or to fit.

    Names, arguments, defaults and what is drawn are torchvision's where it has the operation. Images have Pillow's
    pixels, bit for bit; masks go along, the nearest label each time and 0 from outside, as torchvision v2 moves them.
    ``fill`` is 0 to 255, one value or (red, green, blue); ``interpolation="random"`` is bilinear or bicubic, drawn for
    each image.

    Raises:
        ConfigError: at the call: an argument out of its range, an operation behind ``normalize`` or ``to_dtype``.
    """

    def random_rotation(
        self,
        degrees: float | Sequence[float],
        interpolation: Any = "nearest",
        expand: bool = False,
        center: Sequence[float] | None = None,
        fill: int | Sequence[int] | None = 0,
        *,
        fields: Fields = None,
    ) -> Self:
        """Turns the image counterclockwise by an angle from ``degrees``, uniformly, as ``PIL.Image.rotate``.

        Args:
            degrees: (low, high), or a number d for (-d, d).
            interpolation: ``"nearest"``, ``"bilinear"``, ``"bicubic"`` or ``"random"``.
            expand: the image grows until it holds all of the rotated one; else it keeps its size.
            center: (x, y) in pixels from the top left; None is the middle.
            fill: where the image has no pixel.
        """
        where = "random_rotation"
        return self._with(
            self._engine.random_rotation(
                arguments.field_names(where, fields),
                arguments.angles(where, "degrees", degrees),
                arguments.interpolation(where, interpolation),
                arguments.flag(where, "expand", expand),
                _center(where, center),
                arguments.color(where, fill),
            )
        )

    def random_affine(
        self,
        degrees: float | Sequence[float],
        translate: Sequence[float] | None = None,
        scale: Sequence[float] | None = None,
        shear: float | Sequence[float] | None = None,
        interpolation: Any = "nearest",
        fill: int | Sequence[int] | None = 0,
        center: Sequence[float] | None = None,
        *,
        fields: Fields = None,
    ) -> Self:
        """Turns, shifts, scales and slants the image around its middle, which keeps its size.

        Args:
            degrees: clockwise, (low, high), or a number d for (-d, d); 0 turns nothing.
            translate: the most that it is shifted, as shares (0 to 1) of width and height; whole pixels are drawn.
            scale: (low, high) of the factor, above 0.
            shear: degrees: s for (-s, s) along x, (low, high) along x, or (low, high, low, high) along x and y.
            interpolation: ``"nearest"``, ``"bilinear"``, ``"bicubic"`` or ``"random"``.
            fill: where the image has no pixel.
            center: (x, y) in pixels from the top left; None is the middle.
        """
        where = "random_affine"
        along_x, along_y = arguments.shears(where, shear)
        return self._with(
            self._engine.random_affine(
                arguments.field_names(where, fields),
                arguments.angles(where, "degrees", degrees),
                None if translate is None else arguments.pair(where, "translate", translate),
                None if scale is None else arguments.low_high(where, "scale", scale),
                along_x,
                along_y,
                arguments.interpolation(where, interpolation),
                arguments.color(where, fill),
                _center(where, center),
            )
        )

    def random_perspective(
        self,
        distortion_scale: float = 0.5,
        p: float = 0.5,
        interpolation: Any = "bilinear",
        fill: int | Sequence[int] | None = 0,
        *,
        fields: Fields = None,
    ) -> Self:
        """With probability ``p``, moves each corner inwards by up to half of the image times ``distortion_scale``.

        Args:
            distortion_scale: 0 to 1.
            p: 0 to 1.
            interpolation: ``"nearest"``, ``"bilinear"``, ``"bicubic"`` or ``"random"``.
            fill: where the image has no pixel.
        """
        where = "random_perspective"
        return self._with(
            self._engine.random_perspective(
                arguments.field_names(where, fields),
                arguments.real(where, "distortion_scale", distortion_scale),
                arguments.real(where, "p", p),
                arguments.interpolation(where, interpolation),
                arguments.color(where, fill),
            )
        )

    def elastic_transform(
        self,
        alpha: float | Sequence[float] = 50.0,
        sigma: float | Sequence[float] = 5.0,
        interpolation: Any = "bilinear",
        fill: int | Sequence[int] | None = 0,
        *,
        fields: Fields = None,
    ) -> Self:
        """Bends the image: each pixel comes from elsewhere, by smooth noise (Simard et al., ICDAR 2003).

        torchvision v2's on tensors, within one level of it for the same noise. What bicubic makes of bytes below 0 and
        above 255, which wraps in torchvision, is cut to them.

        Args:
            alpha: how far, in pixels, of noise from -1 to 1 before it is blurred; one number or (x, y).
            sigma: of the Gaussian blur of the noise, pixels from 0 (no blur) to 1000; one number or (x, y).
            interpolation: ``"nearest"``, ``"bilinear"``, ``"bicubic"`` or ``"random"``.
            fill: where the image has no pixel.
        """
        where = "elastic_transform"
        return self._with(
            self._engine.elastic_transform(
                arguments.field_names(where, fields),
                arguments.both_directions(where, "alpha", alpha),
                arguments.both_directions(where, "sigma", sigma),
                arguments.interpolation(where, interpolation),
                arguments.color(where, fill),
            )
        )

    def random_resize(
        self,
        min_size: int,
        max_size: int,
        interpolation: Any = "bilinear",
        antialias: bool | None = True,
        *,
        fields: Fields = None,
    ) -> Self:
        """The smaller edge to a number of pixels from ``min_size`` to ``max_size`` - 1, the aspect ratio kept."""
        where = "random_resize"
        arguments.refuse_aliased(where, antialias)
        return self._with(
            self._engine.random_resize(
                arguments.field_names(where, fields),
                arguments.integer(where, "min_size", min_size, low=1),
                arguments.integer(where, "max_size", max_size, low=1),
                arguments.interpolation(where, interpolation),
            )
        )

    def random_short_side(
        self,
        min_size: int | Sequence[int],
        max_size: int | None = None,
        interpolation: Any = "bilinear",
        antialias: bool | None = True,
        *,
        fields: Fields = None,
    ) -> Self:
        """The smaller edge to one of ``min_size``, less where the larger would pass ``max_size``, as for detectors.

        torchvision v2's RandomShortestSize, with its truncation: an edge may come out a pixel shorter.

        Args:
            min_size: pixels, one number or several to choose from, all alike.
            max_size: pixels; None is no limit.
        """
        where = "random_short_side"
        arguments.refuse_aliased(where, antialias)
        return self._with(
            self._engine.random_short_side(
                arguments.field_names(where, fields),
                arguments.integers(where, "min_size", min_size, low=1),
                None if max_size is None else arguments.integer(where, "max_size", max_size, low=1),
                arguments.interpolation(where, interpolation),
            )
        )

    def resize_keep_ratio(
        self,
        size: int | Sequence[int],
        longest: float = 0.0,
        interpolation: Any = "bilinear",
        random_scale_prob: float = 0.0,
        random_scale_range: Sequence[float] = (0.85, 1.05),
        random_scale_area: bool = False,
        random_aspect_prob: float = 0.0,
        random_aspect_range: Sequence[float] = (0.9, 1.11),
        *,
        fields: Fields = None,
    ) -> Self:
        """Both edges by one ratio, so that the image covers ``size`` or fits into it: timm's ResizeKeepRatio.

        Args:
            size: pixels, one number or (height, width).
            longest: 0: the image covers ``size``; 1: it fits into it; between: their ratios' weighted mean.
            random_scale_prob: probability of a factor from ``random_scale_range`` for both edges.
            random_scale_area: that factor is of the part of the image's area which ``size`` will show, and less than 1
                enlarges, as in :meth:`random_resized_crop`; else less than 1 makes smaller.
            random_aspect_prob: probability of another width over height, by a factor from ``random_aspect_range``
                (uniform in the logarithm).
        """
        where = "resize_keep_ratio"
        return self._with(
            self._engine.resize_keep_ratio(
                arguments.field_names(where, fields),
                arguments.square_size(where, size),
                arguments.real(where, "longest", longest),
                arguments.interpolation(where, interpolation),
                arguments.real(where, "random_scale_prob", random_scale_prob),
                arguments.low_high(where, "random_scale_range", random_scale_range),
                arguments.flag(where, "random_scale_area", random_scale_area),
                arguments.real(where, "random_aspect_prob", random_aspect_prob),
                arguments.low_high(where, "random_aspect_range", random_aspect_range),
            )
        )

    def scale_jitter(
        self,
        target_size: Sequence[int],
        scale_range: Sequence[float] = (0.1, 2.0),
        interpolation: Any = "bilinear",
        antialias: bool | None = True,
        *,
        fields: Fields = None,
    ) -> Self:
        """As large as the image fits into ``target_size``, times a factor from ``scale_range`` (large scale jitter).

        Args:
            target_size: pixels, (width, height): torchvision v2's order in this operation alone.
            scale_range: (low, high), above 0.
        """
        where = "scale_jitter"
        arguments.refuse_aliased(where, antialias)
        width, height = arguments.whole_pair(where, "target_size", target_size)
        return self._with(
            self._engine.scale_jitter(
                arguments.field_names(where, fields),
                (width, height),
                arguments.low_high(where, "scale_range", scale_range),
                arguments.interpolation(where, interpolation),
            )
        )

    def pad_to(
        self,
        size: int | Sequence[int],
        fill: int | Sequence[int] | None = 0,
        padding_mode: words.PaddingMode = "constant",
        position: Literal["center", "top_left"] = "center",
        *,
        fields: Fields = None,
    ) -> Self:
        """A border up to ``size`` x ``size`` or ``(height, width)`` pixels; images that are larger raise DataError.

        Args:
            size: pixels.
            fill, padding_mode: as for :meth:`random_crop`.
            position: ``"center"``, the odd pixel right and below, or ``"top_left"``.
        """
        where = "pad_to"
        return self._with(
            self._engine.pad_to(
                arguments.field_names(where, fields),
                arguments.square_size(where, size),
                arguments.color(where, fill),
                arguments.padding_mode(where, padding_mode),
                arguments.choice(where, "position", position, ("center", "top_left")) == "center",
            )
        )

    def letterbox(
        self,
        size: int | Sequence[int],
        fill: int | Sequence[int] | None = 114,
        interpolation: Any = "bilinear",
        scaleup: bool = True,
        center: bool = True,
        *,
        fields: Fields = None,
    ) -> Self:
        """As large as the image fits into ``size`` with its aspect ratio, the rest filled: Ultralytics' LetterBox.

        Sides are rounded (halves to even) and borders split as there; pixels are Pillow's, antialiased, where it has
        OpenCV's. OpenCLIP's ``resize_mode="longest"`` is the same with its fill and interpolation.

        Args:
            size: ``size`` x ``size`` or ``(height, width)`` pixels.
            interpolation: as for :meth:`resize`.
            scaleup: False leaves images that are smaller as they are.
            center: False puts the image to the top left.
        """
        where = "letterbox"
        return self._with(
            self._engine.letterbox(
                arguments.field_names(where, fields),
                arguments.square_size(where, size),
                arguments.color(where, fill),
                arguments.interpolation(where, interpolation),
                arguments.flag(where, "scaleup", scaleup),
                arguments.flag(where, "center", center),
            )
        )


def _center(where: str, center: Any) -> tuple[float, float] | None:
    return None if center is None else arguments.pair(where, "center", center)
