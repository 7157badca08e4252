# SPDX-License-Identifier: Apache-2.0
"""LeRobotDatasets in the formats v3.0 and v2.1, with the frames that they contain."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any, NamedTuple

import made_videos
import numpy
import pytest

FPS = 10
LENGTHS = (7, 4, 9, 5)
CAMERAS = {"observation.images.top": (50, 70), "observation.images.wrist": (50, 70)}
IMAGE = "observation.depth"
TASKS = ("pick the cube", "place the cube")
# the episodes of each file: the files of data and of both cameras differ
FILES = {
    "data": ((0, 1), (2, 3)),
    "observation.images.top": ((0,), (1, 2, 3)),
    "observation.images.wrist": ((0, 1, 2), (3,)),
}


class Made(NamedTuple):
    path: Path
    frames: dict[str, Any]  # of each camera, one for each row: uint8 (rows, 3, height, width)
    columns: dict[str, Any]  # numbers of all rows
    images: Any  # uint8 (rows, 3, 8, 12)


def make(root: Path, version: str = "v3.0", images: bool = True, depth: Any = numpy.uint8) -> Made:
    """Writes four episodes with 25 rows, two cameras, a column of PNG images, a state and an action. With `depth`
    uint16, the PNGs are grey.
    """
    parquet = pytest.importorskip("pyarrow.parquet")
    pytest.importorskip("PIL")
    made_videos.skip_without_ffmpeg()
    columns = _columns()
    pictures = numpy.random.default_rng(5).integers(0, 256, (sum(LENGTHS), 8, 12, 3), numpy.uint8)
    if depth != numpy.uint8:
        pictures = pictures[..., :1].astype(depth)
    frames = _videos(root, version)
    _write_info(root, version, images)
    _write_data(root, version, columns, pictures if images else None)
    (_write_meta_3 if version == "v3.0" else _write_meta_2)(root, parquet)
    return Made(root, frames, columns, pictures.transpose(0, 3, 1, 2))


def _columns() -> dict[str, Any]:
    rows = sum(LENGTHS)
    rng = numpy.random.default_rng(3)
    episode = numpy.repeat(numpy.arange(len(LENGTHS)), LENGTHS)
    frame = numpy.concatenate([numpy.arange(length) for length in LENGTHS])
    return {
        "observation.state": rng.standard_normal((rows, 3)).astype(numpy.float32),
        "action": rng.standard_normal((rows, 2)).astype(numpy.float32),
        "next.reward": rng.standard_normal(rows).astype(numpy.float32),
        "next.done": frame == numpy.array(LENGTHS)[episode] - 1,
        "timestamp": (frame / FPS).astype(numpy.float32),
        "frame_index": frame,
        "episode_index": episode,
        "index": numpy.arange(rows),
        "task_index": episode % 2,
    }


def _first(episode: int) -> int:
    return sum(LENGTHS[:episode])


def _path(version: str, kind: str, file: int) -> str:
    """The path of a file, whose number is that of its episode in v2.1."""
    if version == "v3.0":
        folder = "data" if kind == "data" else f"videos/{kind}"
        return f"{folder}/chunk-000/file-{file:03d}." + ("parquet" if kind == "data" else "mp4")
    name = f"episode_{file:06d}"
    return f"data/chunk-000/{name}.parquet" if kind == "data" else f"videos/chunk-000/{kind}/{name}.mp4"


def _episodes(version: str, kind: str) -> Any:
    return FILES[kind] if version == "v3.0" else [(i,) for i in range(len(LENGTHS))]


def _videos(root: Path, version: str) -> dict[str, Any]:
    frames: dict[str, Any] = {}
    for key in CAMERAS:
        parts = []
        for file, episodes in enumerate(_episodes(version, key)):
            count = sum(LENGTHS[i] for i in episodes)
            scene = "testsrc2" if (file + len(key)) % 2 else "testsrc"
            path = made_videos.make(root / _path(version, key, file), scene=scene, frames=count, rate=FPS)
            parts.append(made_videos.frames_of(path))
        frames[key] = numpy.concatenate(parts)
    return frames


def _write_info(root: Path, version: str, images: bool) -> None:
    def of(dtype: str, *shape: int) -> Any:
        return {"dtype": dtype, "shape": list(shape), "names": None}

    features = {key: of("video", *size, 3) for key, size in CAMERAS.items()}
    if images:
        features[IMAGE] = of("image", 8, 12, 3)
    features |= {"observation.state": of("float32", 3), "action": of("float32", 2), "next.reward": of("float32", 1)}
    features |= {"next.done": of("bool", 1), "timestamp": of("float32", 1)}
    features |= {name: of("int64", 1) for name in ("frame_index", "episode_index", "index", "task_index")}
    is_3 = version == "v3.0"
    chunk, key = ("chunk_index", "video_key") if is_3 else ("episode_chunk", "video_key")
    name = "file-{file_index:03d}" if is_3 else "episode_{episode_index:06d}"
    video = f"{{{key}}}/chunk-{{{chunk}:03d}}" if is_3 else f"chunk-{{{chunk}:03d}}/{{{key}}}"
    info = {
        "codebase_version": version,
        "fps": FPS,
        "total_episodes": len(LENGTHS),
        "total_frames": sum(LENGTHS),
        "chunks_size": 1000,
        "data_path": f"data/chunk-{{{chunk}:03d}}/{name}.parquet",
        "video_path": f"videos/{video}/{name}.mp4",
        "features": features,
    }
    (root / "meta").mkdir(parents=True, exist_ok=True)
    (root / "meta" / "info.json").write_text(json.dumps(info))


def _png(pixels: Any) -> bytes:
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(pixels.squeeze()).save(file, "png")
    return file.getvalue()


def _write_data(root: Path, version: str, columns: dict[str, Any], pictures: Any) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    for file, episodes in enumerate(_episodes(version, "data")):
        rows = numpy.concatenate([_first(i) + numpy.arange(LENGTHS[i]) for i in episodes])
        made = {}
        for name, values in columns.items():
            chosen = values[rows]
            if chosen.ndim == 1:
                made[name] = pa.array(chosen)
            else:
                flat = pa.array(chosen.reshape(-1))
                made[name] = pa.FixedSizeListArray.from_arrays(flat, chosen.shape[1])
        if pictures is not None:
            cells = [{"bytes": _png(pictures[row]), "path": f"{row}.png"} for row in rows]
            made[IMAGE] = pa.array(cells, pa.struct({"bytes": pa.binary(), "path": pa.string()}))
        path = root / _path(version, "data", file)
        path.parent.mkdir(parents=True, exist_ok=True)
        parquet.write_table(pa.table(made), path, row_group_size=6)


def _write_meta_3(root: Path, parquet: Any) -> None:
    import pyarrow as pa

    def file_of(kind: str, episode: int) -> int:
        return next(i for i, episodes in enumerate(FILES[kind]) if episode in episodes)

    rows = []
    for i, length in enumerate(LENGTHS):
        row: dict[str, Any] = {"episode_index": i, "tasks": [TASKS[i % 2]], "length": length}
        row |= {"data/chunk_index": 0, "data/file_index": file_of("data", i)}
        row |= {"dataset_from_index": _first(i), "dataset_to_index": _first(i) + length}
        for key in CAMERAS:
            file = file_of(key, i)
            begin = sum(LENGTHS[j] for j in FILES[key][file] if j < i) / FPS
            row |= {f"videos/{key}/chunk_index": 0, f"videos/{key}/file_index": file}
            row |= {f"videos/{key}/from_timestamp": begin, f"videos/{key}/to_timestamp": begin + length / FPS}
        rows.append(row | {"stats/action/mean": [0.0, 1.0]})
    folder = root / "meta" / "episodes" / "chunk-000"
    folder.mkdir(parents=True)
    for file, part in enumerate((rows[:3], rows[3:])):
        parquet.write_table(pa.Table.from_pylist(part), folder / f"file-{file:03d}.parquet")
    tasks = pa.table({"task_index": pa.array(range(len(TASKS))), "__index_level_0__": pa.array(TASKS)})
    parquet.write_table(tasks, root / "meta" / "tasks.parquet")


def _write_meta_2(root: Path, parquet: Any) -> None:
    def write(name: str, rows: Any) -> None:
        (root / "meta" / name).write_text("".join(json.dumps(row) + "\n" for row in rows))

    episodes = [{"episode_index": i, "tasks": [TASKS[i % 2]], "length": length} for i, length in enumerate(LENGTHS)]
    write("episodes.jsonl", episodes)
    write("tasks.jsonl", [{"task_index": i, "task": task} for i, task in enumerate(TASKS)])
