#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/image_formats_table.py [--check]: writes the table of images in docs/formats.md from the engine's table.

Run it with a Python that has Feedline installed. --check: exits with 1 if the page differs, and writes nothing.
"""

from __future__ import annotations

import sys
from pathlib import Path

from feedline.data.image_formats import FORMATS, ImageFormat

PAGE = Path(__file__).resolve().parents[1] / "docs" / "formats.md"
START, END = "<!-- table: written by tools/image_formats_table.py -->\n", "<!-- end of table -->\n"


def row(one: ImageFormat) -> str:
    """Extensions that ImageFolder does not read are in parentheses."""
    shown = [f".{name}" if name in one.image_folder_extensions else f"(.{name})" for name in one.extensions]
    decoder = "the engine" if one.is_native else "Pillow"
    if one.pillow_requires:
        decoder += f"; requires {one.pillow_requires}"
    return f"| {one.title} | {', '.join(shown) or 'by content only'} | {decoder} |"


def table() -> str:
    return "\n".join(["| format | extensions | decoder |", "|---|---|---|", *map(row, FORMATS)]) + "\n"


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
