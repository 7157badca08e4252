# SPDX-License-Identifier: Apache-2.0
"""LeRobotDatasets: rows and windows equal what was written, in both versions; order, resume, splits and mistakes."""

from __future__ import annotations

import functools
import http.server
import itertools
import json
import pickle
import re
import shutil
import threading
from pathlib import Path
from typing import Any

import made_lerobot
import made_videos
import numpy
import pytest
from made_lerobot import FPS, IMAGE, LENGTHS, TASKS

import feedline
from feedline import ConfigError, DataError, StorageError

TOP, WRIST = made_lerobot.CAMERAS
WINDOWS = {TOP: [-0.2, 0.0], WRIST: [0.1], IMAGE: [-0.1, 0.0, 0.1], "action": [0.0, 0.1, 0.5], "next.reward": [-0.1]}


@pytest.fixture(scope="module", params=["v3.0", "v2.1"])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> made_lerobot.Made:
    return made_lerobot.make(tmp_path_factory.mktemp("robot"), request.param)


@pytest.fixture
def copied(made: made_lerobot.Made, tmp_path: Path) -> Path:
    """A copy of the dataset, which a test may damage."""
    return Path(shutil.copytree(made.path, tmp_path / "copy"))


def rows_of(row: int, steps: list[int]) -> tuple[list[int], list[bool]]:
    """The rows of a window, limited to the episode, and whether each is padding."""
    end = next(e for e in numpy.cumsum(LENGTHS) if e > row)
    begin = end - LENGTHS[list(numpy.cumsum(LENGTHS)).index(end)]
    rows = [row + step for step in steps]
    return [min(max(one, begin), end - 1) for one in rows], [not begin <= one < end for one in rows]


def steps_of(times: list[float]) -> list[int]:
    return [round(time * FPS) for time in times]


def test_a_sample_is_one_row_and_one_frame_of_each_camera(made: made_lerobot.Made) -> None:
    dataset = feedline.open(made.path)
    assert (dataset.format, len(dataset)) == ("lerobot", sum(LENGTHS))
    for row in range(len(dataset)):
        sample = dataset[row]
        for key, frames in made.frames.items():
            assert sample[key].dtype == numpy.uint8
            assert (sample[key] == frames[row]).all()
        assert (sample[IMAGE] == made.images[row]).all()
        for key, values in made.columns.items():
            assert (sample[key] == values[row]).all()
        assert sample.task == TASKS[int(made.columns["task_index"][row])]


def test_windows_stay_in_their_episode_and_say_where_they_are_padded(made: made_lerobot.Made) -> None:
    dataset = feedline.open(made.path, delta_timestamps=WINDOWS)
    whole = {**made.frames, IMAGE: made.images, **made.columns}
    for row in range(len(dataset)):
        sample = dataset[row]
        for key, times in WINDOWS.items():
            rows, pads = rows_of(row, steps_of(times))
            assert (sample[key] == whole[key][rows]).all()
            assert sample[f"{key}_is_pad"].tolist() == pads
        assert sample["observation.state"].shape == (3,)  # without a window


def test_batches_are_stacked_and_keys_have_underscores_as_attributes(made: made_lerobot.Made) -> None:
    dataset = feedline.open(made.path, delta_timestamps=WINDOWS)
    loader = dataset.loader(batch_size=5, seed=3, shuffle=True, output="numpy", num_workers=2)
    seen = []
    for batch in loader:
        assert batch[TOP].shape == (5, 2, 3, 50, 70)
        assert batch[TOP] is batch.observation_images_top
        assert batch["action"].shape == (5, 3, 2)
        for key, values in made.columns.items():
            assert batch[key].dtype == values.dtype
        for i, row in enumerate(batch["index"].tolist()):
            rows, _ = rows_of(row, [-2, 0])
            assert (batch[TOP][i] == made.frames[TOP][rows]).all()
        seen += batch["index"].tolist()
    assert sorted(seen) == list(range(sum(LENGTHS)))
    assert dataset.schema[TOP].shape == (2, 3, 50, 70)
    assert "frames of each sample" in dataset.explain()


def test_operations_apply_to_all_frames_of_a_window_alike(made: made_lerobot.Made) -> None:
    dataset = feedline.open(made.path, delta_timestamps={TOP: [0.0, 0.0], IMAGE: [0.0, 0.0]}, fields=[TOP, IMAGE])
    dataset = dataset.random_resized_crop(24).normalize(feedline.IMAGENET_MEAN, feedline.IMAGENET_STD)
    batch = next(iter(dataset.loader(batch_size=3, output="numpy")))
    for key in (TOP, IMAGE):
        assert batch[key].shape == (3, 2, 3, 24, 24)
        assert batch[key].dtype == numpy.float32
        assert (batch[key][:, 0] == batch[key][:, 1]).all()


