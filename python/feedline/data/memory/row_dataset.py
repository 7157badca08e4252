# SPDX-License-Identifier: Apache-2.0
"""Makes a dataset from the arguments of :func:`feedline.files` or :func:`feedline.table`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import ConfigError
from ...machine import media_libraries
from .. import arguments
from ..dataset import Dataset
from ..source_spec import SourceSpec
from ..storage import node_cache
from .column import Column
from .frame_columns import column_of
from .row_fields import RowFields
from .table_columns import TableColumns, name_cells, type_of
from .table_values import TableValues


class RowDataset:
    """The arguments of one call to :func:`files` or :func:`table`."""

    images: str | None = None
    audio: str | None = None  # column
    template: str | None = None
    label: str | None = None
    tags: str | None = None
    separator: str | None = None
    targets: Sequence[str] = ()
    is_scalar = False
    more: Sequence[str] = ()

    def __init__(self, where: str, source: TableColumns, root: str) -> None:
        self._where, self._source = where, source
        self._fields = RowFields(where, root)
        self._converted: dict[str, Column] = {}

    @property
    def used(self) -> list[str]:
        return list(self._converted)

    def column(self, name: str) -> Column:
        if name not in self._converted:
            column = column_of(self._where, name, self._source.columns[name])
            column.row_label = self._source.row_label
            first = next(iter(self._converted.values()), column)
            if column.length != first.length:
                raise ConfigError(
                    f"{self._where}: {name!r} has {column.length} rows, but {first.name!r} has {first.length}"
                )
            if column.length == 0:
                raise ConfigError(f"{self._where}: {name!r} has no rows")
            self._converted[name] = column
        return self._converted[name]

    def dataset(self, fields: Any, cache: Any, cache_limit: Any, hedge: Any) -> Dataset:
        specs = arguments.field_specs(self._where, fields)
        for name, role, kind in [self._parsed(spec) for spec in specs] or self._usual():
            if name in self._fields.names:
                raise ConfigError(f"{self._where}: two fields are called {name!r}; put NAME= before one of them")
            self._add(name, role, kind)
        if self._source.index is not None:
            self._fields.columns.set_row_names(name_cells(self._source.index))
        self._fields.columns.set_unopened(self._unopened())
        media_libraries.use_packaged()
        options = {
            **node_cache.of_open(cache, cache_limit),
            "hedge": arguments.flag(self._where, "hedge", hedge),
        }
        try:
            engine = self._fields.columns.open(self._source.source, options)
        except ConfigError as error:
            raise ConfigError(f"{self._where}: {error}") from None
        dataset = Dataset(engine, SourceSpec(self._source.source, engine.format))
        dataset._table = TableValues(self._source, len(engine))
        return dataset

    def _unopened(self) -> list[tuple[str, str, str, str]]:
        """Returns the names and types of the columns that are not used, the reasons, and the specs that would read
        them.
        """
        left = [
            (name, type_of(raw), "not in fields=", name)
            for name, raw in self._source.columns.items()
            if name not in self._converted
        ]
        return left + [(name, holds, "this version cannot read it", "") for name, holds in self._source.unread]

    def _usual(self) -> list[tuple[str, str, str]]:
        has_images = self.images is not None or self.template is not None
        names = ["image"] if has_images else []
        names += ["audio"] if self.audio is not None else []
        names += ["label"] if self.label is not None or self.tags is not None else []
        names += ["target"] if self.targets else []
        return [(name, name, "") for name in (*names, *self.more)]

    def _parsed(self, spec: str) -> tuple[str, str, str]:
        """Returns the field, the column and the kind in a spec."""
        name, equals, rest = spec.partition("=")
        rest = rest if equals else spec
        column, colon, kind = rest.rpartition(":")
        if not colon or rest in self._source.columns:
            column, kind = rest, ""
        return (name if equals else column), column, kind

    def _add(self, name: str, role: str, kind: str) -> None:
        fields = self._fields
        if role == "image" and (self.images is not None or self.template is not None):
            if self.template is not None:
                fields.add_template(name, self.template, list(self._source.columns), self.column)
            else:
                fields.add_files(name, self.column(str(self.images)), kind or "image")
        elif role == "audio" and self.audio is not None:
            fields.add_files(name, self.column(self.audio), kind or "audio")
        elif role == "label" and self.tags is not None:
            fields.add_multi_hot(name, self.column(self.tags), self.separator)
        elif role == "label" and self.label is not None:
            column = self.column(self.label)
            fields.add_any(name, column, kind) if kind else fields.add_label(name, column)
        elif role == "target" and self.targets:
            fields.add_target(name, [self.column(one) for one in self.targets], self.is_scalar)
        elif role in self._source.columns:
            fields.add_any(name, self.column(role), kind)
        else:
            raise ConfigError(
                f"{self._where}: fields: there is no column {role!r}; the columns are {', '.join(self._source.columns)}"
            )
