# SPDX-License-Identifier: Apache-2.0
"""Kaldi's data folders: ``wav.scp``, and optionally ``segments``, ``text`` and ``utt2spk``.

Source: Kaldi's documentation, "Data preparation". Commands and archives in ``wav.scp`` are refused.
"""

from __future__ import annotations

import os
import re

from .utterances import Utterances, fail, lines_of, located, refuse, seconds


def read(folder: str) -> Utterances:
    recordings = _recordings(folder)
    texts, speakers = (_table(folder, name) for name in ("text", "utt2spk"))
    rows = Utterances(folder)

    def add(key: str, path: str, begin: float, duration: float) -> None:
        values = {"key": key}
        if texts:
            values["text"] = texts.get(key, "")
        if speakers:
            values["speaker"] = speakers.get(key, "")
        rows.add(path, begin, duration, **values)

    segments = os.path.join(folder, "segments")
    if not os.path.exists(segments):
        for key, path in recordings.items():
            add(key, path, 0.0, -1.0)
        return rows
    for line, text in lines_of(segments):
        parts = text.split()
        if len(parts) != 4:
            fail(segments, line, f"expected 'utterance recording start end', not {text[:80]!r}")
        key, recording, start, end = parts
        if recording not in recordings:
            fail(segments, line, f"the recording '{recording}' is not in wav.scp")
        begin = seconds(segments, line, "start", start)
        last = None if end == "-1" else seconds(segments, line, "end", end)
        if last is not None and last <= begin:
            fail(segments, line, f"the segment ends at {end}, before it starts at {start}")
        add(key, recordings[recording], begin, -1.0 if last is None else last - begin)
    return rows


def _recordings(folder: str) -> dict[str, str]:
    path = os.path.join(folder, "wav.scp")
    found = {}
    for line, text in lines_of(path):
        key, *rest = text.split(maxsplit=1)
        value = rest[0].rstrip() if rest else ""
        if not value:
            fail(path, line, f"expected 'recording path', not {text[:80]!r}")
        if value.endswith("|") or value.startswith("|"):
            refuse(path, line, f"'{value[:60]}' is a command, which is not run; convert the audio to files first")
        if re.search(r"\.ark:\d+$", value):
            refuse(path, line, f"'{value}' is in an archive, which is not supported; write the audio to files")
        if key in found:
            fail(path, line, f"the key '{key}' is in an earlier line")
        found[key] = located(folder, value)
    return found


def _table(folder: str, name: str) -> dict[str, str]:
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        return {}
    rows = (re.split(r"\s+", text.strip(), maxsplit=1) for _, text in lines_of(path))
    return {row[0]: row[1] if len(row) > 1 else "" for row in rows}
