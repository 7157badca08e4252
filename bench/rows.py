# SPDX-License-Identifier: Apache-2.0
"""Measures feedline.files and feedline.table with a million rows: time to open, bytes per row, time to the first batch.

Every measurement is a fresh process. The images are 64 small photos, each used in many rows.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

FORMS = ("list", "pandas", "polars", "arrow", "csv")


def own_bytes() -> int:
    """Returns the anonymous memory of this process."""
    fields = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return 1024 * sum(int(line.split()[1]) for line in fields if line.startswith("Anonymous:"))


def make_photos(folder: Path) -> list[str]:
    from PIL import Image

    for number in range(64):
        Image.new("RGB", (64, 64), (number, 2 * number, 255)).save(folder / f"photo_{number:02}.jpg")
    return [str(path) for path in sorted(folder.glob("*.jpg"))]


def source_of(form: str, folder: Path, rows: int) -> Any:
    photos = make_photos(folder)
    columns = {
        "path": [photos[i % len(photos)][:-1] + "g" for i in range(rows)],  # separate strings
        "label": [f"class_{i % 100}" for i in range(rows)],
    }
    if form == "list":
        return columns
    if form == "csv":
        lines = (f"{path},{label}\n" for path, label in zip(columns["path"], columns["label"], strict=True))
        (folder / "rows.csv").write_text("path,label\n" + "".join(lines))
        return folder / "rows.csv"
    if form == "pandas":
        import pandas

        return pandas.DataFrame(columns)
    if form == "polars":
        import polars

        return polars.DataFrame(columns)
    import pyarrow

    return pyarrow.table(columns)


def measure(form: str, rows: int) -> None:
    import feedline

    with tempfile.TemporaryDirectory() as name:
        source = source_of(form, Path(name), rows)
        small = feedline.files(make_photos(Path(name))).resize((32, 32))
        next(iter(small.loader(64, output="numpy")))  # imports and threads
        before, started = own_bytes(), time.perf_counter()
        if form == "list":
            dataset = feedline.files(source["path"], label=source["label"])
        else:
            dataset = feedline.table(source, image="path", label="label")
        opened = time.perf_counter() - started
        taken = (own_bytes() - before) / rows
        next(iter(dataset.resize((32, 32)).loader(64, shuffle=True, output="numpy")))
        first = time.perf_counter() - started
        print(f"{form:8} opened in {opened:.2f} s, {taken:.0f} bytes per row, first batch after {first:.2f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--form", choices=FORMS)
    given = parser.parse_args()
    if given.form:
        measure(given.form, given.rows)
        return
    for form in FORMS:
        subprocess.run([sys.executable, __file__, "--form", form, "--rows", str(given.rows)], check=True)


if __name__ == "__main__":
    main()
