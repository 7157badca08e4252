# SPDX-License-Identifier: Apache-2.0
"""Audio fields of WAV files: parts, channels, batches, and bad files."""

from __future__ import annotations

import io
import os
import struct
import tarfile
from pathlib import Path
from typing import Any

import numpy
import pytest
from made_audio import RATE, floats, signal, write_wav

import feedline

numpy_batches = {"output": "numpy", "num_workers": 2}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files of 0.5, 1.0, 1.5 and 2.0 seconds."""
    for i in range(4):
        write_wav(tmp_path / f"wavs/{i}.wav", signal(0.5 * (i + 1), seed=i))
    return tmp_path / "wavs"


def test_a_folder_of_wavs_is_a_dataset(folder: Path) -> None:
    data = feedline.open(folder)
    assert len(data) == 4
    assert data.schema["audio"].shape == (1, -1)
    assert data.schema["audio"].dtype == "float32"
    for i in range(4):
        numpy.testing.assert_array_equal(data[i].audio, floats(signal(0.5 * (i + 1), seed=i)))


def test_class_folders_of_wavs_have_labels(tmp_path: Path) -> None:
    for name in ("yes", "no"):
        write_wav(tmp_path / name / "a.wav", signal(0.1))
    data = feedline.open(tmp_path)
    assert data.classes == ["no", "yes"]
    assert [data[i].label for i in range(2)] == [0, 1]
    assert data[1].audio.shape == (1, 1600)


def test_batches_are_padded_and_have_lengths(folder: Path) -> None:
    (batch,) = feedline.open(folder).loader(4, **numpy_batches)
    assert batch.audio.shape == (4, 1, 2 * RATE)
    assert batch.audio_length.tolist() == [8000, 16000, 24000, 32000]
    for i, length in enumerate(batch.audio_length):
        numpy.testing.assert_array_equal(batch.audio[i, :, :length], floats(signal(0.5 * (i + 1), seed=i)))
        assert not batch.audio[i, :, length:].any()


def test_channels_of_padded_batches_stay_apart(tmp_path: Path) -> None:
    for i in range(2):
        write_wav(tmp_path / f"{i}.wav", signal(0.1 * (i + 1), seed=i, channels=3))
    (batch,) = feedline.open(tmp_path).loader(2, **numpy_batches)
    assert batch.audio.shape == (2, 3, 3200)
    numpy.testing.assert_array_equal(batch.audio[0, :, :1600], floats(signal(0.1, seed=0, channels=3)))
    assert not batch.audio[0, :, 1600:].any()
    numpy.testing.assert_array_equal(batch.audio[1], floats(signal(0.2, seed=1, channels=3)))


def test_lists_and_stacks(folder: Path) -> None:
    data = feedline.open(folder)
    (batch,) = data.collate("list").loader(4, **numpy_batches)
    assert [row.shape for row in batch.audio] == [(1, 8000), (1, 16000), (1, 24000), (1, 32000)]
    (batch,) = data.audio(duration=0.5).collate("stack").loader(4, **numpy_batches)
    assert batch.audio.shape == (4, 1, 8000)
    assert "audio_length" not in batch._fields
    with pytest.raises(feedline.ConfigError, match="any length"):
        data.collate("stack").loader(4)
    with pytest.raises(feedline.DataError, match="has 8000 samples of the 16000"):
        list(data.audio(duration=1.0).collate("stack").loader(4, **numpy_batches))


@pytest.mark.parametrize(("offset", "duration"), [(0.0, 0.25), (0.1, 0.2), (0.3, 5.0), (0.00003, 0.10001)])
def test_a_part_is_the_slice(folder: Path, offset: float, duration: float) -> None:
    data = feedline.open(folder).audio(offset=offset, duration=duration)
    begin, count = round(offset * RATE), round(duration * RATE)
    for i in range(4):
        expected = floats(signal(0.5 * (i + 1), seed=i))[:, begin : begin + count]
        numpy.testing.assert_array_equal(data[i].audio, expected)


def test_random_parts_follow_seed_and_epoch(folder: Path) -> None:
    data = feedline.open(folder).audio(duration=0.4, random=True)
    loader = data.loader(4, seed=3, epochs=2, **numpy_batches)
    first, second = (batch.audio.copy() for batch in loader)
    again = [batch.audio.copy() for batch in data.loader(4, seed=3, epochs=2, output="numpy", num_workers=1)]
    numpy.testing.assert_array_equal(first, again[0])
    numpy.testing.assert_array_equal(second, again[1])
    assert not numpy.array_equal(first, second)
    for i in range(4):
        whole = floats(signal(0.5 * (i + 1), seed=i))[0]
        windows = numpy.lib.stride_tricks.sliding_window_view(whole, 6400)
        assert (windows == first[i, 0]).all(1).any()


@pytest.mark.parametrize("operation", ["audio(duration=0.1, random=True)", "speed_perturbation()", "add_noise(NOISE)"])
def test_random_sound_differs_between_epochs_of_a_torch_loader(folder: Path, operation: str) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    noise = [str(next(folder.rglob("*.wav")))]
    dataset = eval(f"feedline.open(folder).{operation}", {"NOISE": noise, "feedline": feedline, "folder": folder})
    loader = feedline.DataLoader(dataset, collate_fn=lambda rows: [row.audio.tolist() for row in rows])
    epochs = [list(loader) for _ in range(4)]
    assert any(epoch != epochs[0] for epoch in epochs[1:])


def test_mono_is_the_mean_and_channels_are_chosen(tmp_path: Path) -> None:
    samples = signal(0.2, channels=2)
    write_wav(tmp_path / "a.wav", samples)
    data = feedline.open(tmp_path)
    numpy.testing.assert_array_equal(data[0].audio, floats(samples))
    numpy.testing.assert_array_equal(data.audio()[0].audio, floats(samples).mean(0, keepdims=True))
    numpy.testing.assert_array_equal(data.audio(channels=[1])[0].audio, floats(samples)[1:])
    numpy.testing.assert_array_equal(data.audio(channels=[1, 0])[0].audio, floats(samples)[::-1])
    with pytest.raises(feedline.DataError, match="channel 2 does not exist: the file has 2 channels"):
        data.audio(channels=[2])[0]


def test_int16_is_stored_unchanged(tmp_path: Path) -> None:
    samples = signal(0.2, channels=2)
    write_wav(tmp_path / "a.wav", samples)
    data = feedline.open(tmp_path)
    numpy.testing.assert_array_equal(data.audio(mono=False, dtype="int16")[0].audio, samples.T)
    numpy.testing.assert_array_equal(data.audio(channels=[1], dtype="int16")[0].audio, samples.T[1:])
    mono = data.audio(dtype="int16")[0].audio
    assert mono.dtype == numpy.int16
    assert abs(mono - samples.mean(1)).max() <= 0.5


def test_files_and_tables(folder: Path) -> None:
    paths = sorted(map(str, folder.iterdir()))
    data = feedline.files(paths, label=[3, 2, 1, 0])
    assert data[1].audio.shape == (1, 16000)
    assert data[1].label == 2
    table = {"file": [path.rsplit("/")[-1] for path in paths], "words": ["a", "b", "c", "d"]}
    data = feedline.table(table, audio="file", root=folder, fields=("audio", "words"))
    assert data[2].audio.shape == (1, 24000)
    assert data[2].words == "c"


def test_webdataset(folder: Path, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        for i in range(4):
            for name, content in ((f"{i}.wav", (folder / f"{i}.wav").read_bytes()), (f"{i}.txt", b"words")):
                info = tarfile.TarInfo(name)
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    data = feedline.open(tmp_path / "a.tar")
    numpy.testing.assert_array_equal(data[2].audio, floats(signal(1.5, seed=2)))
    data = feedline.open(tmp_path / "a.tar", fields=("wav", "txt"))
    assert data[2].txt == "words"
    assert data.audio(offset=1.0)[2].wav.shape == (1, 8000)


def test_parquet_with_the_audio_feature(folder: Path, tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = [{"bytes": (folder / f"{i}.wav").read_bytes(), "path": f"{i}.wav"} for i in range(4)]
    parquet.write_table(arrow.table({"audio": rows, "text": list("abcd")}), tmp_path / "a.parquet")
    data = feedline.open(tmp_path / "a.parquet", fields=("audio", "text"))
    numpy.testing.assert_array_equal(data[1].audio, floats(signal(1.0, seed=1)))
    assert data[1].text == "b"


def test_files_of_another_rate_or_channels_are_named(tmp_path: Path) -> None:
    write_wav(tmp_path / "a.wav", signal(0.1))
    write_wav(tmp_path / "b.wav", signal(0.1, rate=8000), rate=8000)
    write_wav(tmp_path / "c.wav", signal(0.1, channels=2))
    data = feedline.open(tmp_path)
    with pytest.raises(feedline.DataError, match=r"8000 Hz, but the first sample has 16000 Hz.*b\.wav"):
        data[1]
    with pytest.raises(feedline.DataError, match=r"2 channels, but the first sample has 1.*c\.wav"):
        data[2]


def wav(data: bytes, stated: int | None = None, code: int = 1, bits: int = 16) -> bytes:
    size = len(data) if stated is None else stated
    form = struct.pack("<HHIIHH", code, 1, RATE, RATE * bits // 8, bits // 8, bits)
    return (
        b"RIFF"
        + struct.pack("<I", 36 + size & 0xFFFFFFFF)
        + b"WAVEfmt \x10\0\0\0"
        + form
        + b"data"
        + struct.pack("<I", size)
        + data
    )


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "empty file"),
        (b"not audio at all", "not an audio file"),
        (wav(b"\0" * 100, stated=200), "truncated: the header states 100 frames, but the file has 50"),
        (wav(b""), "no samples"),
        (wav(b"\0" * 100)[:30], "fmt chunk"),
        (wav(b"\0" * 100, bits=64), "64 bits"),
        (b"\x30\x26\xb2\x75\x8e\x66\xcf\x11", "WMA is not supported"),
    ],
)
def test_bad_files_are_named_and_skipped(tmp_path: Path, content: bytes, problem: str) -> None:
    write_wav(tmp_path / "a.wav", signal(0.1))
    (tmp_path / "b.wav").write_bytes(content)
    write_wav(tmp_path / "c.wav", signal(0.1, seed=1))
    data = feedline.open(tmp_path)
    with pytest.raises(feedline.DataError, match=problem) as caught:
        data[1]
    assert "b.wav" in str(caught.value)
    loader = data.loader(1, on_error="skip", **numpy_batches)
    assert sum(len(batch.audio) for batch in loader) == 2
    assert "b.wav" in str(loader.errors[0])


@pytest.mark.parametrize("stated", [0, 0xFFFFFFFF])
def test_files_from_pipes_are_read_to_the_end(tmp_path: Path, stated: int) -> None:
    (tmp_path / "a.wav").write_bytes(wav(signal(0.1).tobytes(), stated))
    numpy.testing.assert_array_equal(feedline.open(tmp_path)[0].audio, floats(signal(0.1)))


def test_a_file_that_shrinks_is_an_error(tmp_path: Path) -> None:
    path = write_wav(tmp_path / "a.wav", signal(0.1))
    data = feedline.open(tmp_path)
    assert data[0].audio.shape == (1, 1600)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(feedline.DataError, match="truncated"):
        data[0]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"rate": 0}, "rate must be"),
        ({"offset": -1.0}, "offset must be"),
        ({"duration": 0.0}, "duration must be"),
        ({"random": True}, "random=True needs duration"),
        ({"dtype": "float64"}, "dtype must be one of"),
        ({"channels": [-1]}, "channels"),
    ],
)
def test_wrong_arguments_are_reported_at_the_call(folder: Path, options: dict[str, Any], problem: str) -> None:
    with pytest.raises(feedline.ConfigError, match=problem):
        feedline.open(folder).audio(**options)


def test_an_offset_after_the_end_is_an_error(folder: Path) -> None:
    data = feedline.open(folder).audio(offset=0.6)
    assert data[1].audio.shape == (1, 6400)
    with pytest.raises(feedline.DataError, match=r"offset=0\.6.* is after the end of the audio, which has 0\.500 s"):
        data[0]


def test_images_are_not_affected_by_audio_operations(folder: Path) -> None:
    with pytest.raises(feedline.ConfigError, match="no image"):
        feedline.open(folder).resize(10)[0]
    with pytest.raises(feedline.ConfigError, match=r"operations need images; use map\(function\)"):
        feedline.arrays(x=numpy.zeros((3, 2), numpy.float32)).audio().loader(1)


def test_batches_by_duration(tmp_path: Path) -> None:
    seconds = [0.1 + 0.01 * (i * 37 % 100) for i in range(60)]
    for i, length in enumerate(seconds):
        write_wav(tmp_path / f"{i:02}.wav", signal(length, seed=i))
    data = feedline.open(tmp_path)
    loader = data.loader(max_seconds=3.0, buckets=4, shuffle=True, seed=1, **numpy_batches)
    batches = list(loader)
    assert sum(len(batch.audio) for batch in batches) == 60
    for batch in batches:
        assert batch.audio.shape[2] == max(batch.audio_length)
        assert batch.audio.shape[2] * len(batch.audio) <= 3.0 * RATE
    assert len({len(batch.audio) for batch in batches}) > 2
    with pytest.raises(feedline.ConfigError, match=r"max_seconds=0\.5 is too small"):
        data.loader(max_seconds=0.5)
    with pytest.raises(feedline.ConfigError, match="max_seconds is for audio"):
        feedline.files(["a.jpg"]).resize((4, 4)).loader(max_seconds=1.0)


def test_durations_are_stored(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    for i in range(80):
        write_wav(folder / f"{i:02}.wav", signal(0.1 + 0.01 * i, seed=i))

    def rows() -> list[int]:
        data = feedline.open(folder, index=tmp_path / "index")
        return [len(batch.audio) for batch in data.loader(max_seconds=3.0, **numpy_batches)]

    before = rows()
    assert list((tmp_path / "index").rglob("*.feedline-audio"))
    damaged = folder / "79.wav"
    content, times = damaged.read_bytes(), damaged.stat()
    damaged.write_bytes(b"\0" * len(content))
    os.utime(damaged, ns=(times.st_atime_ns, times.st_mtime_ns))
    data = feedline.open(folder, index=tmp_path / "index")
    assert len(data.loader(max_seconds=3.0, **numpy_batches)) == len(before)  # reads no header
    damaged.write_bytes(content[:-1600])  # a changed file is read again
    with pytest.raises(feedline.DataError, match=r"79\.wav"):
        data.loader(max_seconds=3.0, **numpy_batches)


def test_gain_is_drawn_in_decibels(folder: Path) -> None:
    data = feedline.open(folder)
    changed = data.random_gain((-6.0, -6.0))[2].audio
    numpy.testing.assert_allclose(changed, data[2].audio * 10 ** (-6 / 20), rtol=1e-6)
    numpy.testing.assert_array_equal(data.random_gain((3.0, 3.0), p=0.0)[2].audio, data[2].audio)
    assert not numpy.array_equal(data.random_gain()[2].audio, data.random_gain()[1].audio)


def test_noise_has_the_drawn_ratio(folder: Path, tmp_path: Path) -> None:
    noise = write_wav(tmp_path / "noise/n.wav", signal(0.3, seed=9))
    data = feedline.open(folder)
    clean = data[3].audio
    added = data.add_noise(tmp_path / "noise", snr=(12.0, 12.0))[3].audio - clean
    ratio = 10 * numpy.log10((clean.astype(float) ** 2).mean() / (added.astype(float) ** 2).mean())
    assert ratio == pytest.approx(12.0, abs=0.01)
    # the noise is shorter, so it is repeated
    numpy.testing.assert_allclose(added[0, :4800], added[0, 4800:9600], atol=1e-6)
    numpy.testing.assert_array_equal(data.add_noise([noise], p=0.0)[3].audio, clean)
    with pytest.raises(feedline.ConfigError, match="no audio files"):
        data.add_noise(folder.parent / "empty_folder" if (folder.parent / "empty_folder").mkdir() is None else "")
    with pytest.raises(feedline.StorageError, match=r"add_noise: .*missing\.wav"):
        data.add_noise(tmp_path / "missing.wav")[0]


def test_datasets_are_pickled(folder: Path) -> None:
    import pickle

    data = feedline.open(folder).audio(duration=0.1, random=True).random_gain()
    numpy.testing.assert_array_equal(pickle.loads(pickle.dumps(data))[1].audio, data[1].audio)


def test_a_loader_resumes(folder: Path) -> None:
    data = feedline.open(folder).audio(duration=0.3, random=True)
    loader = data.loader(1, shuffle=True, seed=5, **numpy_batches)
    whole = [batch.audio.copy() for batch in loader]
    loader = data.loader(1, shuffle=True, seed=5, **numpy_batches)
    for _ in zip(range(2), loader, strict=False):
        pass
    state = loader.state_dict()
    resumed = data.loader(1, shuffle=True, seed=5, **numpy_batches)
    resumed.load_state_dict(state)
    rest = [batch.audio.copy() for batch in resumed]
    numpy.testing.assert_array_equal(numpy.stack(rest), numpy.stack(whole[len(whole) - len(rest) :]))


def test_explain_names_the_steps(folder: Path) -> None:
    text = feedline.open(folder).audio(duration=0.1).random_gain().explain()
    assert "decode to float32 (1, -1) at 16000 Hz, the mean of the channels" in text
    assert "random_gain" in text


def test_if_no_file_can_be_read_the_error_names_the_first(tmp_path: Path) -> None:
    for i in range(20):
        (tmp_path / f"{i:02d}.wav").write_bytes(b"not audio")
    data = feedline.open(tmp_path)
    with pytest.raises(feedline.DataError, match=r"none of the first 16 samples can be read.*/00\.wav, .*record 0"):
        data[0]
