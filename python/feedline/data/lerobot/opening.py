# SPDX-License-Identifier: Apache-2.0
"""Opens a LeRobotDataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ... import _engine
from ...errors import ConfigError, DataError
from ...machine import media_libraries
from .. import arguments
from ..dataset import Dataset
from ..source_spec import SourceSpec
from ..storage import node_cache
from . import metadata
from .metadata import Feature, Metadata

_MOST_STEPS = 2**31  # of a window, in either direction
_TOLERANCE_S = 1e-4  # of delta_timestamps, as in lerobot
_TASK = "task"

Steps = dict[str, list[int]]


def open_lerobot(source: str, fields: Any, delta_timestamps: Any, cache: Any, cache_limit: Any, hedge: Any) -> Dataset:
    """Opens a LeRobotDataset; see :func:`feedline.open`.

    Raises:
        ConfigError: the version is not supported, or a key or a time of `delta_timestamps` does not exist.
        DataError: the metadata is damaged, or differs from the data.
        StorageError: a file is missing or cannot be read.
    """
    read = metadata.read(metadata.Folder(source))
    keys = [feature.key for feature in read.features]
    if read.tasks and "task_index" in keys:
        keys.append(_TASK)
    wanted = arguments.field_specs("open", fields) or keys
    for key in wanted:
        _require_key("fields", key, keys)
    if len(set(wanted)) < len(wanted):
        raise ConfigError(f"open: fields: a key occurs twice in {list(wanted)!r}")
    columns = _Columns(read, _steps_of(delta_timestamps, read, wanted))
    for key in wanted:
        columns.add(key)
    columns.columns.set_unopened([(key, "", "not in fields=", key) for key in keys if key not in wanted])
    media_libraries.use_packaged()
    options = {**node_cache.of_open(cache, cache_limit), "hedge": arguments.flag("open", "hedge", hedge)}
    engine = columns.columns.open(read.folder.source, "lerobot", columns.ends, options)
    return Dataset(engine, SourceSpec(read.folder.source, engine.format))


def _require_key(argument: str, key: Any, keys: Sequence[str]) -> None:
    if key not in keys:
        raise ConfigError(f"open: {argument}: the key {key!r} does not exist; the keys are {', '.join(keys)}")


def _steps_of(delta_timestamps: Any, read: Metadata, wanted: Sequence[str]) -> Steps:
    """Converts times to numbers of rows."""
    if delta_timestamps is None:
        return {}
    if not isinstance(delta_timestamps, Mapping):
        raise ConfigError(
            f"open: delta_timestamps must be a dict such as {{'action': [0.0, 0.1]}}, not {delta_timestamps!r:.200}"
        )
    of_text = [_TASK, *(feature.key for feature in read.features if feature.dtype == "string")]
    steps: Steps = {}
    for key, times in delta_timestamps.items():
        _require_key("delta_timestamps", key, wanted)
        if key in of_text:
            raise ConfigError(f"open: delta_timestamps: {key!r} is text, which has no windows; omit this key")
        if not arguments.is_sequence(times) or len(times) == 0:
            raise ConfigError(f"open: delta_timestamps: {key!r} must be a list of seconds, not {times!r:.200}")
        steps[key] = [_step(key, time, read.fps) for time in times]
    return steps


def _step(key: str, time: Any, fps: float) -> int:
    seconds = arguments.real("open", f"delta_timestamps[{key!r}]", time)
    step = round(seconds * fps)
    if abs(step) > _MOST_STEPS:
        raise ConfigError(f"open: delta_timestamps: {seconds} s of {key!r} is more than {_MOST_STEPS} frames")
    if abs(step / fps - seconds) > _TOLERANCE_S:
        raise ConfigError(
            f"open: delta_timestamps: {seconds} of {key!r} is not a multiple of 1/fps = {1 / fps:.6g} s within "
            f"{_TOLERANCE_S} s; the nearest is {step / fps:.6g}"
        )
    return step


class _Columns:
    """Collects the fields of a dataset for the engine. The columns of numbers are read when it is created."""

    def __init__(self, read: Metadata, steps: Steps) -> None:
        import numpy

        self.columns = _engine.EpisodeColumns()
        self._read, self._steps = read, steps
        self._features = {feature.key: feature for feature in read.features}
        stored = [f for f in read.features if f.dtype not in ("video", "image")]
        self._data = read.folder.parquet(read.data_files, [feature.key for feature in stored])
        self.ends = numpy.cumsum(read.lengths).tolist()
        self._check_episodes()

    def _check_episodes(self) -> None:
        """Raises DataError unless the rows are those of the metadata, in order."""
        import numpy

        lengths, folder = self._read.lengths, self._read.folder
        if not lengths:
            raise DataError(f"open: {folder.source!r} has no episodes")
        rows = len(self._data)
        if self.ends[-1] != rows:
            raise DataError(
                f"open: the data files of {folder.source!r} have {rows} rows, but its episodes have {self.ends[-1]}; "
                "a file is missing, or was written only in part"
            )
        numbers = _engine.field_values(self._data, "episode_index")
        expected = numpy.repeat(numpy.arange(len(lengths)), lengths)
        if not (numbers == expected).all():
            row = int(numpy.argmax(numbers != expected))
            raise DataError(
                f"open: row {row} of the data of {folder.source!r} is of episode {numbers[row]}, but the metadata "
                f"expects episode {expected[row]}"
            )

    def add(self, key: str) -> None:
        steps = self._steps.get(key)
        if key == _TASK and key not in self._features:
            self._add_task()
        else:
            self._add_feature(self._features[key], steps)
        if steps is not None:
            self.columns.add_pads(f"{key}_is_pad", steps)

    def _add_feature(self, feature: Feature, steps: list[int] | None) -> None:
        import numpy

        key = feature.key
        if feature.dtype == "video":
            camera = self._read.cameras[key]
            # the nearest frame is the one at the row's time, unless a frame is missing
            self.columns.add_videos(
                key,
                _cells(camera.paths),
                camera.begins,
                self._row("timestamp"),
                0.5 / self._read.fps,
                steps,
                feature.size,
            )
        elif feature.dtype == "image":
            images = self._read.folder.parquet(self._read.data_files, [f"{key}:image"])
            self.columns.add_images(key, images, images.roles()[0][0], steps, feature.size)
        elif feature.dtype == "string":
            self.columns.add_texts(key, _cells(_engine.field_values(self._data, key)), None)
        else:
            values = _engine.field_values(self._data, key)
            if isinstance(values, list):
                raise DataError(f"open: the rows of {key!r} differ in shape; the metadata states {feature.shape}")
            try:
                dtype = numpy.dtype(feature.dtype)
            except TypeError:
                raise DataError(f"open: {key!r} has the dtype {feature.dtype!r}, which NumPy does not know") from None
            stated = feature.shape
            if stated not in ((), values.shape[1:]) and not (stated == (1,) and values.ndim == 1):
                raise DataError(
                    f"open: the rows of {key!r} in {self._read.folder.source!r} have the shape {values.shape[1:]}, but "
                    f"meta/info.json states {stated}; correct the metadata, or write the data again"
                )
            converted = values.astype(dtype, copy=False)
            if dtype.kind in "biu" and not numpy.array_equal(converted, values):
                raise DataError(
                    f"open: {key!r} in {self._read.folder.source!r} has values that are not {dtype}, the dtype that "
                    "meta/info.json states; correct the metadata, or write the data again"
                )
            values = numpy.ascontiguousarray(converted)
            kind = "value" if values.dtype == numpy.int64 and values.ndim == 1 and steps is None else "array"
            self.columns.add_numbers(_described(key, values, kind), steps)

    def _add_task(self) -> None:
        import numpy

        tasks = self._read.tasks
        numbers = _engine.field_values(self._data, "task_index")
        unknown = sorted(set(numpy.unique(numbers).tolist()) - set(tasks))
        if unknown:
            raise DataError(f"open: the data of {self._read.folder.source!r} has the unknown task {unknown[0]}")
        cells = numpy.searchsorted(sorted(tasks), numbers)
        self.columns.add_texts(_TASK, _cells([tasks[number] for number in sorted(tasks)]), _described(_TASK, cells, ""))

    def _row(self, key: str) -> Any:
        import numpy

        return _described(key, numpy.ascontiguousarray(_engine.field_values(self._data, key)), "array")


def _cells(texts: list[str]) -> _engine.TextCells:
    cells = _engine.text_cells_of_list(texts)
    assert isinstance(cells, _engine.TextCells)
    return cells


def _described(name: str, array: Any, kind: str) -> Any:
    """Describes an array for the engine."""
    address = array.__array_interface__["data"][0]
    return name, array, address, len(array), array.strides[0], array.dtype.name, list(array.shape[1:]), None, kind
