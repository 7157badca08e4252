# SPDX-License-Identifier: Apache-2.0
"""What a notebook shows of a dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import Error
from ..loader import html_table
from ..loader.unopened import listed

if TYPE_CHECKING:
    from .dataset import Dataset

_CLASSES = 8  # that are named


def html(dataset: Dataset) -> str:
    """Its source, classes and operations, and the fields of a sample. Reads no sample."""
    rows = [("source", dataset.source), ("format", dataset.format), ("samples", f"{len(dataset):,}")]
    if dataset.classes:
        named = ", ".join(dataset.classes[:_CLASSES])
        more = ", ..." if len(dataset.classes) > _CLASSES else ""
        rows.append(("classes", f"{len(dataset.classes):,}: {named}{more}"))
    if dataset.unopened:
        rows.append(("not opened", listed(dataset.unopened)))
    if dataset.operations:
        rows.append(("operations", "\n".join(dataset.operations)))
    return html_table.section("feedline.Dataset", html_table.facts(rows), _fields(dataset))


def _fields(dataset: Dataset) -> str:
    try:
        schema = dataset.schema
    except Error as error:  # images of several sizes, which a notebook shows as any other
        return html_table.facts([("fields", str(error))])
    rows = [[name, spec.dtype, " x ".join(map(str, spec.shape)), spec.form] for name, spec in schema.items()]
    return html_table.grid(("field", "dtype", "shape", "in a batch"), rows)
