# SPDX-License-Identifier: Apache-2.0
"""Named tuple types for batches and samples."""

from __future__ import annotations

import functools
import keyword
import re
from collections import namedtuple
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from . import shown_fields
from .unopened import UnopenedColumn, explained


class Batch(tuple[Any, ...]):
    """A batch or a sample, as a named tuple of its fields: use ``batch.image``, ``batch["image"]``, ``batch[0]`` or
    ``image, label = batch``.

    ``_fields`` contains the resulting names. Field names that are not valid in Python are changed: ``"mask.png"``
    becomes ``mask_png``, and ``"class"`` becomes ``class_``. Type checkers treat every field as ``Any``; to give a
    field a type, write ``image: torch.Tensor = batch.image``.
    """

    __slots__ = ()

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...


_SHOWN_FIELDS = 12  # maximum number of field names in an error


def attribute_names(fields: Iterable[str]) -> tuple[str, ...]:
    """Converts field names to Python names: ``"seg.png"`` becomes ``seg_png``, ``"class"`` becomes ``class_``."""
    names: list[str] = []
    for field in fields:
        name = re.sub(r"\W", "_", field, flags=re.ASCII).lstrip("_0123456789") or "field"
        name += "_" if keyword.iskeyword(name) else ""
        while name in names:
            name += "_"
        names.append(name)
    return tuple(names)


@functools.cache
def tuple_type(names: tuple[str, ...], unopened: tuple[UnopenedColumn, ...] = ()) -> Callable[..., Batch]:
    """Returns the named tuple type for these fields, one per schema. Instances of the type can be pickled.

    Args:
        unopened: columns of the source that were not opened; accessing one of them raises an AttributeError with the
            reason.
    """
    columns = dict(zip(attribute_names(column.name for column in unopened), unopened, strict=True))

    def explain(batch: Any, name: str) -> Any:
        # Each member of a map or a struct is a separate column.
        part = next((key for key in columns if key == name or key.startswith(f"{name}_")), None)
        text = f"{type(batch).__name__!r} object has no attribute {name!r}"
        if part is not None:
            text += f": {explained(columns[part])}"
        elif not name.startswith("_"):
            shown = ", ".join(names[:_SHOWN_FIELDS]) + (", ..." if len(names) > _SHOWN_FIELDS else "")
            text += f"; its fields are {shown}"
        raise AttributeError(text, name=name, obj=batch)

    def item(batch: Any, key: Any) -> Any:
        if not isinstance(key, str):
            return tuple.__getitem__(batch, key)
        name = key if key in names else attribute_names((key,))[0]
        if name not in names:
            raise KeyError(f"the field {key!r} does not exist; the fields are {', '.join(names)}")
        return tuple.__getitem__(batch, names.index(name))

    members = {
        "__slots__": (),
        "__getitem__": item,
        "__getattr__": explain,
        "__repr__": lambda batch: shown_fields.text("Batch", names, batch, unopened),
        "_repr_html_": lambda batch: shown_fields.html("Batch", names, batch, unopened),
        "__reduce__": lambda batch: (_rebuild, (batch._fields, tuple(batch), unopened)),
        "__module__": __name__,
        "__doc__": f"Fields: {', '.join(names)}.",
    }
    # created by a call because the names are only known at run time
    return type("Batch", (_plain_tuple_type("Batch", names), Batch), members)  # type: ignore[return-value]


def named(fields: Iterable[str], values: Iterable[Any], unopened: tuple[UnopenedColumn, ...] = ()) -> Batch:
    """Returns a named tuple of ``values``."""
    return tuple_type(attribute_names(fields), unopened)(*values)


_plain_tuple_type: Callable[[str, tuple[str, ...]], type[tuple[Any, ...]]] = namedtuple


def _rebuild(
    names: tuple[str, ...], values: tuple[Any, ...], unopened: tuple[UnopenedColumn, ...] = ()
) -> tuple[Any, ...]:
    return tuple_type(tuple(names), unopened)(*values)
