# SPDX-License-Identifier: Apache-2.0
"""Lhotse's manifests of cuts: JSON lines, which may be compressed with gzip.

Source: Lhotse's documentation, "Cuts". Mono and multi cuts of recordings in files are read, with one or all of their
channels; mixed cuts, padding cuts, transforms, and recordings in archives, memory or from commands are refused.
"""

from __future__ import annotations

import os
from typing import Any

from .utterances import Utterances, fail, located, objects_of, refuse, seconds


def read(path: str) -> Utterances:
    rows = Utterances(path)
    folder = os.path.dirname(path)
    for line, cut in objects_of(path):
        kind = cut.get("type", "MonoCut")
        if kind not in ("MonoCut", "MultiCut", "Cut"):
            refuse(path, line, f"a cut of type {kind!r} is not supported; save it as audio with Lhotse's save_audio()")
        file, channel = _file_of(path, line, cut)
        begin = seconds(path, line, "start", cut.get("start", 0))
        duration = seconds(path, line, "duration", cut.get("duration"))
        supervisions = [one for one in cut.get("supervisions") or [] if isinstance(one, dict)]
        texts = [str(one["text"]) for one in supervisions if one.get("text")]
        speakers = [str(one["speaker"]) for one in supervisions if one.get("speaker")]
        rows.add(
            located(folder, file),
            begin,
            duration,
            channel,
            text=" ".join(texts),
            key=str(cut.get("id", "")),
            speaker=speakers[0] if speakers else "",
        )
    return rows


def _file_of(path: str, line: int, cut: dict[str, Any]) -> tuple[str, int]:
    """Returns the file, and the only channel of the cut in it; -1 if it has all channels."""
    recording = cut.get("recording")
    if not isinstance(recording, dict):
        fail(path, line, "the cut has no recording")
    if recording.get("transforms"):
        refuse(path, line, "the recording has transforms, which are not applied; save the cuts with save_audio()")
    sources = recording.get("sources") or []
    if len(sources) != 1 or not isinstance(sources[0], dict):
        refuse(path, line, f"the recording has {len(sources)} sources; one file is supported")
    kind, file = sources[0].get("type"), sources[0].get("source")
    if kind not in ("file", "url") or not isinstance(file, str):
        refuse(path, line, f"a source of type {kind!r} is not supported; only files and URLs are read")
    channels = sources[0].get("channels") or [0]
    if not isinstance(channels, list):
        fail(path, line, f"the channels of the source are {channels!r}, not a list")
    chosen = cut.get("channel", channels)
    chosen = chosen if isinstance(chosen, list) else [chosen]
    if chosen == channels:
        return file, -1
    if len(chosen) != 1 or chosen[0] not in channels:
        refuse(
            path, line, f"the cut has the channels {chosen} of {channels}; cuts of one or all channels are supported"
        )
    return file, channels.index(chosen[0])
