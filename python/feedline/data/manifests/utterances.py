# SPDX-License-Identifier: Apache-2.0
"""The utterances that a manifest lists, and errors about its lines."""

from __future__ import annotations

import gzip
import json
import math
import os
import zlib
from collections.abc import Iterator
from typing import Any, NoReturn

from ...errors import ConfigError, DataError

_MOST_EXACT = 1 << 53  # float64 represents all integers up to it


class Utterances:
    """One row per utterance.

    Attributes:
        source: the manifest's path.
        paths: paths of audio files.
        begins: seconds at which the utterances begin in their files.
        durations: seconds; negative for the rest of the file.
        channels: the only channels of the files to deliver, from 0; -1 for all.
        columns: further columns of text or numbers, one value per row; ``text`` is the transcript.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self.paths: list[str] = []
        self.begins: list[float] = []
        self.durations: list[float] = []
        self.channels: list[int] = []
        self.columns: dict[str, list[Any]] = {}

    def add(self, path: str, begin: float = 0.0, duration: float = -1.0, channel: int = -1, /, **values: Any) -> None:
        for name, value in values.items():
            column = self.columns.setdefault(name, [""] * len(self.paths))
            column.append(value)
        self.paths.append(path)
        self.begins.append(begin)
        self.durations.append(duration)
        self.channels.append(channel)
        for column in self.columns.values():
            if len(column) < len(self.paths):
                column.append("")

    def extend(self, other: Utterances) -> None:
        """Appends the rows of another manifest; columns that one of them lacks are empty there."""
        for name in [*self.columns, *(name for name in other.columns if name not in self.columns)]:
            own = self.columns.setdefault(name, [""] * len(self.paths))
            own += other.columns.get(name, [""] * len(other.paths))
        self.paths += other.paths
        self.begins += other.begins
        self.durations += other.durations
        self.channels += other.channels

    def fill_numbers(self) -> None:
        """Sets the empty cells of columns of numbers to NaN, if float64 can represent the numbers."""
        for name, column in self.columns.items():
            texts = {value for value in column if isinstance(value, str)}
            numbers = [value for value in column if not isinstance(value, str)]
            is_exact = all(isinstance(value, float) or abs(value) <= _MOST_EXACT for value in numbers)
            if texts == {""} and numbers and is_exact:
                self.columns[name] = [math.nan if value == "" else value for value in column]


def fail(path: str, line: int, problem: str) -> NoReturn:
    raise DataError(f"{path}, line {line}: {problem}")


def refuse(path: str, line: int, problem: str) -> NoReturn:
    raise ConfigError(f"{path}, line {line}: {problem}")


def lines_of(path: str) -> Iterator[tuple[int, str]]:
    """Yields the numbers, from 1, and texts of the lines that are not empty."""
    opener: Any = gzip.open if path.endswith(".gz") else open
    try:
        with opener(path, "rt", encoding="utf-8-sig", newline="\n") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield number, line.rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8: {error}") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path}: damaged: {error}") from None


def objects_of(path: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yields the numbers of lines and their JSON objects."""
    for number, line in lines_of(path):
        try:
            value = json.loads(line)
        except ValueError as error:
            fail(path, number, f"not JSON: {error}")
        if not isinstance(value, dict):
            fail(path, number, f"not a JSON object: {line[:60]!r}")
        yield number, value


def seconds(path: str, line: int, name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        fail(path, line, f"{name} is {value!r}, not a number of seconds")
    if not math.isfinite(number) or number < 0:
        fail(path, line, f"{name} is {value!r}, not a number of seconds from 0")
    return number


def located(folder: str, path: str) -> str:
    """Returns an audio file's path: relative paths refer to the manifest's folder, or to the working directory if the
    file exists only there.
    """
    if os.path.isabs(path) or "://" in path:
        return path
    there = os.path.join(folder, path)
    return path if not os.path.exists(there) and os.path.exists(path) else there
