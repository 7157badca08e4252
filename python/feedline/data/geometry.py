# SPDX-License-Identifier: Apache-2.0
"""Resizing, padding to a size, and geometric distortions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

from . import arguments, words
from .detection import Detection
from .operations import Fields


class Geometry(Detection):
    """The methods of :class:`Dataset` that rotate, shear, distort, pad and resize images.

    Names, arguments, defaults and random draws are torchvision's if it has the operation. Images have Pillow's pixels,
    bit for bit; masks follow with nearest labels and 0 from outside, as in torchvision v2. ``fill`` is 0 to 255, one
    value or (red, green, blue); ``interpolation="random"`` draws bilinear or bicubic for each image.

    Raises:
        ConfigError: at the call: an argument is out of range, or the operation follows ``normalize`` or ``to_dtype``.
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
        """Rotates the image counterclockwise by an angle drawn uniformly from ``degrees``, as ``PIL.Image.rotate``.

        Args:
            degrees: (low, high), or a number d for (-d, d).
            interpolation: ``"nearest"``, ``"bilinear"``, ``"bicubic"`` or ``"random"``.
            expand: enlarges the image to contain the rotated one; else its size does not change.
            center: (x, y) in pixels from the top left; None is the middle.
            fill: for pixels from outside the image.
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
        """Rotates, translates, scales and shears the image around its centre, without changing its size.

        Args:
            degrees: clockwise, (low, high), or a number d for (-d, d); 0 disables rotation.
            translate: maximum translation, as fractions (0 to 1) of width and height; whole pixels are drawn.
            scale: (low, high) of the factor, above 0.
            shear: degrees: s for (-s, s) along x, (low, high) along x, or (low, high, low, high) along x and y.
            interpolation: ``"nearest"``, ``"bilinear"``, ``"bicubic"`` or ``"random"``.
            fill: for pixels from outside the image.
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
        """Moves each corner inwards, with probability ``p``, by up to half of the image times ``distortion_scale``.

        Args:
            distortion_scale: 0 to 1.
            p: 0 to 1.
            interpolation: ``"nearest"``, ``"bilinear"``, ``"bicubic"`` or ``"random"``.
            fill: for pixels from outside the image.
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
        """Displaces each pixel by smooth noise (Simard et al., ICDAR 2003).

        Matches torchvision v2 on tensors within one level for the same noise. Bicubic results below 0 or above 255,
        which wrap around in torchvision, are clamped.

        Args:
            alpha: maximum displacement in pixels, scaling noise from -1 to 1 before the blur; one number or (x, y).
            sigma: Gaussian blur of the noise, pixels from 0 (no blur) to 1000; one number or (x, y).
            interpolation: ``"nearest"``, ``"bilinear"``, ``"bicubic"`` or ``"random"``.
            fill: for pixels from outside the image.
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
        """Resizes the smaller edge to a random size from ``min_size`` to ``max_size`` - 1, keeping the aspect ratio."""
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
        """Resizes the smaller edge to one of ``min_size``, or less to keep the larger within ``max_size``, as for
        detectors.

        As torchvision v2's RandomShortestSize, with its truncation: an edge may be a pixel shorter.

        Args:
            min_size: pixels, one number or several, drawn with equal probability.
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
        """Scales both edges by one ratio, so that the image covers ``size`` or fits into it: timm's ResizeKeepRatio.

        Args:
            size: pixels, one number or (height, width).
            longest: 0: the image covers ``size``; 1: it fits into it; between: the weighted mean of both ratios.
            random_scale_prob: probability of a factor from ``random_scale_range`` for both edges.
            random_scale_area: the factor applies to the visible part of the image's area, and less than 1 enlarges, as
                in :meth:`random_resized_crop`; else less than 1 shrinks.
            random_aspect_prob: probability of changing width over height by a factor from ``random_aspect_range``
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
        """Fits the image into ``target_size`` times a factor from ``scale_range`` (large scale jitter).

        Args:
            target_size: pixels, (width, height): torchvision v2's order, used only in this operation.
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
        """Pads to ``size`` x ``size`` or ``(height, width)`` pixels; larger images raise DataError.

        Args:
            size: pixels.
            fill, padding_mode: as for :meth:`random_crop`.
            position: ``"center"``, with an odd pixel at the right and bottom, or ``"top_left"``.
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
        """Fits the image into ``size``, keeping its aspect ratio, and fills the rest: Ultralytics' LetterBox.

        Sides are rounded (halves to even) and borders split as there; pixels are Pillow's, antialiased, instead of
        OpenCV's. OpenCLIP's ``resize_mode="longest"`` is the same with its fill and interpolation.

        Args:
            size: ``size`` x ``size`` or ``(height, width)`` pixels.
            interpolation: as for :meth:`resize`.
            scaleup: False does not enlarge smaller images.
            center: False puts the image at the top left.
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
