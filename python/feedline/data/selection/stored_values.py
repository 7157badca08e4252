# SPDX-License-Identifier: Apache-2.0
"""Numbers and texts that a dataset stores, for groups and filters. Decodes no image."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ... import _engine
from ...errors import ConfigError

_KINDS = ("value", "text", "json", "array")  # kinds of fields that may be in a row


def column(engine: _engine.Dataset, where: str, name: str) -> list[Any]:
    """Returns a field of every sample: numbers or texts.

    Raises:
        ConfigError: there is no such field, or its value in a sample is not a number or text.
    """
    require_field(engine, where, name)
    values = [_as_text(value) for value in _engine.values(engine, [name])[0]]
    for i, value in enumerate(values):
        if value is None:
            raise ConfigError(f"{where}: sample {i} has no number or text in the field {name!r}")
    return values


def integers(engine: _engine.Dataset, where: str, name: str) -> list[int]:
    """Returns an integer field of every sample.

    Raises:
        ConfigError: there is no such field, or its value in a sample is not an integer.
    """
    require_field(engine, where, name)
    try:
        return _engine.numbers(engine, name)
    except ConfigError as error:
        raise ConfigError(
            f"{where}: {error}; in tables, 'FIELD={name}:class' in fields= makes a class number of each value"
        ) from None


def require_field(engine: _engine.Dataset, where: str, name: str) -> None:
    names = [name for name, *_ in engine.roles()]
    if name not in names:
        raise ConfigError(f"{where}: there is no field {name!r}; the fields are {', '.join(names)}")


def rows(engine: _engine.Dataset) -> Iterator[dict[str, Any]]:
    """Yields a dict for every sample: its ``key``, and its fields that are numbers, text or JSON.

    A field that a sample lacks is None. Images, arrays and bytes are not in the dict.
    """
    import json  # only filters need it

    kinds = {name: kind for name, kind in ((row[0], row[1]) for row in engine.roles()) if kind in _KINDS}
    columns = dict(zip(kinds, _engine.values(engine, list(kinds)), strict=True)) if kinds else {}
    shown = {
        name: values
        for name, values in columns.items()
        if kinds[name] != "array" or any(value is not None for value in values)
    }
    for i in range(len(engine)):
        row = {"key": engine.key(i)}
        for name, values in shown.items():
            value = _as_text(values[i])
            row[name] = json.loads(value) if kinds[name] == "json" and value is not None else value
        yield row


def _as_text(value: Any) -> Any:
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value
