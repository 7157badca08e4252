# SPDX-License-Identifier: Apache-2.0
"""Recognises manifests, and opens them as datasets."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

from ...errors import ConfigError, Error, StorageError
from ..dataset import Dataset
from ..memory.row_dataset import RowDataset
from ..memory.table_columns import TableColumns
from . import kaldi, lhotse, librispeech, nemo, voice_tables
from .utterances import Utterances, lines_of

_READERS: dict[str, Callable[[str], Utterances]] = {
    "common_voice": voice_tables.read,
    "kaldi": kaldi.read,
    "lhotse": lhotse.read,
    "librispeech": librispeech.read,
    "nemo": nemo.read,
}
_FIRST_BYTES = 64  # in which a manifest's first object begins, after a byte-order mark and empty lines
_SEEN = 512  # entries of a folder that are searched for a transcript


def format_of(paths: Sequence[str]) -> str:
    """Returns the common format of manifests by their content; an empty string for any other source."""
    first = _format_of(paths[0]) if paths else ""
    return first if first and all(_format_of(path) == first for path in paths[1:]) else ""


def _format_of(path: str) -> str:
    try:
        if os.path.isdir(path):
            if os.path.exists(os.path.join(path, "wav.scp")):
                return "kaldi"
            return "librispeech" if _has_transcript(path, 3) else ""
        if path.endswith((".jsonl", ".json", ".jsonl.gz")) and os.path.isfile(path):
            return _format_of_lines(path)
        if path.endswith(".tsv") and os.path.isfile(path):
            header = next((text for _, text in lines_of(path)), "").split("\t")
            return "common_voice" if {"client_id", "path", "sentence"} <= set(header) else ""
    except (OSError, Error):
        return ""  # other formats report the error
    return ""


def _has_transcript(folder: str, levels: int) -> bool:
    with os.scandir(folder) as entries:
        first = None
        for entry in islice(entries, _SEEN):
            if entry.name.endswith(".trans.txt"):
                return True
            if first is None and entry.is_dir():
                first = entry.path
    return first is not None and levels > 1 and _has_transcript(first, levels - 1)


def _format_of_lines(path: str) -> str:
    with open(path, "rb") as file:
        start = file.read(_FIRST_BYTES).removeprefix(b"\xef\xbb\xbf").lstrip()
        if not path.endswith(".gz") and not start.startswith(b"{"):
            return ""  # lists and other JSON are not read completely here
    text = next((text for _, text in lines_of(path)), "")
    try:
        row = json.loads(text)
    except ValueError:
        return ""
    if not isinstance(row, dict):
        return ""
    if "audio_filepath" in row:
        return "nemo"
    return "lhotse" if isinstance(row.get("recording"), dict) and "start" in row else ""


def open_manifests(paths: Sequence[str], format: str, fields: Any, cache: Any, cache_limit: Any, hedge: Any) -> Dataset:
    """Opens manifests, one after the other, as a dataset with the fields ``audio`` and, with transcripts, ``text``.

    Raises:
        ConfigError: the manifest has no utterances, or names audio of a kind that is not supported.
        DataError: a line is damaged.
        StorageError: a file cannot be read.
    """
    rows = Utterances("::".join(paths))
    for path in paths:
        if "://" in path:
            raise ConfigError(f"open: a manifest must be a local file or folder, not {path!r}; its audio may be URLs")
        try:
            found = _READERS[format](path)
        except OSError as error:
            raise StorageError(f"open: {error.filename or path}: {error.strerror}") from None
        if not found.paths:
            raise ConfigError(f"open: the manifest {path!r} ({format}) has no utterances")
        rows.extend(found)
    rows.fill_numbers()
    dataset = _ManifestDataset(rows).dataset(fields, cache, cache_limit, hedge)
    has_channels = any(channel >= 0 for channel in rows.channels)
    dataset._has_parts = has_channels or any(rows.begins) or len(set(rows.paths)) < len(rows.paths)
    return dataset


class _ManifestDataset(RowDataset):
    def __init__(self, rows: Utterances) -> None:
        columns = TableColumns(rows.source, {**rows.columns, "audio": rows.paths})
        super().__init__("open", columns, "")
        self._rows = rows

    def _usual(self) -> list[tuple[str, str, str]]:
        names = ["audio"]
        if any(self._rows.columns.get("text", ())):
            names.append("text")
        return [(name, name, "") for name in names]

    def _add(self, name: str, role: str, kind: str) -> None:
        if role == "audio":
            self._fields.add_audio(
                name, self.column("audio"), self._rows.begins, self._rows.durations, self._rows.channels
            )
        else:
            is_text = any(isinstance(value, str) for value in self._rows.columns.get(role, ()))
            super()._add(name, role, kind or ("text" if is_text else ""))
