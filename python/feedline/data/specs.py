# SPDX-License-Identifier: Apache-2.0
"""Types for field specifications, random decisions for a sample, and decode speed."""

from __future__ import annotations

from typing import NamedTuple


class _ShapeAndDtype(NamedTuple):
    shape: tuple[int, ...]
    dtype: str


class FieldSpec(_ShapeAndDtype):
    """One field of a sample: its shape without the batch dimension, and the NumPy name of its dtype.

    A dimension of -1 varies between samples; in a padded batch it is the size of the longest sample.

    Attributes:
        form: how rows are batched: ``"stack"``, ``"pad"`` or ``"list"``.
        kind: type of a row: ``"array"``, ``"bytes"``, ``"text"`` or ``"json"``.
        unit: unit of a table's times, dates and durations, which are integers: ``"days"``, ``"s"``, ``"ms"``, ``"us"``
            or ``"ns"``; ``""`` for other fields.
    """

    form: str
    kind: str
    unit: str

    def __new__(
        cls, shape: tuple[int, ...], dtype: str, form: str = "stack", kind: str = "array", unit: str = ""
    ) -> FieldSpec:
        spec = super().__new__(cls, shape, dtype)
        spec.form = form
        spec.kind = kind
        spec.unit = unit
        return spec

    def __repr__(self) -> str:
        more = "" if self.form == "stack" else f", form={self.form!r}, kind={self.kind!r}"
        more += f", unit={self.unit!r}" if self.unit else ""
        return f"FieldSpec(shape={self.shape!r}, dtype={self.dtype!r}{more})"


class _Decision(NamedTuple):
    operation: str
    name: str
    values: tuple[float, ...]


class Drawn(_Decision):
    """A decision that one random or size-dependent operation made for a sample.

    ``operation`` is the operation's name, ``name`` is the decision's name, and ``values`` contains the decision's
    numbers: ``"crop"`` is (left, top, width, height) in pixels of the operation's input, ``"flip"`` is (0,) or (1,),
    ``"brightness"`` a factor.

    Attributes:
        view: the view of the image, such as ``"global_a"`` or ``"local[3]"``; ``""`` for the whole image.
    """

    view: str

    def __new__(cls, operation: str, name: str, values: tuple[float, ...], view: str = "") -> Drawn:
        decision = super().__new__(cls, operation, name, values)
        decision.view = view
        return decision

    def __repr__(self) -> str:
        view = f", view={self.view!r}" if self.view else ""
        return f"Drawn(operation={self.operation!r}, name={self.name!r}, values={self.values!r}{view})"


class DecodeLimit(NamedTuple):
    """Decode speed of this machine: wall and CPU time in seconds for ``images`` images on ``threads`` threads."""

    images: int
    encoded_bytes: int
    wall_s: float
    cpu_s: float
    threads: int

    @property
    def images_per_s(self) -> float:
        """Images per second of wall time."""
        return self.images / self.wall_s if self.wall_s > 0 else 0.0