def test_a_loader_resumes_with_the_next_batch(made: made_lerobot.Made) -> None:
    def loader() -> Any:
        dataset = feedline.open(made.path, fields=["index", "action"], delta_timestamps={"action": [0.0, 0.1]})
        return dataset.loader(batch_size=4, shuffle=True, seed=1, output="numpy")

    first = loader()
    batches = iter(first)
    for _ in range(2):
        next(batches)
    state = first.state_dict()
    rest = [batch["index"].tolist() for batch in batches]
    resumed = loader()
    resumed.load_state_dict(state)
    assert [batch["index"].tolist() for batch in resumed] == rest


def test_episodes_are_groups_blocks_and_subsets(made: made_lerobot.Made) -> None:
    dataset = feedline.open(made.path, fields=["episode_index", "index"], delta_timestamps={"index": [0.0, 0.1]})
    train, valid = dataset.split(k_fold=2, fold=0, groups="episode_index")
    episodes = [{sample.episode_index for sample in (part[i] for i in range(len(part)))} for part in (train, valid)]
    assert not episodes[0] & episodes[1]
    assert episodes[0] | episodes[1] == set(range(len(LENGTHS)))
    assert valid[0]["index"].tolist()[1] == valid[0]["index"].tolist()[0] + 1  # windows are those of the whole dataset
    batches = dataset.loader(batch_size=1, shuffle="shards", shuffle_window=1, output="numpy")
    order = [int(batch.episode_index[0]) for batch in batches]
    assert sum(a != b for a, b in itertools.pairwise(order)) == len(LENGTHS) - 1


def test_datasets_are_pickled_by_their_arguments(made: made_lerobot.Made) -> None:
    dataset = feedline.open(made.path, delta_timestamps=WINDOWS)
    again = pickle.loads(pickle.dumps(dataset))
    assert again.fingerprint == dataset.fingerprint
    assert (again[7][TOP] == dataset[7][TOP]).all()
    assert feedline.open(made.path).fingerprint != dataset.fingerprint
    assert "episodes" in dataset.explain()


def test_a_dataset_is_read_from_a_url(made: made_lerobot.Made) -> None:
    handler = functools.partial(_Quiet, directory=str(made.path))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        dataset = feedline.open(f"http://127.0.0.1:{server.server_port}/", delta_timestamps={TOP: [0.0, 0.1]})
        for row in (0, 8, 24):
            assert (dataset[row][TOP] == made.frames[TOP][rows_of(row, [0, 1])[0]]).all()
    finally:
        server.shutdown()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *arguments: Any) -> None:
        pass

    def send_head(self) -> Any:
        """Answers requests for a range, as servers of datasets do."""
        found = re.fullmatch(r"bytes=(\d+)-(\d+)?", self.headers.get("Range", ""))
        path = Path(self.translate_path(self.path))
        if found is None or not path.is_file():
            return super().send_head()
        size = path.stat().st_size
        begin, end = int(found[1]), min(int(found[2] or size - 1), size - 1)
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {begin}-{end}/{size}")
        self.send_header("Content-Length", str(end + 1 - begin))
        self.send_header("ETag", f'"{size}"')
        self.end_headers()
        self.wfile.write(path.read_bytes()[begin : end + 1])
        return None


