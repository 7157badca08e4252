# SPDX-License-Identifier: Apache-2.0
"""Box formats, and filtering of boxes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Self

from ...errors import ConfigError
from .. import arguments
from .operations import Operations


class Targets(Operations):
    """The methods of :class:`Dataset` for box fields."""

    def boxes(
        self,
        field: str,
        format: str = "XYXY",
        clamping_mode: str | None = "soft",
        *,
        unsound: Literal["error", "keep"] = "error",
    ) -> Self:
        """Sets the format of a box field that is not in two-corner format.

        Args:
            field: the field's name, declared as boxes in ``fields=`` of :func:`feedline.open`.
            format: the meaning of the four numbers, in pixels. ``"XYXY"``: left, top, right, bottom. ``"XYWH"``: left,
                top, width, height. ``"CXCYWH"``: the centre's x and y, width, height. torchvision's rotated formats are
                rejected: read rotated boxes as an array, and transform the array in :meth:`Dataset.map`.
            clamping_mode: torchvision's ``"soft"`` or ``"hard"``, which both clip unrotated boxes at the edges of the
                image after each operation. None disables clipping.
            unsound: handling of stored boxes that are inverted, entirely outside the image or not numbers. ``"error"``:
                the sample is treated as damaged, unless the chain has :meth:`sanitize_bounding_boxes`, which removes
                these boxes. ``"keep"``: operations transform these boxes without checking them, as in torchvision.
                Boxes without an area and boxes that cross an edge of the image are valid.

        Raises:
            ConfigError: the field or an argument is unknown, the field is not boxes, or :meth:`Dataset.cache` precedes
                this call.
        """
        where = "boxes"
        if not isinstance(field, str):
            raise ConfigError(f"{where}: field must be the name of one field, not {field!r}")
        name = getattr(format, "value", format)  # torchvision's BoundingBoxFormat
        if isinstance(name, str) and name.upper() in (*_UNROTATED, *_ROTATED):
            name = name.upper()
        if isinstance(name, str) and name in _ROTATED:
            raise ConfigError(
                f"{where}: format {name!r} is for rotated boxes, which are not supported (a beta in torchvision); "
                f'remove ":boxes" in fields= to read the field as an array, and transform the array in map()'
            )
        clamping = "None" if clamping_mode is None else clamping_mode
        return self._operation(where, [field], format=name, clamping_mode=clamping, unsound=unsound)

    def sanitize_bounding_boxes(
        self,
        min_size: float = 1.0,
        min_area: float = 1.0,
        labels: str | Sequence[str] | None = "default",
    ) -> Self:
        """Removes boxes that are small, inverted, not numbers, or not entirely inside the image.

        The remaining boxes have sides of at least ``min_size`` and an area of at least ``min_area``. The matching rows
        of the fields in ``labels`` are also removed; these fields are batched as lists, or padded
        (:meth:`Dataset.collate`).

        Args:
            min_size: minimum width and height in pixels, at least 1.
            min_area: minimum area in square pixels, at least 1.
            labels: the fields, arrays or keypoints, with one row for each box. ``"default"`` is the field called
                "labels", in upper or lower case, if there is one; None means no field.

        Raises:
            ConfigError: an argument is out of range. ``loader()`` and the first sample raise this error if there is not
                exactly one field of boxes, or if labels are invalid.
            DataError: a sample has different numbers of labels and boxes.
        """
        where = "sanitize_bounding_boxes"
        if isinstance(labels, str) and labels == "default":
            names = [name for name, *_ in self._engine.roles() if name.lower() in ("labels", "labels.npy")]
        else:
            names = arguments.field_names(where, labels)
        return self._operation(where, None, min_size=min_size, min_area=min_area, labels=names)


_UNROTATED = ("XYXY", "XYWH", "CXCYWH")
_ROTATED = ("XYWHR", "CXCYWHR", "XYXYXYXY")
