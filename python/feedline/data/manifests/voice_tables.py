# SPDX-License-Identifier: Apache-2.0
"""Common Voice's tables: ``train.tsv`` and others, with the files in ``clips`` next to them.

Source: the tables of Common Voice 17. Durations are those of ``clip_durations.tsv``, if it exists.
"""

from __future__ import annotations

import os

from .utterances import Utterances, fail, lines_of, seconds


def read(path: str) -> Utterances:
    folder = os.path.dirname(path)
    lengths = _durations(os.path.join(folder, "clip_durations.tsv"))
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
        rows.add(file, 0.0, lengths.get(clip, -1.0), text=row["sentence"], **extra)
    return rows


def _durations(path: str) -> dict[str, float]:
    if not os.path.exists(path):
        return {}
    found = {}
    for line, text in lines_of(path):
        clip, _, milliseconds = text.partition("\t")
        if line > 1:
            found[clip] = seconds(path, line, "duration", milliseconds) / 1000
    return found
