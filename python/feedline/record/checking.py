# SPDX-License-Identifier: Apache-2.0
"""Checks a value against the part of JSON Schema (draft 2020-12) that run.schema.json uses.

Reading a record must not need more than the package itself; the tests hold this against the ``jsonschema`` library.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "null": (type(None),),
}
# What `problem` understands; the schema's tests see to it that the schema holds nothing else.
KEYWORDS = frozenset(
    ("$ref", "type", "const", "enum", "minimum", "required", "properties", "additionalProperties", "items", "maxItems")
)
ANNOTATIONS = frozenset(("$schema", "$id", "$defs", "title", "description"))


def problem(value: Any, schema: Mapping[str, Any], root: Mapping[str, Any], where: str = "record") -> str | None:
    """The first thing in which `value` is not as `schema` has it, as a sentence; None: nothing."""
    if "$ref" in schema:
        found = problem(value, root["$defs"][schema["$ref"].rpartition("/")[2]], root, where)
        if found:
            return found
    if "const" in schema and (value != schema["const"] or isinstance(value, bool)):
        return f"{where} must be {schema['const']!r}, not {_shown(value)}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{where} must be one of {', '.join(map(repr, schema['enum']))}, not {_shown(value)}"
    if "type" in schema:
        types = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
        if not any(_is(value, name) for name in types):
            return f"{where} must be {' or '.join(types)}, not {_shown(value)}"
    if _is(value, "number") and "minimum" in schema and value < schema["minimum"]:
        return f"{where} must be at least {schema['minimum']}, not {_shown(value)}"
    if isinstance(value, dict):
        return _object_problem(value, schema, root, where)
    if isinstance(value, list):
        if len(value) > schema.get("maxItems", math.inf):
            return f"{where} has {len(value)} items; {schema['maxItems']} are the most"
        items = schema.get("items", {})
        return next(
            (found for i, item in enumerate(value) if (found := problem(item, items, root, f"{where}[{i}]"))), None
        )
    return None


def _object_problem(
    value: Mapping[str, Any], schema: Mapping[str, Any], root: Mapping[str, Any], where: str
) -> str | None:
    for name in schema.get("required", ()):
        if name not in value:
            return f"{where} lacks {name!r}"
    properties, others = schema.get("properties", {}), schema.get("additionalProperties", {})
    for name, item in value.items():
        if found := problem(item, properties.get(name, others), root, f"{where}.{name}"):
            return found
    return None


def _is(value: Any, name: str) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    if name == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES[name])


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