# ---- mistakes ----


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delta_timestamps": {"action": [0.0, 0.05]}}, r"0.05 of 'action' is not a multiple of 1/fps = 0.1"),
        ({"delta_timestamps": {"acton": [0.0]}}, "the key 'acton' does not exist; the keys are .*action"),
        ({"delta_timestamps": {"action": []}}, "must be a list of seconds"),
        ({"delta_timestamps": {"task": [0.0]}}, "'task' is text"),
        ({"delta_timestamps": {"action": [1e300]}}, "1e\\+300 s of 'action' is more than 2147483648 frames"),
        ({"delta_timestamps": {"action": [-1e17]}}, "is more than 2147483648 frames"),
        ({"delta_timestamps": [0.0]}, "must be a dict"),
        ({"fields": ["state"]}, "fields: the key 'state' does not exist"),
        ({"delta_timestamps": {"action": [0.0]}, "format": "parquet"}, "delta_timestamps is for LeRobotDatasets"),
    ],
)
def test_wrong_arguments_are_named(made: made_lerobot.Made, options: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        feedline.open(made.path, **options)


def test_times_within_the_tolerance_are_accepted(made: made_lerobot.Made) -> None:
    dataset = feedline.open(made.path, fields=["index"], delta_timestamps={"index": [0.10009, -0.09991]})
    assert dataset[3]["index"].tolist() == [4, 2]


def test_clips_of_chosen_frames_are_refused(made: made_lerobot.Made) -> None:
    with pytest.raises(ConfigError, match="pass delta_timestamps="):
        _ = feedline.open(made.path).clip(frames=2).schema


def test_a_missing_camera_file_is_named(copied: Path) -> None:
    path = next(copied.rglob("*.mp4"))
    path.unlink()
    dataset = feedline.open(copied)
    with pytest.raises(StorageError, match=path.name):
        for row in range(len(dataset)):
            _ = dataset[row]
    assert [finding.code for finding in dataset.inspect().findings] == ["missing_file"]


def test_missing_data_files_and_metadata_are_named(copied: Path) -> None:
    path = sorted(copied.glob("data/*/*.parquet"))[-1]
    path.unlink()
    with pytest.raises(StorageError, match=path.name):
        feedline.open(copied)
    shutil.rmtree(copied / "meta" / "episodes", ignore_errors=True)
    (copied / "meta" / "episodes.jsonl").unlink(missing_ok=True)
    with pytest.raises(StorageError, match=r"meta/episodes"):
        feedline.open(copied)


def test_a_camera_file_that_is_too_short_is_named(copied: Path) -> None:
    path = sorted((copied / "videos").rglob("*top*/**/*.mp4"))[-1]
    made_videos.make(path, frames=3, rate=FPS)
    dataset = feedline.open(copied, fields=[TOP])
    with pytest.raises(DataError, match=r"no frame within 0.05 s of .* it has 3 frames") as error:
        _ = dataset[len(dataset) - 1]
    assert path.name in str(error.value)


def test_frames_of_another_size_are_an_error(copied: Path) -> None:
    info = json.loads((copied / "meta" / "info.json").read_text())
    info["features"][TOP]["shape"] = [60, 80, 3]
    (copied / "meta" / "info.json").write_text(json.dumps(info))
    with pytest.raises(DataError, match="70 x 50 pixels, but the metadata states 80 x 60"):
        _ = feedline.open(copied, fields=[TOP])[0]


def test_lengths_that_contradict_the_data_are_an_error(copied: Path) -> None:
    lines = copied / "meta" / "episodes.jsonl"
    if lines.exists():
        rows = [json.loads(line) for line in lines.read_text().splitlines()]
        rows[0]["length"], rows[1]["length"] = 6, 5
        lines.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        from pyarrow import parquet

        path = copied / "meta" / "episodes" / "chunk-000" / "file-000.parquet"
        table = parquet.read_table(path)
        lengths = [6, 5, *LENGTHS[2:3]]
        parquet.write_table(table.set_column(table.column_names.index("length"), "length", [lengths]), path)
    with pytest.raises(DataError, match=r"row 6 of the data .* is of episode 0, but the metadata expects episode 1"):
        feedline.open(copied)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"codebase_version": "v9.0"}, "version v9.0; versions v2.0, v2.1 and v3.0 are supported"),
        ({"fps": 0}, "fps must be a number above 0, not 0"),
        ({"features": {}}, "it has no features"),
        ({"data_path": "data/{episode}.parquet"}, "data_path contains {episode}"),
        ({"features": {"action": {"shape": [2]}}}, "the feature 'action' has no dtype"),
        ({"chunks_size": "x"}, "chunks_size is 'x', not a number from 0"),
    ],
)
def test_damaged_metadata_is_named(copied: Path, change: Any, message: str) -> None:
    path = copied / "meta" / "info.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises((ConfigError, DataError), match=re.escape(message)):
        feedline.open(copied)


@pytest.mark.parametrize(
    "line", ['{"task": "pick"}', '{"task_index": 0, "task": null}', '{"task_index": "0", "task": "pick"}']
)
def test_damaged_tasks_are_named(tmp_path: Path, line: str) -> None:
    made_lerobot.make(tmp_path, "v2.1")
    (tmp_path / "meta" / "tasks.jsonl").write_text(line)
    with pytest.raises(DataError, match=r"tasks\.jsonl.*expected the integer task_index and the text task, not"):
        feedline.open(tmp_path)


