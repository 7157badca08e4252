# SPDX-License-Identifier: Apache-2.0
"""Numbers and texts that a dataset stores, for groups and filters. Decodes no image."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ... import _engine
from ...errors import ConfigError
from ...loader.unopened import columns_of, explained

if TYPE_CHECKING:
    from ..memory.table_values import TableValues

_KINDS = ("value", "text", "json", "array")  # kinds of fields that may be in a row


def column(engine: _engine.Dataset, table: TableValues | None, where: str, name: str) -> list[Any]:
    """Returns a field of every sample, or a column of its table: numbers or texts.

    Raises:
        ConfigError: there is no such field, or its value in a sample is not a number or text.
    """
    if is_column(engine, table, name):
        assert table is not None
        return table.values(where, engine, name)
    require_field(engine, where, name)
    values = [_as_text(value) for value in _engine.values(engine, [name])[0]]
    for i, value in enumerate(values):
        if value is None:
            raise ConfigError(f"{where}: sample {i} has no number or text in the field {name!r}")
    return values


def json_values(engine: _engine.Dataset, where: str, name: str) -> list[Any]:
    """Returns the parsed values of a JSON field of every sample.

    Raises:
        ConfigError: a sample has no value.
        DataError: a value is not JSON.
    """
    values = _engine.values(engine, [name])[0]
    if None in values:
        raise ConfigError(f"{where}: sample {values.index(None)} has no value in the field {name!r}")
    return list(_parsed(name, values))


def integers(engine: _engine.Dataset, table: TableValues | None, where: str, name: str) -> list[int]:
    """Returns an integer field of every sample, or the classes in a column of its table.

    Raises:
        ConfigError: there is no such field, or its value in a sample is not an integer.
    """
    if is_column(engine, table, name):
        assert table is not None
        return table.classes(where, engine, name)
    require_field(engine, where, name)
    try:
        return _engine.numbers(engine, name)
    except ConfigError as error:
        raise ConfigError(
            f"{where}: {error}; in tables, 'FIELD={name}:class' in fields= makes a class number of each value"
        ) from None


def is_column(engine: _engine.Dataset, table: TableValues | None, name: str) -> bool:
    """Returns whether `name` is a column of the dataset's table and not a field."""
    return table is not None and name in table.names and all(name != field for field, *_ in engine.roles())


def require_field(engine: _engine.Dataset, where: str, name: str) -> None:
    names = [name for name, *_ in engine.roles()]
    if name not in names:
        raise ConfigError(
            f"{where}: {why_unopened(engine, name) or f'there is no field {name!r}'}; the fields are {', '.join(names)}"
        )


def why_unopened(engine: _engine.Dataset, name: Any) -> str:
    """Returns why a column of the source is not a field, and how to open it; empty if there is no such column."""
    return next((explained(one) for one in columns_of(engine) if one.name == name), "")


def rows(engine: _engine.Dataset, table: TableValues | None) -> Iterator[dict[str, Any]]:
    """Yields a dict for every sample: its ``key``, its fields that are numbers, text or JSON, and the other columns of
    its table.

    A field that a sample lacks is None. Images, arrays and bytes are not in the dict.
    """
    kinds = {name: kind for name, kind in ((row[0], row[1]) for row in engine.roles()) if kind in _KINDS}
    columns = dict(zip(kinds, _engine.values(engine, list(kinds)), strict=True)) if kinds else {}
    shown: dict[str, Iterable[Any]] = {"key": map(engine.key, range(len(engine)))}
    shown |= table.all_columns("filter", engine) if table is not None else {}
    for name, values in columns.items():
        if kinds[name] == "array" and all(value is None for value in values):
            continue
        shown[name] = _parsed(name, values) if kinds[name] == "json" else map(_as_text, values)
    for row in zip(*shown.values(), strict=True):
        yield dict(zip(shown, row, strict=True))


def _parsed(field: str, values: Iterable[Any]) -> Iterator[Any]:
    for sample, stored in enumerate(values):
        yield None if stored is None else _engine.json_value(stored, field, sample)


def _as_text(value: Any) -> Any:
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value
