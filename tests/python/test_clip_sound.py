# SPDX-License-Identifier: Apache-2.0
"""clip(audio=True): the sound of a clip is the part of FFmpeg's decode of the track with the times of the frames."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import made_videos
import numpy
import pytest

import feedline
from feedline import ConfigError, DataError

SECONDS = 4
FRAME_RATE = 25
KINDS = {
    "aac.mp4": ("-c:a", "aac"),
    "fragments.mp4": ("-c:a", "aac", "-movflags", "frag_keyframe+delay_moov"),
    "mp3.mp4": ("-c:a", "libmp3lame"),
    "pcm.mov": ("-c:a", "pcm_s16le"),
    "alac.mov": ("-c:a", "alac"),
    "aac.mkv": ("-c:a", "aac"),
    "opus.mkv": ("-c:a", "libopus", "-ar", "48000"),
    "vorbis.mkv": ("-c:a", "libvorbis"),
    "flac.mkv": ("-c:a", "flac"),
    "ac3.mkv": ("-c:a", "ac3"),
    "aac.ts": ("-c:a", "aac"),
}


def make(path: Path, *codec: str, rate: int = 44100, channels: int = 2, seconds: float = SECONDS) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    tones = "|".join(f"0.4*sin(2*PI*({300 + 200 * c}+90*t)*t)+0.05*(random({c})-0.5)" for c in range(channels))
    made_videos.run(
        *("-f", "lavfi", "-i", f"testsrc2=size=70x50:rate={FRAME_RATE}:duration={SECONDS}"),
        *("-f", "lavfi", "-i", f"aevalsrc='{tones}':s={rate}:d={seconds}"),
        *("-c:v", "libx264", "-g", "12", "-preset", "ultrafast", "-bf", "2", "-pix_fmt", "yuv420p"),
        *codec,
        str(path),
    )
    return path


def start_of(path: Path, stream: str) -> float:
    """The time stamp of the first frame that FFmpeg delivers of a stream."""
    command = ["ffprobe", "-v", "error", "-select_streams", stream, "-show_entries", "frame=pts_time", "-of", "csv=p=0"]
    lines = subprocess.run([*command, str(path)], check=True, capture_output=True, text=True).stdout.split()
    return min(float(line.strip(",")) for line in lines if line.strip(",") not in ("", "N/A"))


def track_of(path: Path, channels: int = 2) -> Any:
    """The whole track as FFmpeg decodes it, without gaps: float32 (channels, samples)."""
    raw = path.with_suffix(".f32")
    made_videos.run("-i", str(path), "-vn", "-f", "f32le", str(raw))
    samples = numpy.fromfile(raw, numpy.float32).reshape(-1, channels).T
    raw.unlink()
    return samples


def part_of(track: Any, begin: int, count: int) -> Any:
    """Samples from `begin` on, with zeros outside the track."""
    padded = numpy.zeros((track.shape[0], count), numpy.float32)
    first, last = max(begin, 0), min(begin + count, track.shape[1])
    if last > first:
        padded[:, first - begin : last - begin] = track[:, first:last]
    return padded


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made_videos.skip_without_ffmpeg()
    return tmp_path_factory.mktemp("sound")


@pytest.fixture(scope="module")
def one(root: Path) -> Path:
    return make(root / "one" / "a.mp4", "-c:a", "aac")


# ---- the samples ----


@pytest.mark.parametrize("name", list(KINDS))
def test_sound_equals_the_part_of_the_whole_track(root: Path, name: str) -> None:
    path = make(root / name.split(".")[0] / name, *KINDS[name])
    track = track_of(path)
    rate = 48000 if name.startswith("opus") else 44100
    offset = start_of(path, "v:0") - start_of(path, "a:0")
    dataset = feedline.open(path)
    for start in (0, 37, 84):
        sample = dataset.clip(frames=6, every=3, start=start, audio=True, timestamps=True)[0]
        first = float(sample.video_timestamps[0])
        count = round(16 / FRAME_RATE * rate)
        assert sample.audio.dtype == numpy.float32 and sample.audio.shape == (2, count)
        expected = part_of(track, round((first + offset) * rate), count)
        assert float(numpy.abs(expected).max()) > 0.2
        if name.startswith("opus"):  # its decoder depends on earlier packets
            assert float(numpy.abs(sample.audio - expected).max()) < 5e-3
        else:
            assert (sample.audio == expected).all(), numpy.abs(sample.audio - expected).max()


def test_sound_after_the_first_half_minute_begins_a_second_earlier(root: Path) -> None:
    path = root / "long" / "long.mp4"
    path.parent.mkdir()
    made_videos.run(
        *("-f", "lavfi", "-i", "testsrc2=size=32x32:rate=5:duration=50"),
        *("-f", "lavfi", "-i", "aevalsrc='0.4*sin(2*PI*(300+20*t)*t)':s=16000:d=50"),
        *("-c:v", "libx264", "-preset", "ultrafast", "-c:a", "aac", "-aac_pns", "0", str(path)),
    )
    track = track_of(path, 1)
    sample = feedline.open(path).clip(frames=5, start=200, audio=True)[0]
    assert (sample.audio == part_of(track, 40 * 16000, 16000)).all()


def test_edit_lists_of_both_streams_are_respected(root: Path, one: Path) -> None:
    path = root / "cut" / "cut.mp4"
    path.parent.mkdir()
    made_videos.run("-ss", "1.01", "-i", str(one), "-c", "copy", str(path))
    track = track_of(path)
    offset = start_of(path, "v:0") - start_of(path, "a:0")
    sample = feedline.open(path).clip(frames=25, start=10, audio=True, timestamps=True)[0]
    begin = round((float(sample.video_timestamps[0]) + offset) * 44100)
    assert (sample.audio == part_of(track, begin, 44100)).all()


def test_gaps_in_the_track_are_silent(root: Path) -> None:
    # the muxer leaves a gap after the first packet
    path = make(root / "gap" / "gap.mp4", "-c:a", "aac", "-movflags", "frag_keyframe+empty_moov")
    track = track_of(path)
    sample = feedline.open(path).clip(frames=50, start=0, audio=True)[0]
    late = round(start_of(path, "v:0") * 44100)  # the video begins with the second packet
    assert 1024 < late < 4096
    assert (sample.audio == track[:, 1024 : 1024 + 88200]).all()


def test_sound_outside_the_track_is_silent(root: Path) -> None:
    path = make(root / "short" / "short.mp4", "-c:a", "aac", seconds=1.5)
    track = track_of(path)
    sample = feedline.open(path).clip(frames=100, audio=True)[0]
    assert (sample.audio == part_of(track, 0, SECONDS * 44100)).all()
    assert not sample.audio[:, 2 * 44100 :].any()


# ---- windows ----


def test_a_clip_by_rate_has_the_sound_to_the_end_of_its_last_frame(one: Path) -> None:
    track = track_of(one)
    sample = feedline.open(one).clip(fps=5, seconds=1.0, start=0.51, audio=True)[0]
    # the frame at 0.51 s is shown from 0.48 s on, and that at 1.31 s until 1.32 s
    assert (sample.audio == part_of(track, round(0.48 * 44100), round(0.84 * 44100))).all()


def test_several_clips_have_an_axis(one: Path) -> None:
    track = track_of(one)
    dataset = feedline.open(one).clip(4, 2, "uniform", 3, audio=True, timestamps=True)
    sample = dataset[0]
    count = round(7 / FRAME_RATE * 44100)
    assert sample.audio.shape == (3, 2, count)
    for clip in range(3):
        begin = round(float(sample.video_timestamps[clip, 0]) * 44100)
        assert (sample.audio[clip] == part_of(track, begin, count)).all()
    (batch,) = dataset.center_crop(8).loader(batch_size=1, output="numpy")
    assert (batch.audio[0] == sample.audio).all() and batch.audio_length.tolist() == [count]


def test_repeated_frames_add_no_sound(one: Path) -> None:
    track = track_of(one)
    sample = feedline.open(one).clip(frames=10, every=4, start=90, pad=True, audio=True)[0]
    assert (sample.audio == part_of(track, round(3.6 * 44100), round(0.4 * 44100))).all()


# ---- batches ----


def test_batches_are_padded_and_have_lengths(root: Path, one: Path) -> None:
    dataset = feedline.open([one, one]).clip(frames=20, every=5, start=40, pad=True, audio=True).center_crop(8)
    other = feedline.open([one, one]).clip(frames=2, start=3, audio=True)
    batch = next(iter(dataset.loader(batch_size=2, output="numpy", num_workers=2)))
    assert batch.audio.shape == (2, 2, round(2.4 * 44100)) and batch.audio_length.tolist() == [round(2.4 * 44100)] * 2
    assert other.schema["audio"].dtype == "float32"


def test_audio_sets_rate_channels_and_dtype(root: Path, one: Path) -> None:
    pytest.importorskip("soxr")
    mono = make(root / "rates" / "mono.mp4", "-c:a", "aac", rate=22050, channels=1)
    dataset = feedline.open([one, mono]).clip(frames=25, start=10, audio=True)
    with pytest.raises(DataError, match=r"has 22050 Hz, but the first sample has 44100 Hz.*mono\.mp4"):
        dataset[1]
    resampled = dataset.audio(rate=16000, mono=True).center_crop(8)
    (batch,) = resampled.loader(batch_size=2, output="numpy")
    assert batch.audio.shape == (2, 1, 16000) and batch.audio_length.tolist() == [16000, 16000]
    whole = feedline.open([one, mono]).clip(frames=100, start=0, audio=True).audio(rate=16000, mono=True)[0].audio
    assert numpy.abs(batch.audio[0] - whole[:, 6400:22400]).max() < 1e-6
    integers = dataset.audio(mono=True, dtype="int16")[0].audio
    assert integers.dtype == numpy.int16
    expected = part_of(track_of(one), round(0.4 * 44100), 44100).mean(0) * 32768
    assert numpy.abs(integers[0] - expected).max() <= 1
    (loud,) = dataset.subset([0]).random_gain((6, 6)).center_crop(8).loader(1, output="numpy")
    assert numpy.allclose(loud.audio[0], dataset[0].audio * 10 ** (6 / 20), atol=1e-6)


def test_the_sound_of_another_field_has_its_name(one: Path, tmp_path: Path) -> None:
    (tmp_path / "list.csv").write_text(f"shot,label\n{one},7\n")
    sample = feedline.open(tmp_path / "list.csv", fields=("shot:video", "label")).clip(frames=2, audio=True)[0]
    assert sample.shot_audio.shape == (2, 3528)


# ---- errors ----


def test_a_video_without_sound_is_an_error(root: Path, tmp_path: Path) -> None:
    made_videos.make(tmp_path / "silent.mp4")
    dataset = feedline.open(tmp_path / "silent.mp4").clip(frames=2, audio=True)
    with pytest.raises(DataError, match=r"the file has no sound stream.*silent\.mp4"):
        dataset[0]


def test_damage_names_the_time_of_the_sound(root: Path, one: Path, tmp_path: Path) -> None:
    path = tmp_path / "damaged.mp4"
    made_videos.run("-i", str(one), "-c", "copy", "-movflags", "+faststart", str(path))
    content = path.read_bytes()
    dataset = feedline.open(path, index=tmp_path / "index")
    dataset.clip(frames=2, start=0, audio=True)[0]
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(DataError, match=r"the sound at 3\.\d* s of stream 1|frame 90 at 3\.600 s of stream 0"):
        feedline.open(path).clip(frames=2, start=90, audio=True)[0]


def test_operations_that_conflict_with_the_times_of_frames_are_refused(one: Path) -> None:
    dataset = feedline.open(one).clip(frames=2, audio=True)
    with pytest.raises(ConfigError, match=r"audio: offset= and duration=: the sound of a clip has the times"):
        dataset.audio(duration=1.0)[0]
    with pytest.raises(ConfigError, match=r"speed_perturbation: the sound of a clip has the times"):
        dataset.speed_perturbation()[0]
    with pytest.raises(ConfigError, match="have no audio"):
        feedline.open(one).clip(frames=2).audio(rate=16000)[0]
