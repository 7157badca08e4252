# SPDX-License-Identifier: Apache-2.0
"""HTML of a dataset for notebooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from ...errors import Error
from ...loader import html_table
from ...loader.unopened import UnopenedColumn, listed
from ..specs import FieldSpec

_CLASSES = 8  # maximum number of class names shown


class HtmlDataset(Protocol):
    def __len__(self) -> int: ...

    @property
    def source(self) -> str: ...

    @property
    def format(self) -> str: ...

    @property
    def classes(self) -> Sequence[str]: ...

    @property
    def unopened(self) -> tuple[UnopenedColumn, ...]: ...

    @property
    def operations(self) -> Sequence[str]: ...

    @property
    def schema(self) -> Mapping[str, FieldSpec]: ...


def html(dataset: HtmlDataset) -> str:
    """Shows source, classes, operations and fields. Reads no sample."""
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


def _fields(dataset: HtmlDataset) -> str:
    try:
        schema = dataset.schema
    except Error as error:  # images of varying sizes are shown too
        return html_table.facts([("fields", str(error))])
    rows = [[name, spec.dtype, " x ".join(map(str, spec.shape)), spec.form] for name, spec in schema.items()]
    return html_table.grid(("field", "dtype", "shape", "in a batch"), rows)
