# SPDX-License-Identifier: Apache-2.0
"""Validates records against run.schema.json with fastjsonschema, and describes the first error in a sentence.

This module is imported at the first validation, because creating a record does not require fastjsonschema.
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

# The message for each schema keyword; tests ensure that the schema has no others.
SENTENCES: dict[str, Callable[[JsonSchemaValueException], str]] = {
    "const": lambda found: f"must be {found.rule_definition!r}, not {_shown(found.value)}",
    "enum": lambda found: f"must be one of {', '.join(map(repr, found.rule_definition))}, not {_shown(found.value)}",
    "type": lambda found: f"must be {_types(found.rule_definition)}, not {_shown(found.value)}",
    "minimum": lambda found: f"must be at least {found.rule_definition}, not {_shown(found.value)}",
    "required": lambda found: f"lacks {next(name for name in found.rule_definition if name not in found.value)!r}",
    "maxItems": lambda found: f"has {len(found.value)} items; at most {found.rule_definition} are allowed",
}


def problem(record: Any) -> str | None:
    """Returns the first schema violation of `record` as a sentence, or None."""
    from fastjsonschema import JsonSchemaValueException

    try:
        _validator()(record)
    except JsonSchemaValueException as found:
        where = "record" + (found.name or "").removeprefix("data")
        return f"{where} {SENTENCES[found.rule or ''](found)}"
    return None


@functools.cache
def schema() -> dict[str, Any]:
    """Returns the JSON Schema for records that this version writes."""
    text = files("feedline.record").joinpath("run.schema.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


@functools.cache
def _validator() -> Callable[[Any], Any]:
    import fastjsonschema

    # a copy, because the compiler rewrites references
    validator: Callable[[Any], Any] = fastjsonschema.compile(copy.deepcopy(schema()), use_default=False)
    return validator


def _types(named: str | list[str]) -> str:
    return named if isinstance(named, str) else " or ".join(named)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
