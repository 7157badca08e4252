# SPDX-License-Identifier: Apache-2.0
"""Reads the metadata of a LeRobotDataset: ``meta/info.json``, its episodes and tasks.

Source: lerobot 0.4.4, ``lerobot/datasets/{lerobot_dataset,utils}.py`` and its converter from v2.1 to v3.0.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

from ... import _engine
from ...errors import ConfigError, DataError, Error
from ..source_spec import SourceSpec

_MOST_JSON = 2**30
_INFO = "meta/info.json"


class Folder:
    """A dataset's folder, at a path or a URL."""

    def __init__(self, source: str) -> None:
        self.source = source.rstrip("/") if source.strip("/") else source

    def path(self, name: str) -> str:
        return f"{self.source}/{name}"

    def text(self, name: str) -> str:
        """Returns the text of a file; raises StorageError if it cannot be read."""
        stored = _engine.StoredSource(self.path(name))
        return stored.object(stored.names[0]).read(0, _MOST_JSON).decode("utf-8", "replace")

    def json(self, name: str) -> dict[str, Any]:
        return self._parsed(name, self.text(name))

    def json_lines(self, name: str) -> list[dict[str, Any]]:
        return [self._parsed(name, line) for line in self.text(name).splitlines() if line.strip()]

    def _parsed(self, name: str, text: str) -> dict[str, Any]:
        try:
            value = json.loads(text)
        except ValueError as error:
            self.damaged(name, f"not valid JSON: {error}")
        if not isinstance(value, dict):
            self.damaged(name, "expected a JSON object")
        return value

    def parquet(self, names: Sequence[str], columns: Sequence[str]) -> _engine.Dataset:
        return SourceSpec("::".join(map(self.path, names)), "parquet", list(columns)).open()

    def damaged(self, name: str, what: str) -> NoReturn:
        raise DataError(f"open: {self.path(name)!r}: {what}")


class Feature(NamedTuple):
    key: str
    dtype: str  # "video", "image", "string", or NumPy's name
    shape: tuple[int, ...]
    size: tuple[int, int] | None = None  # height and width of a video's or an image's frames


class Camera(NamedTuple):
    """The file of each episode, relative to the folder, and the start of the episode in it, in seconds."""

    paths: list[str]
    begins: list[float]


class Metadata(NamedTuple):
    folder: Folder
    fps: float
    features: list[Feature]
    lengths: list[int]  # rows of each episode
    data_files: list[str]
    cameras: dict[str, Camera]
    tasks: dict[int, str]


def is_dataset(folder: Folder) -> bool:
    """Whether the folder has a ``meta/info.json`` with a ``codebase_version``."""
    try:
        return "codebase_version" in json.loads(folder.text(_INFO))
    except (Error, ValueError, TypeError):
        return False


def read(folder: Folder) -> Metadata:
    """Reads the metadata.

    Raises:
        ConfigError: the version of the format is not supported.
        DataError: a file is damaged.
        StorageError: a file cannot be read.
    """
    info = folder.json(_INFO)
    version = str(info.get("codebase_version"))
    fps = info.get("fps")
    if not isinstance(fps, int | float) or not fps > 0:
        folder.damaged(_INFO, f"fps must be a number above 0, not {fps!r}")
    described = info.get("features")
    if not isinstance(described, dict) or not described:
        folder.damaged(_INFO, "it has no features")
    features = [_feature(folder, key, value) for key, value in described.items()]
    reader: Callable[..., Metadata]
    if version in ("v3.0", "3.0"):
        reader = _read_3_0
    elif version in ("v2.0", "v2.1"):
        reader = _read_2_1
    else:
        raise ConfigError(
            f"open: {folder.source!r} is a LeRobotDataset of version {version}; versions v2.0, v2.1 and v3.0 are "
            "supported: convert it with lerobot's scripts"
        )
    return reader(folder, info, float(fps), features)


def _feature(folder: Folder, key: str, described: Any) -> Feature:
    if not isinstance(described, dict) or not isinstance(described.get("dtype"), str):
        folder.damaged(_INFO, f"the feature {key!r} has no dtype")
    shape = described.get("shape") or ()
    if not isinstance(shape, list | tuple) or not all(isinstance(extent, int) for extent in shape):
        folder.damaged(_INFO, f"the shape of the feature {key!r} is {shape!r}, not a list of integers")
    size = None
    if described["dtype"] in ("video", "image") and len(shape) == 3:
        is_first = shape[0] in (1, 3) and shape[2] not in (1, 3)
        size = (shape[1], shape[2]) if is_first else (shape[0], shape[1])
    return Feature(key, described["dtype"], tuple(shape), size)


def _count(folder: Folder, info: dict[str, Any], name: str, usual: int) -> int:
    count = info.get(name) or usual
    if not isinstance(count, int) or count < 0:
        folder.damaged(_INFO, f"{name} is {count!r}, not a number from 0")
    return count


