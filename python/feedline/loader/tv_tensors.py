# SPDX-License-Identifier: Apache-2.0
"""Converts batches and samples to the types of torchvision's v2 transforms, without copying."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from ..errors import ConfigError

Size = tuple[int, int]  # height, width


class Role(NamedTuple):
    """The engine's description of a field."""

    name: str
    kind: str  # "image", "mask", "boxes", "keypoints", ...
    format: str  # format of boxes
    clamps: bool  # clamping mode of boxes


class Wrapper:
    """Converts a dataset's fields to torchvision's types.

    A single or batched image becomes an ``Image`` and a mask becomes a ``Mask``. Boxes become ``BoundingBoxes`` and
    keypoints ``KeyPoints``, in a sample or in a list. The canvas size of boxes and keypoints is the size of the
    sample's first image or mask. Other fields, and stacked or padded boxes and keypoints, are unchanged.
    """

    def __init__(self, where: str, roles: Iterable[tuple[str, str, str, bool]]) -> None:
        try:
            from torchvision import tv_tensors
        except ImportError:
            raise ConfigError(
                f'{where}: output="tv_tensors" requires torchvision; install it, or use output="torch"'
            ) from None
        self._types: Any = tv_tensors
        self._roles = {role.name: role for role in (Role(*row) for row in roles)}
        if self._of_kind("keypoints") and not hasattr(tv_tensors, "KeyPoints"):
            raise ConfigError(f'{where}: output="tv_tensors": keypoints require torchvision 0.23 or later')

    def batch(self, names: Sequence[str], values: Sequence[Any]) -> list[Any]:
        """Converts the fields of a batch. Each field is a tensor, or a list with one row per sample; the row is None if
        the sample lacks the field.
        """
        fields = dict(zip(names, values, strict=True))
        canvas = self._canvas(fields)
        return [self._field(name, value, canvas) for name, value in fields.items()]

    def sample(self, names: Sequence[str], values: Sequence[Any]) -> list[Any]:
        """Converts the fields of one sample."""
        return [rows[0] for rows in self.batch(names, [[value] for value in values])]

    def _of_kind(self, *kinds: str) -> list[str]:
        return [role.name for role in self._roles.values() if role.kind in kinds]

    def _canvas(self, fields: dict[str, Any]) -> Callable[[int], Size | None]:
        pictures = [fields[name] for name in self._of_kind("image", "mask") if name in fields]

        def of_row(row: int) -> Size | None:
            for value in pictures:
                if value[row] is not None:
                    height, width = value[row].shape[-2:]
                    return int(height), int(width)
            return None

        return of_row

    def _field(self, name: str, value: Any, canvas: Callable[[int], Size | None]) -> Any:
        role = self._roles.get(name)
        if role is None:
            return value
        if role.kind in ("image", "mask"):
            make = self._types.Image if role.kind == "image" else self._types.Mask
            return [row if row is None else make(row) for row in value] if isinstance(value, list) else make(value)
        if role.kind in ("boxes", "keypoints") and isinstance(value, list):
            return [row if row is None else self._target(role, row, canvas(i)) for i, row in enumerate(value)]
        return value

    def _target(self, role: Role, row: Any, canvas: Size | None) -> Any:
        if canvas is None:
            return row
        if role.kind == "keypoints":
            return self._types.KeyPoints(row, canvas_size=canvas)
        mode: dict[str, Any] = {} if role.clamps else {"clamping_mode": None}
        return self._types.BoundingBoxes(row, format=role.format, canvas_size=canvas, **mode)
