# SPDX-License-Identifier: Apache-2.0
"""Common Voice's tables: ``train.tsv`` and others, with the files in ``clips`` next to them.

Source: the tables of Common Voice 17. ``clip_durations.tsv`` is not read, as its durations are rounded.
"""

from __future__ import annotations

import os

from .utterances import Utterances, fail, lines_of


def read(path: str) -> Utterances:
    folder = os.path.dirname(path)
    rows = Utterances(path)
    names: list[str] = []
    for line, text in lines_of(path):
        cells = text.split("\t")
        if not names:
            names = cells
            for name in ("path", "sentence"):
                if name not in names:
                    fail(path, line, f"the column '{name}' is missing")
            continue
        if len(cells) != len(names):
            fail(path, line, f"{len(cells)} cells, but the header has {len(names)}")
        row = dict(zip(names, cells, strict=True))
        clip = row["path"]
        file = os.path.join(folder, "clips", clip if "." in clip else clip + ".mp3")
        extra = {name: value for name, value in row.items() if name not in ("path", "sentence", "text")}
        rows.add(file, 0.0, -1.0, text=row["sentence"], **extra)
    return rows
