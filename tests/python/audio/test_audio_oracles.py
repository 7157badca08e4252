# SPDX-License-Identifier: Apache-2.0
"""Compares audio with soundfile and soxr."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import made_videos
import numpy
import pytest
from made_audio import RATE, floats, signal, write_wav

import feedline

soundfile = pytest.importorskip("soundfile", reason="soundfile, which writes and reads the files, is not installed")

LOSSLESS = [
    ("WAV", "PCM_U8"), ("WAV", "PCM_16"), ("WAV", "PCM_24"), ("WAV", "PCM_32"), ("WAV", "FLOAT"), ("WAV", "DOUBLE"),
    ("WAV", "ULAW"), ("WAV", "ALAW"), ("WAVEX", "PCM_16"), ("WAVEX", "PCM_24"), ("WAVEX", "FLOAT"), ("RF64", "PCM_16"),
    ("RF64", "FLOAT"), ("AIFF", "PCM_S8"), ("AIFF", "PCM_16"), ("AIFF", "PCM_24"), ("AIFF", "PCM_32"),
    ("AIFF", "FLOAT"), ("AIFF", "DOUBLE"), ("AIFF", "ULAW"), ("AIFF", "ALAW"), ("AU", "PCM_S8"), ("AU", "PCM_16"),
    ("AU", "PCM_24"), ("AU", "PCM_32"), ("AU", "FLOAT"), ("AU", "DOUBLE"), ("AU", "ULAW"), ("AU", "ALAW"),
    ("FLAC", "PCM_16"), ("FLAC", "PCM_24"), ("W64", "PCM_16"), ("CAF", "PCM_24"), ("NIST", "PCM_16"),
]  # fmt: skip
LOSSY = [("OGG", "VORBIS"), ("OGG", "OPUS"), ("MP3", "MPEG_LAYER_III")]
EXTENSIONS = {"WAVEX": "wav", "RF64": "wav", "NIST": "sph"}


def written(folder: Path, kind: str, subtype: str, samples: Any, rate: int = RATE) -> Path:
    path = folder / f"a.{EXTENSIONS.get(kind, kind.lower())}"
    folder.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, samples, rate, format=kind, subtype=subtype)
    return path


@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize(("kind", "subtype"), LOSSLESS)
def test_lossless_files_equal_soundfile(tmp_path: Path, kind: str, subtype: str, channels: int) -> None:
    samples = signal(0.3, channels=channels) / 32768 * (3 if subtype in ("FLOAT", "DOUBLE") else 1)
    path = written(tmp_path, kind, subtype, samples)
    data = feedline.files([path])
    expected = soundfile.read(path, dtype="float32", always_2d=True)[0].T
    numpy.testing.assert_array_equal(data[0].audio, expected)
    numpy.testing.assert_array_equal(data.audio(mono=False, offset=0.1, duration=0.1)[0].audio, expected[:, 1600:3200])
    if subtype in ("FLOAT", "DOUBLE"):
        assert abs(data[0].audio).max() > 1  # not clipped
    else:
        integers = soundfile.read(path, dtype="int16", always_2d=True)[0].T
        numpy.testing.assert_array_equal(data.audio(mono=False, dtype="int16")[0].audio, integers)


@pytest.mark.parametrize("rate", [16_000, 48_000])
@pytest.mark.parametrize(("kind", "subtype"), LOSSY)
def test_lossy_files_equal_soundfile(tmp_path: Path, kind: str, subtype: str, rate: int) -> None:
    path = written(tmp_path, kind, subtype, signal(3.0, rate=rate, channels=2) / 40000, rate)
    whole = soundfile.read(path, dtype="float32", always_2d=True)[0].T
    data = feedline.files([path])
    assert data[0].audio.shape == whole.shape
    assert abs(data[0].audio - whole).max() <= 1 / 32768
    tolerance = 5e-3 if subtype == "OPUS" else 1e-6
    for offset in (0.0, 0.5, 1.3, 2.9):
        part = data.audio(mono=False, offset=offset, duration=0.4)[0].audio
        begin = round(offset * rate)
        expected = whole[:, begin : begin + round(0.4 * rate)]
        assert part.shape == expected.shape
        assert abs(part - expected).max() <= tolerance


@pytest.mark.parametrize(("kind", "subtype"), [("FLAC", "PCM_16"), ("OGG", "VORBIS"), ("MP3", "MPEG_LAYER_III")])
def test_truncated_and_corrupt_files_are_errors(tmp_path: Path, kind: str, subtype: str) -> None:
    path = written(tmp_path, kind, subtype, signal(3.0) / 32768)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    data = feedline.files([path])
    with pytest.raises(feedline.DataError, match=rf"(truncated|damaged).*{path.name}"):
        data[0]
    if kind == "OGG":
        path.write_bytes(content[: content.rindex(b"OggS")])  # between two pages
        with pytest.raises(feedline.DataError, match=rf"the last page of Ogg does not end the stream.*{path.name}"):
            data[0]
    path.write_bytes(content[:20])
    with pytest.raises(feedline.Error, match=path.name):
        feedline.files([path])[0]


@pytest.mark.parametrize("level", range(9))
def test_flac_of_every_level_equals_soundfile(tmp_path: Path, level: int) -> None:
    quiet_then_loud = numpy.linspace(0.0005, 0.9, 3 * 44_100)[:, None] ** 2
    for subtype, channels in (("PCM_S8", 1), ("PCM_16", 1), ("PCM_16", 2), ("PCM_24", 2), ("PCM_24", 6)):
        samples = signal(3.0, rate=44_100, channels=channels) / 32768 * quiet_then_loud
        samples[44_100:88_200, 1:] = samples[44_100:88_200, :1]  # equal channels
        samples[90_000:100_000] = 0.25
        path = tmp_path / f"{subtype}{channels}.flac"
        soundfile.write(path, samples, 44_100, subtype=subtype, compression_level=level / 8)
        data = feedline.files([path])
        for dtype in ("float32", "int16"):
            whole = soundfile.read(path, dtype=dtype, always_2d=True)[0].T
            numpy.testing.assert_array_equal(data.audio(mono=False, dtype=dtype)[0].audio, whole)
            for begin in (0, 1, 4095, 4096, 44_100, 89_999, 128_204):
                part = data.audio(mono=False, dtype=dtype, offset=begin / 44_100, duration=0.09)[0].audio
                numpy.testing.assert_array_equal(part, whole[:, begin : begin + 3969])


@pytest.mark.parametrize(
    "options", ["-sample_fmt s16", "-sample_fmt s32", "-ac 2", "-frame_size 700", "-max_prediction_order 32"]
)
def test_flac_of_ffmpeg_equals_soundfile(tmp_path: Path, options: str) -> None:
    made_videos.skip_without_ffmpeg()
    write_wav(tmp_path / "in.wav", signal(2.0))
    path = tmp_path / "a.flac"
    made_videos.run("-i", str(tmp_path / "in.wav"), *options.split(), str(path))
    whole = soundfile.read(path, dtype="float32", always_2d=True)[0].T
    data = feedline.files([path])
    numpy.testing.assert_array_equal(data[0].audio, whole)
    numpy.testing.assert_array_equal(data.audio(mono=False, offset=1.0, duration=0.5)[0].audio, whole[:, 16000:24000])


def test_damage_in_flac_names_file_and_time(tmp_path: Path) -> None:
    path = written(tmp_path, "FLAC", "PCM_16", signal(3.0))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    data = feedline.files([path])
    with pytest.raises(feedline.DataError, match=r"FLAC: damaged in the frame at 1\.\d+ s of 3\.000 s: .*a\.flac"):
        data[0]
    numpy.testing.assert_array_equal(data.audio(offset=2.5)[0].audio, floats(signal(3.0))[:, 40_000:])


def test_mp3_without_a_length_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.mp3"
    loud_and_silent = signal(20.0) * (numpy.arange(20 * RATE)[:, None] // RATE % 3 == 0)
    soundfile.write(path, loud_and_silent, RATE, bitrate_mode="VARIABLE", compression_level=0.5)
    content = path.read_bytes()
    end = content.index(content[:2], content.index(b"Xing"))
    path.write_bytes(content[end:])  # without the first frame, which states the length
    data = feedline.files([path])
    samples = data[0].audio.shape[1]
    assert 20 * RATE <= samples <= 20 * RATE + 3 * 1152
    assert samples % 576 == 0
    part = data.audio(offset=15.0, duration=1.0)[0].audio
    numpy.testing.assert_allclose(part, data[0].audio[:, 15 * RATE : 16 * RATE], atol=1e-6)
    assert soundfile.info(path).frames < samples  # libsndfile's estimate


def test_flac_without_a_length_is_counted(tmp_path: Path) -> None:
    path = written(tmp_path, "FLAC", "PCM_16", signal(1.0))
    content = bytearray(path.read_bytes())
    content[21] &= 0xF0
    content[22:26] = bytes(4)
    path.write_bytes(content)
    data = feedline.files([path])
    numpy.testing.assert_array_equal(data[0].audio, floats(signal(1.0)))
    numpy.testing.assert_array_equal(data.audio(offset=0.5)[0].audio, floats(signal(1.0))[:, 8000:])


@pytest.mark.parametrize(("source", "rate"), [(44_100, 16_000), (8_000, 16_000), (48_000, 16_000), (16_000, 22_050)])
def test_resampling_is_soxrs(tmp_path: Path, source: int, rate: int) -> None:
    soxr = pytest.importorskip("soxr", reason="soxr, which resamples the reference, is not installed")
    samples = signal(2.0, rate=source, channels=2)
    write_wav(tmp_path / "a.wav", samples, source)
    data = feedline.open(tmp_path)
    whole = soxr.resample(floats(samples).T, source, rate, quality="VHQ").T
    numpy.testing.assert_allclose(data.audio(rate, mono=False)[0].audio, whole, atol=1e-6)
    part = data.audio(rate, mono=False, offset=0.7, duration=0.5)[0].audio
    begin = round(0.7 * rate)
    numpy.testing.assert_allclose(part, whole[:, begin : begin + round(0.5 * rate)], atol=1e-6)
    mono = data.audio(rate, offset=1.5)[0].audio
    numpy.testing.assert_allclose(mono[0], whole.mean(0)[round(1.5 * rate) :], atol=2e-6)
    integers = data.audio(rate, dtype="int16")[0].audio
    assert abs(integers[0] - whole.mean(0) * 32768).max() <= 0.6


def test_speed_is_resampling(tmp_path: Path) -> None:
    soxr = pytest.importorskip("soxr", reason="soxr, which resamples the reference, is not installed")
    samples = signal(1.0)
    write_wav(tmp_path / "a.wav", samples)
    data = feedline.open(tmp_path)
    for factor in (0.9, 1.0, 1.1):
        expected = soxr.resample(floats(samples)[0], RATE * factor, RATE, quality="VHQ")
        changed = data.speed_perturbation([factor])[0].audio[0]
        assert len(changed) == round(RATE / factor)
        numpy.testing.assert_allclose(changed, expected[: len(changed)], atol=1e-5)
    lengths = {
        data.speed_perturbation().loader(1, seed=s, output="numpy").__iter__().__next__().audio.shape[2]
        for s in range(12)
    }
    assert lengths == {round(RATE / factor) for factor in (0.9, 1.0, 1.1)}


def test_missing_libraries_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import subprocess
    import sys

    written(tmp_path / "ogg", "OGG", "VORBIS", signal(0.1))
    write_wav(tmp_path / "wav/a.wav", signal(0.1, rate=8000), 8000)
    script = f"""