def test_an_unknown_dtype_is_named(copied: Path) -> None:
    path = copied / "meta" / "info.json"
    path.write_text(path.read_text().replace('"float32"', '"bfloat16"', 1))
    with pytest.raises(DataError, match=r"has the dtype 'bfloat16', which NumPy does not know"):
        feedline.open(copied)


def test_images_with_16_bits_are_reported(tmp_path: Path) -> None:
    made = made_lerobot.make(tmp_path, depth=numpy.uint16)
    dataset = feedline.open(made.path, fields=[IMAGE])
    with pytest.warns(UserWarning, match="the images have 16 bits per channel and are read as 8 bits"):
        dataset[0]


@pytest.mark.filterwarnings("ignore:open. the class folder")
def test_verify_names_the_files_to_verify(copied: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        feedline.open(copied).verify(decode=True)
    assert f"feedline verify {copied}/data, and feedline verify --decode {copied}/videos" in str(raised.value)
    assert feedline.open(copied / "data").verify().sound

    def codes() -> set[str]:
        return {finding.code for finding in feedline.open(copied / "videos").verify(decode=True).findings}

    assert "undecodable_sample" not in codes()
    next((copied / "videos").rglob("*.mp4")).write_bytes(b"not a video")
    assert "undecodable_sample" in codes()


def _with_column(root: Path, key: str, values: Any, shape: list[int], dtype: str = "float32") -> Path:
    """Adds a column to the data files."""
    parquet, arrow = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    for path in sorted(root.glob("data/*/*.parquet")):
        table = parquet.read_table(path)
        rows = arrow.array([values(index) for index in table["index"].to_pylist()])
        parquet.write_table(table.append_column(key, rows), path)
    info = json.loads((root / "meta/info.json").read_text())
    info["features"][key] = {"dtype": dtype, "shape": shape, "names": None}
    (root / "meta/info.json").write_text(json.dumps(info))
    return root


@pytest.mark.parametrize("key", ["a:b", "a=b", "a;b", "obs:array", "x:nan", "a+b"])
def test_keys_may_contain_the_separators_of_specs(tmp_path: Path, key: str) -> None:
    made_lerobot.make(tmp_path, images=False)
    _with_column(tmp_path, key, lambda index: [float(index), 0.5], [2])
    dataset = feedline.open(tmp_path, fields=["index", key], delta_timestamps={key: [0.0]})
    (batch,) = dataset.loader(25, output="numpy")
    numpy.testing.assert_array_equal(batch[key][:, 0, 0], batch["index"])
    assert not batch[f"{key}_is_pad"].any()


@pytest.mark.parametrize(("stated", "stored"), [([3], "(2,)"), ([2, 1], "(2,)"), ([2], "()")])
def test_a_shape_that_differs_from_the_metadata_is_an_error(tmp_path: Path, stated: list[int], stored: str) -> None:
    made_lerobot.make(tmp_path, images=False)
    _with_column(tmp_path, "x", lambda index: float(index) if stored == "()" else [0.0, 1.0], stated)
    expected = re.escape(f"have the shape {stored}, but meta/info.json states {tuple(stated)}")
    with pytest.raises(feedline.DataError, match=expected):
        feedline.open(tmp_path)


@pytest.mark.parametrize(("dtype", "value"), [("uint8", 300), ("int32", 0.5), ("bool", 2)])
def test_values_that_do_not_fit_the_dtype_of_the_metadata_are_an_error(
    tmp_path: Path, dtype: str, value: float
) -> None:
    made_lerobot.make(tmp_path, images=False)
    _with_column(tmp_path, "x", lambda index: value if index == 3 else type(value)(1), [1], dtype)
    with pytest.raises(feedline.DataError, match=f"'x' in .* has values that are not {dtype}"):
        feedline.open(tmp_path)


def test_the_warning_about_deep_images_can_be_followed(tmp_path: Path) -> None:
    made = made_lerobot.make(tmp_path, depth=numpy.uint16)
    with pytest.warns(UserWarning, match="16 bits per channel") as caught:
        feedline.open(tmp_path)[0]
    advised = str(caught[0].message).partition("open the images by themselves: feedline.")[2].partition(", decode(")[0]
    dataset = eval(f"feedline.{advised.replace('KEY', made_lerobot.IMAGE)}")
    numpy.testing.assert_array_equal(dataset[3][0], made.images[3])
