# SPDX-License-Identifier: Apache-2.0
"""Operations of detection recipes: crops by boxes, borders around images, and changed colours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from .operations import Fields, Operations


class Detection(Operations):
    """The part of a :class:`Dataset` that detection recipes need beside the others.

    Names, arguments, defaults and sampling rules are those of torchvision's transforms v2. Boxes, keypoints and masks
    follow the images.

    Raises:
        ConfigError: at the call: an argument out of its range, an operation behind ``normalize`` or ``to_dtype``.
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
        """A crop that has the centre of a box inside and overlaps such a box enough (Liu et al., "SSD", ECCV 2016).

        Boxes whose centre is outside become ``(0, 0, 0, 0)``; :meth:`Dataset.sanitize_bounding_boxes` leaves them out.
        The samples must have one field of boxes and an image. A sample without boxes stays whole, as does one for which
        100 times all trials found nothing, where the original goes on for ever.

        Args:
            min_scale, max_scale: of each side of the crop, as a share of the image's, above 0 and up to 1.
            min_aspect_ratio, max_aspect_ratio: of width to height.
            sampler_options: one of these is drawn: the least intersection over union of the crop and a box; 1 or more
                leaves the image whole. None is 0, 0.1, 0.3, 0.5, 0.7, 0.9 and 1.
            trials: crops to try before another option is drawn, up to 10,000.

        Raises:
            ConfigError: also, at ``loader()`` or the first sample: no field of boxes, or several; no image.
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
        """Puts the image somewhere on a larger canvas (Liu et al., "SSD", ECCV 2016).

        Args:
            fill: 0 to 255, one value or (red, green, blue); masks get 0.
            side_range: the canvas's sides are those of the image times a factor from it, 1 to 100.
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
        """Brightness, contrast, saturation and hue, each with probability ``p``, then the channels in another order.

        The factors are drawn from the ranges (low, high), uniformly; contrast comes second or last. Pixels are those of
        :meth:`color_jitter`. Images alone.

        Args:
            brightness, contrast, saturation: ranges of factors, not negative.
            hue: range of shifts, within -0.5 and 0.5.
            p: probability of each of the five.
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