import feedline
ogg, wav = {str(tmp_path / "ogg")!r}, {str(tmp_path / "wav")!r}
for action in (lambda: feedline.open(ogg), lambda: feedline.open(wav).audio(16000)[0]):
    try:
        action()
    except feedline.ConfigError as error:
        print(error)
"""
    monkeypatch.setenv("FEEDLINE_LIBSNDFILE", "/nowhere/libsndfile.so")
    monkeypatch.setenv("FEEDLINE_LIBSOXR", "/nowhere/libsoxr.so")
    text = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert "libsndfile" in text and "apt install libsndfile1" in text and "pip install soundfile" in text
    assert "8000 Hz" in text and "rate=16000" in text and "pip install soxr" in text


def test_threads_do_not_change_samples(tmp_path: Path) -> None:
    rates = (8_000, 11_025, 22_050, 44_100, 48_000)
    for i in range(40):
        rate = rates[i % len(rates)]
        written(tmp_path / f"{i:02}", ("FLAC", "WAV")[i % 2], "PCM_16", signal(0.3, seed=i, rate=rate), rate)
    paths = sorted(tmp_path.glob("*/a.*"))
    data = feedline.files(paths).audio(RATE).speed_perturbation()
    alone, together = (
        [batch.audio.copy() for batch in data.loader(4, epochs=3, output="numpy", num_workers=threads)]
        for threads in (1, 8)
    )
    for one, other in zip(alone, together, strict=True):
        numpy.testing.assert_array_equal(one, other)
