# SPDX-License-Identifier: Apache-2.0
"""clip() and frames(): shapes, choice of frames, exact pixels, sources and errors."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import made_videos
import numpy
import pytest

import feedline
from feedline import ConfigError, DataError


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Class folders with three videos."""
    made_videos.skip_without_ffmpeg()
    root = tmp_path_factory.mktemp("videos")
    made_videos.make(root / "run" / "a.mp4")
    made_videos.make(root / "run" / "b.mkv", scene="testsrc")
    made_videos.make(root / "walk" / "c.webm", "-c:v", "libvpx-vp9", "-deadline", "realtime", "-cpu-used", "8")
    return root


@pytest.fixture(scope="module")
def truth(folder: Path) -> list[Any]:
    """All frames of each video, in the order of the samples."""
    return [made_videos.frames_of(path) for path in sorted(folder.glob("*/*.*"))]


def same_frames(clip: Any, frames: Any) -> bool:
    return clip.shape == frames.shape and bool((numpy.asarray(clip) == frames).all())


# ---- choice of frames ----


def test_chosen_frames_are_those_of_decoding_in_order(folder: Path, truth: list[Any]) -> None:
    wanted = [0, 39, 7, 7, -1]
    dataset = feedline.open(folder).frames(wanted)
    assert dataset.classes == ["run", "walk"]
    for i, all_frames in enumerate(truth):
        sample = dataset[i]
        assert same_frames(sample.video, all_frames[wanted])
        assert sample.label == (0, 0, 1)[i]


def test_the_video_feature_of_datasets_is_a_video(folder: Path, truth: list[Any], tmp_path: Path) -> None:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = [{"bytes": path.read_bytes(), "path": None} for path in sorted(folder.glob("*/*.*"))]
    features = {"info": {"features": {"shot": {"_type": "Video"}}}}
    table = pa.table({"shot": pa.array(rows, pa.struct({"bytes": pa.binary(), "path": pa.string()}))})
    parquet.write_table(table.replace_schema_metadata({"huggingface": json.dumps(features)}), tmp_path / "t.parquet")
    dataset = feedline.open(tmp_path / "t.parquet", fields="shot").frames([0, 9])
    for i, all_frames in enumerate(truth):
        assert same_frames(dataset[i].shot, all_frames[[0, 9]])


def test_times_select_the_frames_that_are_shown(folder: Path, truth: list[Any]) -> None:
    sample = feedline.open(folder).frames(times=[0.0, 0.0399, 0.04, 0.3, 1.5999], timestamps=True)[0]
    assert same_frames(sample.video, truth[0][[0, 0, 1, 7, 39]])
    assert sample.video_timestamps.dtype == numpy.float64
    assert sample.video_timestamps.tolist() == pytest.approx([0, 0, 0.04, 0.28, 1.56])


def test_a_clip_takes_every_nth_frame_from_its_start(folder: Path, truth: list[Any]) -> None:
    sample = feedline.open(folder).clip(frames=5, every=3, start=4)[1]
    assert same_frames(sample.video, truth[1][[4, 7, 10, 13, 16]])


def test_uniform_clips_are_in_the_middle_of_equal_parts(folder: Path, truth: list[Any]) -> None:
    one = feedline.open(folder).clip(frames=4, every=2, sampling="uniform")[0]
    assert same_frames(one.video, truth[0][[17, 19, 21, 23]])  # 34 starts
    three = feedline.open(folder).clip(4, 2, "uniform", 3, timestamps=True)[0]
    assert three.video.shape == (3, 4, 3, *made_videos.SIZE)
    assert three.video_timestamps.shape == (3, 4)
    assert (three.video_timestamps[:, 0] * 25).round().tolist() == [5, 17, 28]


