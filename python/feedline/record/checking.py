# SPDX-License-Identifier: Apache-2.0
"""Checks records against run.schema.json: fastjsonschema finds what is wrong, a sentence here says it.

It is imported by the first check: making a record, as a diagnosis does, needs nothing beside the package.
"""

from __future__ import annotations

import copy
import functools
import json
from collections.abc import Callable
from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fastjsonschema import JsonSchemaValueException

# What is said where a keyword of the schema is broken; the tests see to it that the schema holds no other.
SENTENCES: dict[str, Callable[[JsonSchemaValueException], str]] = {
    "const": lambda found: f"must be {found.rule_definition!r}, not {_shown(found.value)}",
    "enum": lambda found: f"must be one of {', '.join(map(repr, found.rule_definition))}, not {_shown(found.value)}",
    "type": lambda found: f"must be {_types(found.rule_definition)}, not {_shown(found.value)}",
    "minimum": lambda found: f"must be at least {found.rule_definition}, not {_shown(found.value)}",
    "required": lambda found: f"lacks {next(name for name in found.rule_definition if name not in found.value)!r}",
    "maxItems": lambda found: f"has {len(found.value)} items; {found.rule_definition} are the most",
}


def problem(record: Any) -> str | None:
    """The first thing in which `record` is not as the schema has it, as a sentence; None: nothing."""
    from fastjsonschema import JsonSchemaValueException

    try:
        _validator()(record)
    except JsonSchemaValueException as found:
        where = "record" + (found.name or "").removeprefix("data")
        return f"{where} {SENTENCES[found.rule or ''](found)}"
    return None


@functools.cache
def schema() -> dict[str, Any]:
    """The JSON Schema of the records that this version writes."""
    text = files("feedline.record").joinpath("run.schema.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


@functools.cache
def _validator() -> Callable[[Any], Any]:
    import fastjsonschema

    # a copy: references in what is compiled are written anew
    validator: Callable[[Any], Any] = fastjsonschema.compile(copy.deepcopy(schema()), use_default=False)
    return validator


def _types(named: str | list[str]) -> str:
    return named if isinstance(named, str) else " or ".join(named)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
