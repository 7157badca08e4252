# SPDX-License-Identifier: Apache-2.0
"""Operations for detection recipes: crops by boxes, borders around images, and colour changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from .operations import Fields, Operations


class Detection(Operations):
    """The methods of :class:`Dataset` for detection recipes.

    Names, arguments, defaults and sampling rules are those of torchvision's transforms v2. Boxes, keypoints and masks
    are transformed with the images.

    Raises:
        ConfigError: an argument is out of range, or the operation follows ``normalize`` or ``to_dtype``. This
            error is raised at the call.
    """

    def random_iou_crop(
        self,
        min_scale: float = 0.3,
        max_scale: float = 1.0,
        min_aspect_ratio: float = 0.5,
        max_aspect_ratio: float = 2.0,
        sampler_options: Sequence[float] | None = None,
        trials: int = 40,
        *,
        fields: Fields = None,
    ) -> Self:
        """Crops around the centre of at least one box with enough overlap (Liu et al., "SSD", ECCV 2016).

        Boxes whose centre is outside become ``(0, 0, 0, 0)``; :meth:`Dataset.sanitize_bounding_boxes` removes them.
        Samples must have one field of boxes and an image. A sample without boxes is not cropped. If 100 rounds of
        trials fail, the sample is not cropped; the original implementation would loop forever.

        Args:
            min_scale, max_scale: range of the lengths of the crop's sides, as fractions of the image's sides, above 0
                and up to 1.
            min_aspect_ratio, max_aspect_ratio: range of width divided by height.
            sampler_options: candidate values for the minimum intersection over union of the crop and a box, one of
                which is drawn; 1 or more leaves the image uncropped. None is 0, 0.1, 0.3, 0.5, 0.7, 0.9 and 1.
            trials: crops to try before another option is drawn, up to 10,000.

        Raises:
            ConfigError: an argument is out of range. ``loader()`` and the first sample raise this error if there is no
                image or not exactly one field of boxes.
        """
        options = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0) if sampler_options is None else sampler_options
        return self._operation(
            "random_iou_crop",
            fields,
            min_scale=min_scale,
            max_scale=max_scale,
            min_aspect_ratio=min_aspect_ratio,
            max_aspect_ratio=max_aspect_ratio,
            sampler_options=options,
            trials=trials,
        )

    def random_zoom_out(
        self,
        fill: int | Sequence[int] = 0,
        side_range: Sequence[float] = (1.0, 4.0),
        p: float = 0.5,
        *,
        fields: Fields = None,
    ) -> Self:
        """Places the image at a random position on a larger canvas (Liu et al., "SSD", ECCV 2016).

        Args:
            fill: value of the border, from 0 to 255: one value or (red, green, blue); in masks it is 0.
            side_range: range of the factor by which the image's sides are multiplied, 1 to 100.
            p: probability.
        """
        return self._operation("random_zoom_out", fields, fill=fill, side_range=side_range, p=p)

    def random_photometric_distort(
        self,
        brightness: Sequence[float] = (0.875, 1.125),
        contrast: Sequence[float] = (0.5, 1.5),
        saturation: Sequence[float] = (0.5, 1.5),
        hue: Sequence[float] = (-0.05, 0.05),
        p: float = 0.5,
        *,
        fields: Fields = None,
    ) -> Self:
        """Changes brightness, contrast, saturation and hue and permutes the channels, each with probability ``p``.

        The factors are drawn uniformly from the ranges (low, high); contrast is applied second or last. The pixels
        match those of :meth:`color_jitter`. Only images are changed.

        Args:
            brightness, contrast, saturation: ranges of factors, not negative.
            hue: range of shifts, between -0.5 and 0.5.
            p: probability of each of the five changes.
        """
        return self._operation(
            "random_photometric_distort",
            fields,
            brightness=brightness,
            contrast=contrast,
            saturation=saturation,
            hue=hue,
            p=p,
        )