def test_a_clip_by_rate_has_the_frames_that_are_shown(folder: Path, truth: list[Any]) -> None:
    sample = feedline.open(folder).clip(fps=10, seconds=1.0, start=0.1)[0]
    times = [0.1 + i / 10 for i in range(10)]
    assert same_frames(sample.video, truth[0][[int(time * 25 + 1e-6) for time in times]])
    twice = feedline.open(folder).clip(fps=50, seconds=0.2, start=0)[0]
    assert same_frames(twice.video, truth[0][[i // 2 for i in range(10)]])


def starts(dataset: feedline.Dataset, epochs: int) -> list[int]:
    loader = dataset.center_crop(8).loader(batch_size=1, seed=3, output="numpy")
    drawn = []
    for epoch in range(epochs):
        loader.set_epoch(epoch)
        drawn += [round(float(batch.video_timestamps[0].ravel()[0]) * 25) for batch in loader]
    return drawn


def test_random_starts_cover_all_and_only_the_possible_ones(folder: Path) -> None:
    dataset = feedline.open(folder).subset([0]).clip(frames=36, timestamps=True)
    drawn = starts(dataset, 60)
    assert set(drawn) == {0, 1, 2, 3, 4}
    assert drawn == starts(dataset, 60)


@pytest.mark.parametrize("sampling", ["random", "segments"])
def test_random_clips_differ_between_epochs_of_a_torch_loader(folder: Path, sampling: str) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    dataset = feedline.open(folder).clip(frames=2, sampling=sampling, timestamps=True)
    loader = feedline.DataLoader(dataset, collate_fn=lambda rows: [row.video_timestamps.tolist() for row in rows])
    epochs = [list(loader) for _ in range(4)]
    assert any(epoch != epochs[0] for epoch in epochs[1:])


def test_segments_have_one_frame_each(folder: Path) -> None:
    dataset = feedline.open(folder).subset([0]).clip(frames=4, sampling="segments", timestamps=True)
    loader = dataset.center_crop(8).loader(batch_size=1, output="numpy")
    seen: list[set[int]] = [set() for _ in range(4)]
    for epoch in range(80):
        loader.set_epoch(epoch)
        for batch in loader:
            for i, frame in enumerate((batch.video_timestamps[0] * 25).round().astype(int).tolist()):
                seen[i].add(frame)
    for i, frames in enumerate(seen):
        assert min(frames) == i * 10 and max(frames) == i * 10 + 9


def test_short_videos_repeat_their_last_frame(folder: Path, truth: list[Any]) -> None:
    with pytest.raises(DataError, match=r"has 40 frames, but the clip needs 46; .* pad=True"):
        feedline.open(folder).clip(frames=10, every=5)[0]
    sample = feedline.open(folder).clip(frames=10, every=5, pad=True)[0]
    assert same_frames(sample.video, truth[0][[0, 5, 10, 15, 20, 25, 30, 35, 39, 39]])
    assert sample.video_is_pad.dtype == numpy.bool_
    assert sample.video_is_pad.tolist() == [False] * 8 + [True] * 2
    sample = feedline.open(folder).clip(fps=5, seconds=2.0, pad=True, timestamps=True)[0]
    assert sample.video_is_pad.tolist() == [False] * 8 + [True] * 2
    assert sample.video_timestamps[-1] == pytest.approx(1.56)


# ---- batches and operations ----


def test_batches_have_the_clips_in_order(folder: Path, truth: list[Any]) -> None:
    dataset = feedline.open(folder).frames([3, 30]).center_crop(made_videos.SIZE)
    for workers in (1, 3):
        (batch,) = dataset.loader(batch_size=3, num_workers=workers, output="numpy")
        assert same_frames(batch.video, numpy.stack([frames[[3, 30]] for frames in truth]))
        assert batch.label.tolist() == [0, 0, 1]


def test_an_operation_draws_once_for_all_frames(folder: Path, truth: list[Any]) -> None:
    dataset = feedline.open(folder).frames([2, 20]).random_crop(32).random_horizontal_flip()
    for sample in range(3):
        clip = dataset[sample].video
        places = [
            (top, left, flip)
            for top in range(made_videos.SIZE[0] - 31)
            for left in range(made_videos.SIZE[1] - 31)
            for flip in (1, -1)
            if same_frames(clip, truth[sample][[2, 20], :, top : top + 32, left : left + 32][..., ::flip])
        ]
        assert len(places) == 1


def test_operations_equal_those_on_images(folder: Path, truth: list[Any]) -> None:
    dataset = feedline.open(folder).frames([5, 9]).resize((24, 36)).normalize([0.5], [0.25])
    images = feedline.arrays(image=numpy.ascontiguousarray(truth[0][[5, 9]]), fields="image:image")
    expected = images.resize((24, 36)).normalize([0.5], [0.25])
    clip = dataset[0].video
    assert clip.dtype == numpy.float32 and clip.shape == (2, 3, 24, 36)
    for i in range(2):
        assert (clip[i] == expected[i].image).all()


def test_explain_names_the_clip_and_the_library(folder: Path) -> None:
    text = feedline.open([folder / "run" / "a.mp4"]).clip(frames=2, every=3).resize((8, 8)).explain()
    assert 'clip(frames=2, every=3, sampling="random"), decoded with libavformat ' in text
    assert "resize" in text


def test_layout_and_grey(folder: Path, truth: list[Any]) -> None:
    dataset = feedline.open(folder).frames([5])
    (batch,) = dataset.center_crop(made_videos.SIZE).loader(batch_size=3, layout="NHWC", output="numpy")
    assert same_frames(batch.video[0], truth[0][[5]].transpose(0, 2, 3, 1))
    assert dataset.decode("L")[0].video.shape == (1, 1, *made_videos.SIZE)


def test_without_a_clip_the_stored_bytes_are_delivered(folder: Path) -> None:
    dataset = feedline.open(folder)
    assert dataset[0].video == (folder / "run" / "a.mp4").read_bytes()
    batches = list(dataset.collate("stack").loader(batch_size=2))
    assert batches[1].video == [(folder / "walk" / "c.webm").read_bytes()]
    with pytest.raises(ConfigError, match=r"resize: .* add clip\(\) or frames\(\)"):
        dataset.resize((8, 8)).loader(batch_size=1)


def test_resumes_and_pickles(folder: Path) -> None:
    dataset = pickle.loads(pickle.dumps(feedline.open(folder).clip(frames=2).center_crop(made_videos.SIZE)))
    loader = dataset.loader(batch_size=1, shuffle=True, output="numpy")
    batches = [batch.video.copy() for batch in loader]
    loader = dataset.loader(batch_size=1, shuffle=True, output="numpy")
    taken = iter(loader)
    next(taken)
    state = loader.state_dict()
    resumed = dataset.loader(batch_size=1, shuffle=True, output="numpy")
    resumed.load_state_dict(state)
    rest = [batch.video for batch in resumed]
    assert len(rest) == 2 and all(same_frames(*pair) for pair in zip(rest, batches[1:], strict=True))


# ---- sources ----


def test_a_table_with_paths_and_labels(folder: Path, truth: list[Any], tmp_path: Path) -> None:
    table = tmp_path / "list.csv"
    table.write_text(f"path,label\n{folder}/walk/c.webm,7\n{folder}/run/a.mp4,8\n")
    dataset = feedline.open(table).frames([11])
    assert list(dataset.schema) == ["video", "label"]
    assert same_frames(dataset[0].video, truth[2][[11]]) and dataset[0].label == 7
    assert same_frames(dataset[1].video, truth[0][[11]]) and dataset[1].label == 8


def test_one_file_a_list_and_lines(folder: Path, truth: list[Any], tmp_path: Path) -> None:
    first, second = folder / "run" / "a.mp4", folder / "run" / "b.mkv"
    assert same_frames(feedline.open(first).frames([1])[0].video, truth[0][[1]])
    several = feedline.open([second, os.fspath(first)]).frames([1])
    assert len(several) == 2 and same_frames(several[0].video, truth[1][[1]])
    lines = tmp_path / "train.txt"
    lines.write_text(f"{first} 4\n{second} 5\n")
    listed = feedline.open(lines).frames([1])
    assert [listed[i].label for i in range(2)] == [4, 5]
    assert same_frames(listed[1].video, truth[1][[1]])
    lines.write_text(f"{first} cat\n")
    with pytest.raises(ConfigError, match=r"line 1 of .* expected a path and a class number"):
        feedline.open(lines)
    lines.write_text(f"{first} 4\n{second}\n")
    with pytest.raises(ConfigError, match=r"only 1 of the 2 lines of .* have a class number"):
        feedline.open(lines)
    (folder / "train.list").write_text("run/b.mkv 5\n")
    assert same_frames(feedline.open(folder / "train.list").frames([1])[0].video, truth[1][[1]])
    (folder / "train.list").unlink()


def test_a_folder_without_classes(folder: Path, truth: list[Any]) -> None:
    dataset = feedline.open(folder / "walk").frames([0])
    assert len(dataset) == 1 and same_frames(dataset[0].video, truth[2][[0]])


def test_members_of_tars(folder: Path, truth: list[Any], tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "0.tar", "w") as tar:
        for number, path in enumerate(sorted(folder.glob("*/*.*"))):
            tar.add(path, f"{number}{path.suffix}")
            label = tmp_path / f"{number}.cls"
            label.write_text(str(number))
            tar.add(label, label.name)
    dataset = feedline.open(tmp_path / "0.tar").frames([6, 33])
    for i in range(3):
        assert same_frames(dataset[i].video, truth[i][[6, 33]]) and dataset[i].label == i


def test_indexes_are_stored(folder: Path, tmp_path: Path) -> None:
    dataset = feedline.open(folder, index=tmp_path / "indexes").frames([0]).center_crop(8)
    for _ in dataset.loader(batch_size=1):
        pass
    del dataset
    again = feedline.open(folder, index=tmp_path / "indexes").frames([0])
    assert again[0].video.shape == (1, 3, *made_videos.SIZE)


@pytest.mark.parametrize("degrees", [0, 90, 180, -90])
def test_frames_of_matroska_files_are_rotated_as_ffmpeg_reports(tmp_path: Path, degrees: int) -> None:
    made_videos.skip_without_ffmpeg()
    path = made_videos.make_rolled(tmp_path / "rolled.mkv", degrees)
    probe = ["ffprobe", "-v", "error", "-show_entries", "stream_side_data=rotation", "-of", "csv=p=0", str(path)]
    reported = subprocess.run(probe, check=True, capture_output=True, text=True).stdout.strip().strip(",")
    turned = reported and int(float(reported)) % 180 != 0
    size = made_videos.SIZE[::-1] if turned else made_videos.SIZE
    truth = made_videos.frames_of(path, size)
    assert same_frames(feedline.open(path).frames([0, 20])[0].video, truth[[0, 20]])


# ---- errors ----


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "clip: pass frames="),
        ({"frames": 2, "fps": 3}, "clip: pass frames="),
        ({"fps": 3}, "require each other"),
        ({"frames": 0}, "clip: frames must be"),
        ({"frames": 2, "sampling": "other"}, "clip: sampling must be"),
        ({"frames": 2, "every": 2, "sampling": "segments"}, "omit every="),
        ({"frames": 2, "start": 0, "clips": 2}, "omit clips="),
        ({"frames": 2, "start": 0.5}, "number of a frame"),
        ({"fps": 3, "seconds": 1, "every": 2}, "every= requires frames="),
    ],
)
def test_wrong_arguments_name_themselves(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        feedline.arrays(x=numpy.zeros((2, 2))).clip(**arguments).loader(batch_size=1)


def test_damage_names_file_and_time(folder: Path, tmp_path: Path) -> None:
    whole = (folder / "run" / "a.mp4").read_bytes()
    (tmp_path / "c").mkdir()
    made_videos.run(
        "-i", str(folder / "run" / "a.mp4"), "-c", "copy", "-movflags", "+faststart", str(tmp_path / "c" / "fast.mp4")
    )
    fast = (tmp_path / "c" / "fast.mp4").read_bytes()
    (tmp_path / "c" / "fast.mp4").write_bytes(fast[: len(fast) * 2 // 3])
    (tmp_path / "c" / "late.mp4").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "c" / "sound.mp4").write_bytes(whole)
    (tmp_path / "c" / "text.mp4").write_text("no video")
    dataset = feedline.open(tmp_path).frames([39])
    with pytest.raises(DataError, match=r"frame 39 at 1.560 s of stream 0: the file ends at byte .*fast\.mp4"):
        dataset[0]
    with pytest.raises(DataError, match=r"no index \(moov\).*late\.mp4"):
        dataset[1]
    assert dataset[2].video.shape == (1, 3, *made_videos.SIZE)
    with pytest.raises(DataError, match=r"not a media file that can be read.*text\.mp4"):
        dataset[3]
    loader = dataset.center_crop(8).loader(batch_size=1, on_error="skip", error_budget=3, output="numpy")
    assert len(list(loader)) == 1
    with pytest.raises(DataError, match="frame 40 does not exist: the video has 40 frames"):
        feedline.open(tmp_path).frames([40])[2]
    with pytest.raises(DataError, match=r"no frame is shown at 1\.6 s"):
        feedline.open(tmp_path).frames(times=[1.6])[2]
    with pytest.raises(DataError, match="stream 1 is not a video stream of the file; its video streams: 0"):
        feedline.open(tmp_path).frames([0], stream=1)[2]


def test_verify_decodes_videos(folder: Path, tmp_path: Path) -> None:
    whole = (folder / "run" / "a.mp4").read_bytes()
    for name, content in (("a", whole), ("b", b""), ("c", whole[: len(whole) // 2])):
        (tmp_path / f"{name}.mp4").write_bytes(content)
    report = feedline.open(tmp_path).verify(decode=True)
    found = [(finding.code, finding.about["key"]) for finding in report.findings]
    assert found == [("undecodable_sample", "b"), ("undecodable_sample", "c")]


# ---- memory of decoders, and statistics ----


def test_statistics_count_decoders_and_bytes(folder: Path) -> None:
    with feedline.open(folder).resize((32, 32)).clip(frames=2, start=0).loader(2, epochs=1, output="numpy") as loader:
        assert len(list(loader)) == 2
        video = loader.stats()["video"]
    assert video["opens"] == 3
    assert video["open_s"] > 0
    assert video["frames"] >= 6
    assert 0 < video["bytes_used"] <= video["bytes_fetched"]
    assert 0 < video["decoder_bytes_peak"] <= video["decoder_budget"] == 256_000_000


def test_a_budget_for_one_decoder_decodes_one_clip_at_a_time(folder: Path, truth: list[Any]) -> None:
    one = made_videos.SIZE[0] * made_videos.SIZE[1] * 21 + 2**20
    dataset = feedline.open(folder).frames([3, 9]).center_crop(made_videos.SIZE)
    with dataset.loader(1, num_workers=3, decoder_budget=one, epochs=10, output="numpy") as loader:
        for i, batch in enumerate(loader):
            assert same_frames(batch.video[0], truth[i % 3][[3, 9]])
        assert loader.stats()["video"]["decoder_bytes_peak"] == one


def test_a_video_over_the_budget_is_an_error(folder: Path) -> None:
    dataset = feedline.open(folder).frames([0]).center_crop(8)
    with (
        pytest.raises(ConfigError, match=r"70 x 50 pixels takes about 1122076 bytes, but decoder_budget is 1000000"),
        dataset.loader(1, decoder_budget="1 MB", output="numpy") as loader,
    ):
        next(iter(loader))
    with pytest.raises(ConfigError, match=r"decoder_budget is for clips of videos, but .* have none"):
        feedline.open(folder).loader(1, decoder_budget="1 MB")
