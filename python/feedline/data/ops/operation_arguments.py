# SPDX-License-Identifier: Apache-2.0
"""Converts arguments of operations to the engine's forms, according to the kinds that the engine declares."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ... import _engine
from ...errors import ConfigError
from .. import arguments


class Argument(NamedTuple):
    """An argument of an operation, as declared in src/transform/ops."""

    name: str
    kind: str
    is_optional: bool
    low: int
    high: int
    words: tuple[str, ...]
    default: Any


@functools.cache
def arguments_of(operation: str) -> Mapping[str, Argument]:
    """The arguments of an operation by name."""
    return _all_arguments()[operation]


@functools.cache
def _all_arguments() -> dict[str, dict[str, Argument]]:
    return {
        operation["name"]: {
            facts["name"]: Argument(**{**facts, "words": tuple(facts["words"])}) for facts in operation["arguments"]
        }
        for operation in _engine.operation_types()
    }


def engine_values(operation: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the given arguments in the engine's forms.

    Raises:
        ConfigError: a value has the wrong type or is out of range.
    """
    known = arguments_of(operation)
    return {name: _converted(operation, known[name], value) for name, value in given.items()}


def value_of_plugin(where: str, name: str, value: Any) -> float:
    """Returns an argument of a plugin's operation, which is a number."""
    return arguments.real(where, name, value)


def _converted(where: str, argument: Argument, value: Any) -> Any:
    if value is None and argument.is_optional:
        return None
    return _KINDS[argument.kind](where, argument, value)


def _by_name(convert: Callable[[str, str, Any], Any]) -> Callable[[str, Argument, Any], Any]:
    return lambda where, argument, value: convert(where, argument.name, value)


def _by_value(convert: Callable[[str, Any], Any]) -> Callable[[str, Argument, Any], Any]:
    return lambda where, _, value: convert(where, value)


def _integer(where: str, argument: Argument, value: Any) -> int:
    return arguments.integer(where, argument.name, value, argument.low, argument.high)


def _integers(where: str, argument: Argument, value: Any) -> list[int]:
    return arguments.integers(where, argument.name, value, argument.low)


def _integer_pair(where: str, argument: Argument, value: Any) -> tuple[int, int]:
    return arguments.whole_pair(where, argument.name, value, argument.low)


def _word(where: str, argument: Argument, value: Any) -> str:
    return arguments.choice(where, argument.name, value, argument.words)


def _edge_size(where: str, size: Any) -> tuple[int, int]:
    return (0, 0) if size is None else arguments.edge_size(where, size)


def _factor(where: str, argument: Argument, value: Any) -> tuple[float, float]:
    return arguments.jitter(where, argument.name, value, 1.0, 0.0, float("inf"))


def _hue(where: str, argument: Argument, value: Any) -> tuple[float, float]:
    return arguments.jitter(where, argument.name, value, 0.0, -0.5, 0.5)


def _text(where: str, argument: Argument, value: Any) -> str:
    if not isinstance(value, str):
        raise ConfigError(f"{where}: {argument.name} must be text, not {value!r}")
    return value


def _as_it_is(where: str, argument: Argument, value: Any) -> Any:
    return value


_KINDS: dict[str, Callable[[str, Argument, Any], Any]] = {
    "angles": _by_name(arguments.angles),
    "both_directions": _by_name(arguments.both_directions),
    "chain": _as_it_is,
    "chains": _as_it_is,
    "channel_values": _by_name(arguments.channel_values),
    "color": _by_value(arguments.color),
    "dtype": _by_value(arguments.dtype),
    "edge_size": _by_value(_edge_size),
    "factor": _factor,
    "flag": _by_name(arguments.flag),
    "hue": _hue,
    "integer": _integer,
    "integer_pair": _integer_pair,
    "integers": _integers,
    "interpolation": _by_value(arguments.interpolation),
    "names": _as_it_is,
    "padding_mode": _by_value(arguments.padding_mode),
    "pair": _by_name(arguments.pair),
    "range": _by_name(arguments.low_high),
    "real": _by_name(arguments.real),
    "reals": _by_name(arguments.reals),
    "sides": _by_value(arguments.sides),
    "size": _by_value(arguments.square_size),
    "text": _text,
    "word": _word,
}
