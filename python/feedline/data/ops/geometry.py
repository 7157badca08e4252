# SPDX-License-Identifier: Apache-2.0
"""Resizing, padding to a size, and geometric distortions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

from .. import arguments, literals
from .detection import Detection
from .operations import Fields


class Geometry(Detection):
    """The methods of :class:`Dataset` that rotate, shear, distort, pad and resize images.

    Operations that exist in torchvision have its names, arguments, defaults and random draws. Images have Pillow's
    pixels, bit for bit; masks are transformed with nearest labels, and 0 outside the image, as in torchvision v2.
    ``fill`` is 0 to 255, one value or (red, green, blue); ``interpolation="random"`` draws bilinear or bicubic for each
    image.

    Raises:
        ConfigError: an argument is out of range, or the operation follows ``normalize`` or ``to_dtype``. This
            error is raised at the call.
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
        """Rotates the image counterclockwise by an angle drawn uniformly from ``degrees``, like ``PIL.Image.rotate``.

        Args:
            degrees: (low, high), or a number d for (-d, d).
            interpolation: ``"nearest"``, ``"bilinear"``, ``"bicubic"`` or ``"random"``.
            expand: enlarges the result to contain the whole rotated image; by default the size does not change.
            center: (x, y) in pixels from the top left; None is the middle.
            fill: value of pixels from outside the image.
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
        """Rotates, translates, scales and shears the image around its centre, without changing its size.

        Args:
            degrees: range of the clockwise angle, (low, high), or a number d for (-d, d); 0 disables rotation.
            translate: maximum translation, as fractions (0 to 1) of width and height; the drawn translation is in whole
                pixels.
            scale: range of the factor, (low, high), above 0.
            shear: range of the shear in degrees: s for (-s, s) along x, (low, high) along x, or (low, high, low, high)
                along x and y.
            interpolation: ``"nearest"``, ``"bilinear"``, ``"bicubic"`` or ``"random"``.
            fill: value of pixels from outside the image.
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
        """Moves each corner inwards, with probability ``p``, by up to half of the image times ``distortion_scale``.

        Args:
            distortion_scale: 0 to 1.
            p: 0 to 1.
            interpolation: ``"nearest"``, ``"bilinear"``, ``"bicubic"`` or ``"random"``.
            fill: value of pixels from outside the image.
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
        """Displaces each pixel by smooth noise (Simard et al., ICDAR 2003).

        For the same noise, results match torchvision v2's for tensors to within one level. Bicubic results below 0 or
        above 255, which wrap around in torchvision, are clamped.

        Args:
            alpha: maximum displacement in pixels, by which noise from -1 to 1 is multiplied before the blur; one number
                or (x, y).
            sigma: standard deviation of the noise's Gaussian blur in pixels, from 0 (no blur) to 1000; one number or
                (x, y).
            interpolation: ``"nearest"``, ``"bilinear"``, ``"bicubic"`` or ``"random"``.
            fill: value of pixels from outside the image.
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
        """Resizes the smaller edge to a random size from ``min_size`` to ``max_size`` - 1, keeping the aspect ratio."""
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
        """Resizes the smaller edge to one of the sizes in ``min_size``, or to less if the larger edge would exceed
        ``max_size``.

        Used for detectors. Equals torchvision v2's RandomShortestSize; both round down, which may make an edge one
        pixel shorter.

        Args:
            min_size: size in pixels, or several sizes, one of which is drawn with equal probability.
            max_size: limit in pixels; None means no limit.
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
        """Scales both edges by one ratio so that the image covers or fits ``size``, as timm's ResizeKeepRatio does.

        Args:
            size: size in pixels, as one number or (height, width).
            longest: 0 makes the image cover ``size``, 1 makes it fit into ``size``; values in between use a weighted
                mean of the two ratios.
            random_scale_prob: probability of scaling both edges by a factor from ``random_scale_range``.
            random_scale_area: True applies the factor to the visible part of the image's area, so that a factor below 1
                enlarges the image, as in :meth:`random_resized_crop`. With False, a factor below 1 shrinks the image.
            random_aspect_prob: probability of changing the aspect ratio by a factor from ``random_aspect_range``
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
        """Fits the image into ``target_size`` times a factor from ``scale_range`` (large scale jitter).

        Args:
            target_size: size in pixels as (width, height), which is torchvision v2's order and used only in this
                operation.
            scale_range: range (low, high) of the factor, above 0.
        """
        arguments.refuse_aliased("scale_jitter", antialias)
        return self._operation(
            "scale_jitter", fields, target_size=target_size, scale_range=scale_range, interpolation=interpolation
        )

    def pad_to(
        self,
        size: int | Sequence[int],
        fill: int | Sequence[int] | None = 0,
        padding_mode: literals.PaddingMode = "constant",
        position: Literal["center", "top_left"] = "center",
        *,
        fields: Fields = None,
    ) -> Self:
        """Pads to ``size`` x ``size`` or ``(height, width)`` pixels; larger images raise DataError.

        Args:
            size: pixels.
            fill, padding_mode: as for :meth:`random_crop`.
            position: ``"center"``, which adds an odd pixel at the right or bottom, or ``"top_left"``.
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
        """Fits the image into ``size``, keeping its aspect ratio, and fills the rest, as Ultralytics' LetterBox does.

        Sides are rounded (halves to even) and borders are split as in LetterBox; pixels match Pillow's antialiased
        resize instead of OpenCV's. OpenCLIP's ``resize_mode="longest"`` is the same operation with a different fill
        value and interpolation.

        Args:
            size: ``size`` x ``size`` or ``(height, width)`` pixels.
            interpolation: as for :meth:`resize`.
            scaleup: False does not enlarge smaller images.
            center: False places the image at the top left.
        """
        return self._operation(
            "letterbox", fields, size=size, fill=fill, interpolation=interpolation, scaleup=scaleup, center=center
        )