def _chunk_size(folder: Folder, info: dict[str, Any]) -> int:
    return _count(folder, info, "chunks_size", 1000)


def _filled(folder: Folder, name: str, template: Any, **values: Any) -> str:
    """Returns a template of ``info.json``, such as ``data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet``, with
    its fields replaced.
    """

    def value(match: re.Match[str]) -> str:
        if match[1] not in values:
            folder.damaged(_INFO, f"{name} contains {match[0]}, which is not one of {', '.join(values)}")
        return format(values[match[1]], match[2] or "")

    if not isinstance(template, str):
        folder.damaged(_INFO, f"{name} is {template!r}, not the path of a file")
    return re.sub(r"\{(\w+)(?::(0?\d*d))?\}", value, template)


# ---- v3.0 ----


def _read_3_0(folder: Folder, info: dict[str, Any], fps: float, features: list[Feature]) -> Metadata:
    cameras = [feature.key for feature in features if feature.dtype == "video"]
    parts = [f"videos/{key}/{part}" for key in cameras for part in ("chunk_index", "file_index", "from_timestamp")]
    names = ["episode_index", "length", "data/chunk_index", "data/file_index", *parts]
    columns: dict[str, list[Any]] = {name: [] for name in names}
    for part in _episode_files(_chunk_size(folder, info)):
        stored = folder.parquet([part], names)
        for name in names:
            columns[name].extend(_engine.field_values(stored, name).tolist())
        if len(columns["length"]) >= _count(folder, info, "total_episodes", 0):
            break
    if columns["episode_index"] != list(range(len(columns["length"]))):
        folder.damaged("meta/episodes", "the episodes are not numbered from 0 in ascending order")
    files = {
        _filled(folder, "data_path", info.get("data_path"), chunk_index=chunk, file_index=file): None
        for chunk, file in zip(columns["data/chunk_index"], columns["data/file_index"], strict=True)
    }

    def camera(key: str) -> Camera:
        numbers = zip(columns[f"videos/{key}/chunk_index"], columns[f"videos/{key}/file_index"], strict=True)
        template = info.get("video_path")
        return Camera(
            [
                _filled(folder, "video_path", template, video_key=key, chunk_index=chunk, file_index=file)
                for chunk, file in numbers
            ],
            columns[f"videos/{key}/from_timestamp"],
        )

    return Metadata(
        folder, fps, features, columns["length"], list(files), {key: camera(key) for key in cameras}, _tasks_3_0(folder)
    )


def _episode_files(files: int) -> Any:
    """Yields the possible files of episodes in order; each chunk has ``files`` files."""
    number = 0
    while True:
        yield f"meta/episodes/chunk-{number // files:03d}/file-{number % files:03d}.parquet"
        number += 1


def _tasks_3_0(folder: Folder) -> dict[int, str]:
    """Returns the tasks, which pandas has written as the index of a table with a column ``task_index``."""
    stored = SourceSpec(folder.path("meta/tasks.parquet"), "parquet").open()
    names = [name for name, kind, *_ in stored.roles() if kind == "text"]
    if not names or "task_index" not in [name for name, *_ in stored.roles()]:
        folder.damaged("meta/tasks.parquet", "expected a column of text and the column 'task_index'")
    name = next((one for one in ("task", "__index_level_0__") if one in names), names[0])
    numbers = _engine.field_values(stored, "task_index").tolist()
    return dict(zip(numbers, _engine.field_values(stored, name), strict=True))


# ---- v2.0 and v2.1 ----


def _read_2_1(folder: Folder, info: dict[str, Any], fps: float, features: list[Feature]) -> Metadata:
    cameras = [feature.key for feature in features if feature.dtype == "video"]
    episodes = folder.json_lines("meta/episodes.jsonl")
    if [episode.get("episode_index") for episode in episodes] != list(range(len(episodes))):
        folder.damaged("meta/episodes.jsonl", "the episodes are not numbered from 0 in ascending order")
    chunk = _chunk_size(folder, info)

    def paths(name: str, **more: Any) -> list[str]:
        return [
            _filled(folder, name, info.get(name), episode_chunk=i // chunk, episode_index=i, **more)
            for i in range(len(episodes))
        ]

    lengths = [episode.get("length") for episode in episodes]
    if not all(isinstance(length, int) and length > 0 for length in lengths):
        folder.damaged("meta/episodes.jsonl", "an episode has no length")
    tasks = {}
    for row in folder.json_lines("meta/tasks.jsonl"):
        number, task = row.get("task_index"), row.get("task")
        if not isinstance(number, int) or not isinstance(task, str):
            folder.damaged("meta/tasks.jsonl", f"expected the integer task_index and the text task, not {row!r:.200}")
        tasks[number] = task
    videos = {key: Camera(paths("video_path", video_key=key), [0.0] * len(episodes)) for key in cameras}
    return Metadata(
        folder, fps, features, [int(length) for length in lengths if length], paths("data_path"), videos, tasks
    )
