#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/operations_table.py [--check]: writes the table of docs/operations.md from the engine's list of operations.

Run it with a Python that has Feedline installed. --check: exits with 1 if the page differs, and writes nothing.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

import feedline
from feedline import _engine

PAGE = Path(__file__).resolve().parents[1] / "docs" / "operations.md"
# operations on volumes that methods with other names append
VOLUME_FORMS = {"random_patch", "center_patch", "grid_patch", "random_affine_3d", "standardize"}
START, END = "<!-- table: written by tools/operations_table.py -->\n", "<!-- end of table -->\n"


def call(name: str) -> str:
    """Returns the method with its arguments and defaults, except for arguments of all operations."""
    parameters = inspect.signature(getattr(feedline.Dataset, name)).parameters.values()
    shown = []
    for parameter in parameters:
        if parameter.name in ("self", "fields"):
            continue
        has_default = parameter.default is not parameter.empty
        shown.append(f"{parameter.name}={parameter.default!r}" if has_default else parameter.name)
    return f"`{name}({', '.join(shown)})`"


def table() -> str:
    lines = ["| call | random | moves targets | on a GPU |", "|---|---|---|---|"]
    for operation in _engine.operation_types():
        if operation["name"] in VOLUME_FORMS:
            continue
        answers = (operation[fact] for fact in ("is_random", "moves_pixels", "runs_on_device"))
        lines.append(
            f"| {call(operation['name'])} | " + " | ".join("yes" if answer else "" for answer in answers) + " |"
        )
    return "\n".join(lines) + "\n"


def main() -> int:
    page = PAGE.read_text()
    before, rest = page.split(START)
    after = rest.split(END)[1]
    written = before + START + table() + END + after
    if "--check" in sys.argv[1:]:
        return int(written != page)
    PAGE.write_text(written)
    return 0


if __name__ == "__main__":
    sys.exit(main())
