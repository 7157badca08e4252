# SPDX-License-Identifier: Apache-2.0
"""AAC and ALAC files: samples and lengths are those of FFmpeg's decoder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import made_videos
import numpy
import pytest

import feedline

KINDS = {
    "a.m4a": ("-c:a", "aac"),
    "fast.m4a": ("-c:a", "aac", "-movflags", "+faststart"),
    "fragments.m4a": ("-c:a", "aac", "-movflags", "frag_keyframe+delay_moov"),
    "book.m4b": ("-c:a", "aac", "-f", "mp4"),
    "a.aac": ("-c:a", "aac"),
    "lossless.m4a": ("-c:a", "alac"),
}


def make(path: Path, *codec: str, rate: int = 44_100, seconds: float = 4.0) -> Path:
    tones = "|".join(f"0.4*sin(2*PI*({300 + 200 * c}+90*t)*t)+0.05*(random({c})-0.5)" for c in range(2))
    made_videos.run("-f", "lavfi", "-i", f"aevalsrc='{tones}':s={rate}:d={seconds}", *codec, str(path))
    return path


def decoded(path: Path) -> Any:
    """The whole file as FFmpeg decodes it: float32 (channels, samples)."""
    raw = path.with_suffix(".f32")
    made_videos.run("-i", str(path), "-f", "f32le", str(raw))
    samples = numpy.fromfile(raw, numpy.float32).reshape(-1, 2).T
    raw.unlink()
    return samples


@pytest.fixture(scope="module", autouse=True)
def ffmpeg() -> None:
    made_videos.skip_without_ffmpeg()


@pytest.mark.parametrize("name", list(KINDS))
def test_files_equal_ffmpegs_decode(tmp_path: Path, name: str) -> None:
    path = make(tmp_path / name, *KINDS[name])
    whole = decoded(path)
    data = feedline.open(tmp_path)
    numpy.testing.assert_array_equal(data[0].audio, whole)
    for begin in (0, 1, 1023, 1024, 50_000, 171_990):
        part = data.audio(mono=False, offset=begin / 44_100, duration=0.1)[0].audio
        numpy.testing.assert_array_equal(part, whole[:, begin : begin + 4410])
    integers = data.audio(mono=False, dtype="int16")[0].audio
    numpy.testing.assert_array_equal(integers, numpy.clip(numpy.rint(whole * 32768), -32768, 32767))
    numpy.testing.assert_array_equal(feedline.files([path]).audio()[0].audio[0], whole.sum(0) / numpy.float32(2))


def test_edit_lists_and_padding_set_the_length(tmp_path: Path) -> None:
    path = make(tmp_path / "in.m4a", "-c:a", "aac", seconds=3.21)
    assert abs(feedline.files([path])[0].audio.shape[1] - round(3.21 * 44_100)) < 1024
    cut = tmp_path / "cut.m4a"
    made_videos.run("-ss", "1.01", "-i", str(path), "-c", "copy", str(cut))
    numpy.testing.assert_array_equal(feedline.files([cut])[0].audio, decoded(cut))


def test_aac_may_begin_with_an_id3_tag(tmp_path: Path) -> None:
    path = make(tmp_path / "a.aac", "-c:a", "aac", seconds=1.0)
    whole = decoded(path)
    path.write_bytes(b"ID3\x04\0\0\0\0\0\x14" + bytes(20) + path.read_bytes())
    numpy.testing.assert_array_equal(feedline.files([path])[0].audio, whole)


def test_files_in_memory_and_batches(tmp_path: Path) -> None:
    import tarfile

    for i in range(4):
        make(tmp_path / f"{i}.m4a", "-c:a", "aac", seconds=0.5 + 0.5 * i)
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        for i in range(4):
            archive.add(tmp_path / f"{i}.m4a", f"{i}.m4a")
    paths = sorted(tmp_path.glob("*.m4a"))
    (batch,) = feedline.open(tmp_path / "a.tar").loader(4, output="numpy", num_workers=2)
    lengths = [decoded(path).shape[1] for path in paths]
    assert batch.audio_length.tolist() == lengths
    rows = [len(one.audio) for one in feedline.files(paths).loader(max_seconds=3.0, output="numpy")]
    assert sum(rows) == 4 and len(rows) > 1


def test_damage_names_the_file(tmp_path: Path) -> None:
    path = make(tmp_path / "a.m4a", "-c:a", "aac", "-movflags", "+faststart")
    path.write_bytes(path.read_bytes()[:30_000])
    with pytest.raises(feedline.DataError, match=r"a\.m4a"):
        feedline.files([path])[0]
    path.write_bytes(b"\0\0\0\x20ftypM4A ")
    with pytest.raises(feedline.DataError, match=r"MP4: .*a\.m4a"):
        feedline.files([path])[0]
    video = made_videos.make(tmp_path / "silent.mp4")
    video.rename(tmp_path / "silent.m4a")
    with pytest.raises(feedline.DataError, match=r"MP4: the file has no sound stream.*silent\.m4a"):
        feedline.files([tmp_path / "silent.m4a"])[0]


def test_missing_ffmpeg_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path / "a.m4a", "-c:a", "aac")
    script = f"""
import feedline
try:
    feedline.open({str(tmp_path)!r})
except feedline.ConfigError as error:
    print(error)
"""
    monkeypatch.setenv("FEEDLINE_FFMPEG", str(tmp_path / "nowhere"))
    text = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert "AAC, and audio in MP4, need FFmpeg" in text and "apt-get install ffmpeg" in text
