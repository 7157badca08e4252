# SPDX-License-Identifier: Apache-2.0
"""What a dataset tells of its fields, of what was drawn for a sample, and of how fast it decodes."""

from __future__ import annotations

from typing import NamedTuple


class _ShapeAndDtype(NamedTuple):
    shape: tuple[int, ...]
    dtype: str


class FieldSpec(_ShapeAndDtype):
    """One field of a sample: its shape without the batch extent, and NumPy's name of its dtype.

    An extent of -1 means that samples differ: a sample has its own there, and a batch that is padded the longest one's.

    Attributes:
        form: how rows stand in a batch: ``"stack"``, ``"pad"`` or ``"list"``.
        kind: what a row is: ``"array"``, ``"bytes"``, ``"text"`` or ``"json"``.
        unit: of a table's times, dates and durations, which are integers: ``"days"``, ``"s"``, ``"ms"``, ``"us"`` or
            ``"ns"``; ``""`` for all else.
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
    """What one random or size-dependent operation decided for a sample.

    ``operation`` is its name, ``name`` what was decided, ``values`` the numbers: ``"crop"`` is (left, top, width,
    height) in pixels of the image that the operation gets, ``"flip"`` is (0,) or (1,), ``"brightness"`` a factor.

    Attributes:
        view: for which view of the image: ``"global_a"``, ``"local[3]"``; ``""`` is for all of it.
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
    """How fast this machine decodes: seconds of wall and CPU time for ``images`` images on ``threads`` threads."""

    images: int
    encoded_bytes: int
    wall_s: float
    cpu_s: float
    threads: int

    @property
    def images_per_s(self) -> float:
        """Images per second of wall time."""
        return self.images / self.wall_s if self.wall_s > 0 else 0.0
