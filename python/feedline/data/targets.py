# SPDX-License-Identifier: Apache-2.0
"""What a dataset's boxes are, and which of them are left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Self

from ..errors import ConfigError
from . import arguments
from .operations import Operations


class Targets(Operations):
    """The part of a :class:`Dataset` that is about its fields of boxes."""

    def boxes(
        self,
        field: str,
        format: str = "XYXY",
        clamping_mode: str | None = "soft",
        *,
        unsound: Literal["error", "keep"] = "error",
    ) -> Self:
        """What the numbers of a field of boxes are, where they are not two corners.

        Args:
            field: its name; ``fields=`` of :func:`feedline.open` has said that it is boxes.
            format: in pixels, ``"XYXY"``: left, top, right, bottom. ``"XYWH"``: left, top, width, height.
                ``"CXCYWH"``: the centre, width, height. torchvision's rotated ones are refused: read their numbers as
                an array, and move them in :meth:`Dataset.map`.
            clamping_mode: torchvision's: ``"soft"`` or ``"hard"``, which are the same for boxes that are not rotated:
                what moves boxes cuts them off at the edges of the image. None: it does not.
            unsound: stored boxes that are inverted, wholly outside of the image or no numbers. ``"error"``: the sample
                is bad, unless :meth:`sanitize_bounding_boxes`, which leaves such boxes out, is in the chain.
                ``"keep"``: they are moved as they are, as torchvision moves them. Boxes without an area, and those that
                reach over the edges, are sound.

        Raises:
            ConfigError: no such field or word, one that is not boxes, or :meth:`Dataset.cache` stands before it.
        """
        where = "boxes"
        if not isinstance(field, str):
            raise ConfigError(f"{where}: field must be the name of one field, not {field!r}")
        name = getattr(format, "value", format)  # torchvision's BoundingBoxFormat
        name = name.upper() if isinstance(name, str) else name
        if isinstance(name, str) and name in _ROTATED:
            raise ConfigError(
                f"{where}: format {name!r} is of rotated boxes, which are not moved here (a beta in torchvision); "
                f'leave ":boxes" out in fields=, so that they are an array, and move them in map()'
            )
        clamping = "None" if clamping_mode is None else clamping_mode
        return self._operation(where, [field], format=name, clamping_mode=clamping, unsound=unsound)

    def sanitize_bounding_boxes(
        self,
        min_size: float = 1.0,
        min_area: float = 1.0,
        labels: str | Sequence[str] | None = "default",
    ) -> Self:
        """Leaves out boxes that are small, inverted, not numbers, or not all inside the image.

        What is left are boxes with sides of ``min_size`` and an area of ``min_area`` or more. Rows of other fields that
        belong to the boxes go with them: those fields are lists in a batch then, or padded (:meth:`Dataset.collate`).

        Args:
            min_size: pixels, at least 1.
            min_area: square pixels, at least 1.
            labels: the fields with a row for each box, arrays or keypoints. ``"default"`` is the field called
                "labels", in upper or lower case, if there is one; None is no field.

        Raises:
            ConfigError: an argument out of its range. And, at ``loader()`` or the first sample: no field of boxes, or
                several; labels that are no such field.
            DataError: of a sample: its labels are not as many as its boxes.
        """
        where = "sanitize_bounding_boxes"
        if isinstance(labels, str) and labels == "default":
            names = [name for name, *_ in self._engine.roles() if name.lower() in ("labels", "labels.npy")]
        else:
            names = arguments.field_names(where, labels)
        return self._operation(where, None, min_size=min_size, min_area=min_area, labels=names)


_ROTATED = ("XYWHR", "CXCYWHR", "XYXYXYXY")
