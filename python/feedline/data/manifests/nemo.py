# SPDX-License-Identifier: Apache-2.0
"""NeMo's manifests: JSON lines with ``audio_filepath``, and optionally ``offset``, ``duration`` and ``text``.

Source: NeMo, nemo/collections/common/parts/preprocessing/manifest.py.
"""

from __future__ import annotations

import os

from .utterances import Utterances, fail, located, objects_of, seconds


def read(path: str) -> Utterances:
    rows = Utterances(path)
    folder = os.path.dirname(path)
    for line, row in objects_of(path):
        file = row.get("audio_filepath", row.get("audio_filename"))
        if not isinstance(file, str) or not file:
            fail(path, line, "audio_filepath is missing")
        begin = seconds(path, line, "offset", row.get("offset") or 0)
        duration = row.get("duration")
        length = -1.0 if duration is None else seconds(path, line, "duration", duration)
        extra = {
            name: value for name, value in row.items() if isinstance(value, str | int | float) and name not in _KNOWN
        }
        text = row.get("text", "")
        if not isinstance(text, str):
            fail(path, line, f"text is {text!r}, not text")
        rows.add(located(folder, file), begin, length, text=text, **extra)
    return rows


_KNOWN = frozenset({"audio_filepath", "audio_filename", "offset", "duration", "text"})
