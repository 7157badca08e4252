# SPDX-License-Identifier: Apache-2.0
"""Kaldi's data folders: ``wav.scp``, and optionally ``segments``, ``text`` and ``utt2spk``.

Source: Kaldi's documentation, "Data preparation", and ``extract-segments`` for the channel in ``segments``, which is
optional and counts from 0. Commands and archives in ``wav.scp`` are refused.
"""

from __future__ import annotations

import os
import re

from .utterances import Utterances, fail, lines_of, located, refuse, seconds

_MOST_DIGITS = 9  # of a channel


def read(folder: str) -> Utterances:
    recordings = _recordings(folder)
    texts, speakers = (_table(folder, name) for name in ("text", "utt2spk"))
    rows = Utterances(folder)

    def add(key: str, path: str, begin: float, duration: float, channel: int = -1) -> None:
        values = {"key": key}
        if texts:
            values["text"] = texts.get(key, "")
        if speakers:
            values["speaker"] = speakers.get(key, "")
        rows.add(path, begin, duration, channel, **values)

    segments = os.path.join(folder, "segments")
    if not os.path.exists(segments):
        for key, path in recordings.items():
            add(key, path, 0.0, -1.0)
        return rows
    for line, text in lines_of(segments):
        parts = text.split()
        if len(parts) not in (4, 5):
            fail(segments, line, f"expected 'utterance recording start end [channel]', not {text[:80]!r}")
        key, recording, start, end, *channel = parts
        if channel and not (channel[0].isascii() and channel[0].isdigit() and len(channel[0]) <= _MOST_DIGITS):
            fail(segments, line, f"the channel is {channel[0][:80]!r}, not a number from 0")
        if recording not in recordings:
            fail(segments, line, f"the recording '{recording}' is not in wav.scp")
        begin = seconds(segments, line, "start", start)
        last = None if end == "-1" else seconds(segments, line, "end", end)
        if last is not None and last <= begin:
            fail(segments, line, f"the segment ends at {end}, before it starts at {start}")
        duration = -1.0 if last is None else last - begin
        add(key, recordings[recording], begin, duration, int(channel[0]) if channel else -1)
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
