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
        return self._operation(
            "random_rotation",
            fields,
            degrees=degrees,
            interpolation=interpolation,
            expand=expand,
            center=center,
            fill=fill,
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
        along_x, along_y = arguments.shears("random_affine", shear)
        return self._operation(
            "random_affine",
            fields,
            degrees=degrees,
            translate=translate,
            scale=scale,
            shear_x=along_x,
            shear_y=along_y,
            interpolation=interpolation,
            fill=fill,
            center=center,
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
        return self._operation(
            "random_perspective", fields, distortion_scale=distortion_scale, p=p, interpolation=interpolation, fill=fill
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
        return self._operation(
            "elastic_transform", fields, alpha=alpha, sigma=sigma, interpolation=interpolation, fill=fill
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
        arguments.refuse_aliased("random_resize", antialias)
        return self._operation(
            "random_resize", fields, min_size=min_size, max_size=max_size, interpolation=interpolation
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
        arguments.refuse_aliased("random_short_side", antialias)
        return self._operation(
            "random_short_side", fields, min_size=min_size, max_size=max_size, interpolation=interpolation
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
        return self._operation(
            "resize_keep_ratio",
            fields,
            size=size,
            longest=longest,
            interpolation=interpolation,
            random_scale_prob=random_scale_prob,
            random_scale_range=random_scale_range,
            random_scale_area=random_scale_area,
            random_aspect_prob=random_aspect_prob,
            random_aspect_range=random_aspect_range,
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
        arguments.refuse_aliased("scale_jitter", antialias)
        return self._operation(
            "scale_jitter", fields, target_size=target_size, scale_range=scale_range, interpolation=interpolation
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
        return self._operation("pad_to", fields, size=size, fill=fill, padding_mode=padding_mode, position=position)

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
        return self._operation(
            "letterbox", fields, size=size, fill=fill, interpolation=interpolation, scaleup=scaleup, center=center
        )
