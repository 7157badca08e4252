# SPDX-License-Identifier: Apache-2.0
"""Writes a LeRobotDataset v3.0 of a simulated robot: a white square that moves to a red one, seen by a camera."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy
import pyarrow as pa
from pyarrow import parquet

CAMERA = "observation.images.top"
HEIGHT, WIDTH, SIDE, FPS = 48, 64, 8, 10
TASK = "move to the red square"


def record(rng: numpy.random.Generator) -> dict[str, Any]:
    """Returns an episode of 24 to 40 rows. State and target are positions (y, x) from 0 to 1; an action is the step to
    the next position.
    """
    length = int(rng.integers(24, 41))
    position, target = rng.random(2), rng.random(2)
    states, actions, frames = [], [], []
    for _ in range(length):
        action = 0.15 * (target - position)
        frames.append(drawn(position, target))
        states.append(position)
        actions.append(action)
        position = position + action
    return {
        "observation.state": numpy.array(states, numpy.float32),
        "action": numpy.array(actions, numpy.float32),
        "frames": numpy.stack(frames),
    }


def drawn(position: Any, target: Any) -> Any:
    frame = numpy.full((HEIGHT, WIDTH, 3), 40, numpy.uint8)
    for (y, x), colour in ((target, (220, 30, 30)), (position, (250, 250, 250))):
        top, left = round(y * (HEIGHT - SIDE)), round(x * (WIDTH - SIDE))
        frame[top : top + SIDE, left : left + SIDE] = colour
    return frame


def write(folder: Path, episodes: int, seed: int = 0) -> None:
    rng = numpy.random.default_rng(seed)
    made = [record(rng) for _ in range(episodes)]
    lengths = numpy.array([len(episode["action"]) for episode in made])
    begins = numpy.concatenate([[0], numpy.cumsum(lengths)])
    video = folder / "videos" / CAMERA / "chunk-000" / "file-000.mp4"
    video.parent.mkdir(parents=True)
    command = [
        "ffmpeg",
        "-v",
        "error",
        "-f",
        "rawvideo",
        "-pix_fmt",
        "rgb24",
        "-s",
        f"{WIDTH}x{HEIGHT}",
        "-r",
        str(FPS),
    ]
    command += ["-i", "-", "-pix_fmt", "yuv420p", "-g", "2", "-crf", "20", str(video)]
    subprocess.run(command, input=b"".join(episode["frames"].tobytes() for episode in made), check=True)

    rows = int(begins[-1])
    episode_of_row = numpy.repeat(numpy.arange(episodes), lengths)
    frame_index = numpy.arange(rows) - begins[episode_of_row]
    table: dict[str, Any] = {
        key: pa.FixedSizeListArray.from_arrays(numpy.concatenate([episode[key] for episode in made]).reshape(-1), 2)
        for key in ("observation.state", "action")
    }
    table |= {"timestamp": (frame_index / FPS).astype(numpy.float32), "frame_index": frame_index}
    table |= {
        "episode_index": episode_of_row,
        "index": numpy.arange(rows),
        "task_index": numpy.zeros(rows, numpy.int64),
    }
    write_table(folder / "data/chunk-000/file-000.parquet", table)
    zeros = numpy.zeros(episodes, numpy.int64)
    described: dict[str, Any] = {"episode_index": numpy.arange(episodes), "tasks": [[TASK]] * episodes}
    described |= {"length": lengths, "data/chunk_index": zeros, "data/file_index": zeros}
    described |= {"dataset_from_index": begins[:-1], "dataset_to_index": begins[1:]}
    described |= {f"videos/{CAMERA}/chunk_index": zeros, f"videos/{CAMERA}/file_index": zeros}
    described |= {
        f"videos/{CAMERA}/from_timestamp": begins[:-1] / FPS,
        f"videos/{CAMERA}/to_timestamp": begins[1:] / FPS,
    }
    write_table(folder / "meta/episodes/chunk-000/file-000.parquet", described)
    write_table(folder / "meta/tasks.parquet", {"task_index": [0], "task": [TASK]})
    features = {CAMERA: {"dtype": "video", "shape": [HEIGHT, WIDTH, 3], "names": ["height", "width", "channels"]}}
    features |= {
        key: {"dtype": "float32", "shape": [2], "names": ["y", "x"]} for key in ("observation.state", "action")
    }
    features |= {"timestamp": {"dtype": "float32", "shape": [1], "names": None}}
    for key in ("frame_index", "episode_index", "index", "task_index"):
        features[key] = {"dtype": "int64", "shape": [1], "names": None}
    info = {
        "codebase_version": "v3.0",
        "fps": FPS,
        "total_episodes": episodes,
        "total_frames": rows,
        "chunks_size": 1000,
        "data_path": "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",
        "video_path": "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4",
        "features": features,
    }
    (folder / "meta" / "info.json").write_text(json.dumps(info, indent=2))  # last: it makes the folder a dataset


def write_table(path: Path, columns: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pa.table(columns), path)
