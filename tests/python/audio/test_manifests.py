# SPDX-License-Identifier: Apache-2.0
"""Manifests of speech: NeMo, Kaldi, Lhotse, Common Voice and LibriSpeech."""

from __future__ import annotations

import functools
import gzip
import json
import pickle
from pathlib import Path
from typing import Any

import numpy
import pytest
from made_audio import RATE, floats, signal, write_wav

import feedline
from feedline.packing import pack
from feedline.verifying import verify


@pytest.fixture
def wavs(tmp_path: Path) -> list[Path]:
    return [write_wav(tmp_path / f"wavs/{i}.wav", signal(1.0, seed=i)) for i in range(3)]


def lines(path: Path, rows: list[Any]) -> Path:
    text = "".join(json.dumps(row) + "\n" for row in rows)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    return path


def part(seed: int, begin: float, end: float) -> Any:
    return floats(signal(1.0, seed=seed))[:, round(begin * RATE) : round(end * RATE)]


def test_nemo(tmp_path: Path, wavs: list[Path]) -> None:
    rows = [
        {"audio_filepath": "wavs/0.wav", "duration": 1.0, "text": "zero"},
        {"audio_filepath": str(wavs[1]), "offset": 0.25, "duration": 0.5, "text": "one", "lang": "en"},
        {"audio_filepath": "wavs/2.wav", "offset": 0.5, "text": "two"},
    ]
    path = lines(tmp_path / "train.json", rows)
    for data in (feedline.open(path), feedline.open(path, format="nemo")):
        assert [data[i].text for i in range(3)] == ["zero", "one", "two"]
        numpy.testing.assert_array_equal(data[0].audio, part(0, 0, 1))
        numpy.testing.assert_array_equal(data[1].audio, part(1, 0.25, 0.75))
        numpy.testing.assert_array_equal(data[2].audio, part(2, 0.5, 1))
    data = feedline.open(path).audio(offset=0.1, duration=0.2)
    numpy.testing.assert_array_equal(data[1].audio, part(1, 0.35, 0.55))
    assert feedline.open(path, fields=("text", "lang", "audio"))[1].lang == "en"
    assert pickle.loads(pickle.dumps(data))[2].text == "two"


@pytest.mark.parametrize("start", [b"\xef\xbb\xbf", b"\n\n", b"\r\n"])
def test_manifests_may_begin_with_a_mark_or_empty_lines(tmp_path: Path, wavs: list[Path], start: bytes) -> None:
    path = lines(tmp_path / "train.json", [{"audio_filepath": "wavs/0.wav", "text": "zero"}])
    path.write_bytes(start + path.read_bytes())
    assert feedline.open(path)[0].text == "zero"


def test_planning_by_duration_opens_nothing(tmp_path: Path) -> None:
    rows = [{"audio_filepath": f"missing/{i}.wav", "duration": 0.5 + 0.1 * i, "text": ""} for i in range(20)]
    write_wav(tmp_path / "missing/0.wav", signal(0.5))
    loader = feedline.open(lines(tmp_path / "a.jsonl", rows)).audio(RATE).loader(max_seconds=5.0, buckets=3)
    assert len(loader) > 3


def test_kaldi(tmp_path: Path, wavs: list[Path]) -> None:
    (tmp_path / "wav.scp").write_text(f"rec0 {wavs[0]}\nrec1 wavs/1.wav\n")
    (tmp_path / "text").write_text("u0 hello there\nu1 bye\n")
    (tmp_path / "segments").write_text("u0 rec0 0.1 0.6\nu1 rec1 0.5 -1\n")
    (tmp_path / "utt2spk").write_text("u0 s1\nu1 s2\n")
    data = feedline.open(tmp_path)
    assert [data[i].text for i in range(2)] == ["hello there", "bye"]
    numpy.testing.assert_array_equal(data[0].audio, part(0, 0.1, 0.6))
    numpy.testing.assert_array_equal(data[1].audio, part(1, 0.5, 1.0))
    assert feedline.open(tmp_path, format="kaldi", fields=("audio", "key", "speaker"))[1].speaker == "s2"
    (tmp_path / "segments").unlink()
    (tmp_path / "text").write_text("rec0 hello\nrec1 bye\n")
    numpy.testing.assert_array_equal(feedline.open(tmp_path)[1].audio, part(1, 0, 1))
    (tmp_path / "wav.scp").write_text(f"rec0 {wavs[0]}\nrec1 sox a.flac -t wav - |\n")
    with pytest.raises(feedline.ConfigError, match=r"wav\.scp, line 2: .* is a command, which is not run"):
        feedline.open(tmp_path)
    (tmp_path / "wav.scp").write_text("rec0 data.ark:123\n")
    with pytest.raises(feedline.ConfigError, match=r"line 1: .* is in an archive"):
        feedline.open(tmp_path)


def cut(i: int, **more: Any) -> dict[str, Any]:
    return {
        "id": f"cut{i}",
        "start": 0.2,
        "duration": 0.5,
        "channel": 0,
        "supervisions": [{"text": f"words {i}", "speaker": "s"}],
        "recording": {"sources": [{"type": "file", "channels": [0], "source": f"wavs/{i}.wav"}]},
        "type": "MonoCut",
    } | more


@pytest.mark.parametrize("name", ["cuts.jsonl", "cuts.jsonl.gz"])
def test_lhotse(tmp_path: Path, wavs: list[Path], name: str) -> None:
    data = feedline.open(lines(tmp_path / name, [cut(0), cut(2)]))
    assert [data[i].text for i in range(2)] == ["words 0", "words 2"]
    numpy.testing.assert_array_equal(data[1].audio, part(2, 0.2, 0.7))


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (cut(0, type="MixedCut"), "type 'MixedCut'"),
        (cut(0, recording={"sources": [{"type": "command", "source": "x"}]}), "type 'command'"),
        (cut(0, channel=3), r"channels \[3\] of \[0\]"),
        (cut(0, recording={"sources": [], "transforms": [{"name": "Speed"}]}), "transforms"),
    ],
)
def test_cuts_that_are_not_read_are_refused(tmp_path: Path, row: dict[str, Any], problem: str) -> None:
    with pytest.raises(feedline.ConfigError, match=f"line 2: .*{problem}"):
        feedline.open(lines(tmp_path / "cuts.jsonl", [cut(0), row]))


def test_common_voice(tmp_path: Path) -> None:
    write_wav(tmp_path / "clips/a.wav", signal(0.5, seed=1))
    write_wav(tmp_path / "clips/b.wav", signal(0.5, seed=2))
    (tmp_path / "train.tsv").write_text("client_id\tpath\tsentence\tage\nx\ta.wav\tOne.\ttwenties\ny\tb.wav\tTwo.\t\n")
    data = feedline.open(tmp_path / "train.tsv")
    assert [data[i].text for i in range(2)] == ["One.", "Two."]
    numpy.testing.assert_array_equal(data[1].audio, floats(signal(0.5, seed=2)))
    assert feedline.open(tmp_path / "train.tsv", fields=("audio", "client_id"))[0].client_id == "x"


def test_librispeech(tmp_path: Path) -> None:
    soundfile = pytest.importorskip("soundfile", reason="soundfile, which writes FLAC, is not installed")
    folder = tmp_path / "train-clean" / "19" / "198"
    folder.mkdir(parents=True)
    for i in range(2):
        soundfile.write(folder / f"19-198-000{i}.flac", signal(0.3, seed=i), RATE)
    (folder / "19-198.trans.txt").write_text("19-198-0000 NORTHANGER ABBEY\n19-198-0001 THIS LITTLE WORK\n")
    data = feedline.open(tmp_path / "train-clean")
    assert [data[i].text for i in range(2)] == ["NORTHANGER ABBEY", "THIS LITTLE WORK"]
    numpy.testing.assert_array_equal(data[1].audio, floats(signal(0.3, seed=1)))
    assert feedline.open(tmp_path, format="librispeech", fields=("audio", "speaker"))[0].speaker == "19"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"audio_filepath": "a.wav"}\n{"audio_filepath": ', "line 2: not JSON"),
        ('{"audio_filepath": "a.wav", "duration": "long"}', "line 1: duration is 'long'"),
        ('{"audio_filepath": "a.wav", "offset": -1}', "line 1: offset is -1"),
        ('{"audio_filepath": "a.wav"}\n{"text": "x"}', "line 2: audio_filepath is missing"),
        ('{"audio_filepath": "a.wav"}\n[1]', "line 2: not a JSON object"),
    ],
)
def test_damaged_manifests_are_named(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "a.jsonl").write_text(text)
    with pytest.raises(feedline.DataError, match=problem):
        feedline.open(tmp_path / "a.jsonl", format="nemo")


def test_parts_outside_their_file_are_named(tmp_path: Path, wavs: list[Path]) -> None:
    row = {"audio_filepath": "wavs/0.wav", "offset": 0.5, "duration": 0.8}
    data = feedline.open(lines(tmp_path / "a.jsonl", [{"audio_filepath": "wavs/0.wav"}, row]))
    with pytest.raises(
        feedline.DataError, match=r"from 0\.500 s to 1\.300 s is not in the file, which has 1\.000 s.*0\.wav"
    ):
        data[1]
    with pytest.raises(feedline.ConfigError, match="no utterances"):
        feedline.open(lines(tmp_path / "b.jsonl", []), format="nemo")
    with pytest.raises(feedline.StorageError, match=r"missing\.jsonl"):
        feedline.open(tmp_path / "missing.jsonl", format="nemo")


def test_columns_may_have_any_name(tmp_path: Path, wavs: list[Path]) -> None:
    """The manifest's file decides, also if a column is called audio."""
    names = {name: name for name in ("audio", "self", "begin", "path", "duration")}
    row = {"audio_filepath": str(wavs[0]), "text": "x", **names}
    data = feedline.open(lines(tmp_path / "a.jsonl", [row | {"duration": 1.0}]), fields=("audio", "self", "path"))
    numpy.testing.assert_array_equal(data[0].audio, part(0, 0, 1))
    assert (data[0].self, data[0].path) == ("self", "path")
    write_wav(tmp_path / "clips/a.wav", signal(1.0, seed=0))
    header = "client_id\tpath\tsentence\taudio\tduration\tself\n"
    (tmp_path / "train.tsv").write_text(header + "x\ta.wav\tOne.\tb.wav\t9\ts\n")
    data = feedline.open(tmp_path / "train.tsv", fields=("audio", "duration"))
    numpy.testing.assert_array_equal(data[0].audio, part(0, 0, 1))
    assert data[0].duration == "9"


def test_damaged_gzip_is_named(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(b"".join(b'{"audio_filepath": "%d.wav"}\n' % i for i in range(500))))
    packed[30:40] = bytes(10)
    (tmp_path / "a.jsonl.gz").write_bytes(packed)
    with pytest.raises(feedline.DataError, match=r"a\.jsonl\.gz: damaged"):
        feedline.open(tmp_path / "a.jsonl.gz", format="nemo")


def test_recordings_of_kaldi_are_separated_by_any_white_space(tmp_path: Path, wavs: list[Path]) -> None:
    (tmp_path / "wav.scp").write_text(f"a  {wavs[0]}\t\nb\t{wavs[1]} \n c {wavs[2]}\n")
    data = feedline.open(tmp_path, fields=("audio", "key"))
    assert [data[i].key for i in range(3)] == ["a", "b", "c"]
    numpy.testing.assert_array_equal(data[2].audio, part(2, 0, 1))
    (tmp_path / "wav.scp").write_text(f"a {wavs[0]}\na {wavs[1]}\n")
    with pytest.raises(feedline.DataError, match=r"wav\.scp, line 2: the key 'a' is in an earlier line"):
        feedline.open(tmp_path)


def test_several_manifests_are_one_dataset(tmp_path: Path, wavs: list[Path]) -> None:
    rows = [{"audio_filepath": str(wavs[i]), "offset": 0.1 * i, "duration": 0.2, "text": str(i)} for i in range(3)]
    paths = [
        lines(tmp_path / "a0.jsonl", rows[:1]),
        lines(tmp_path / "a1.jsonl", [row | {"lang": "de"} for row in rows[1:]]),
    ]
    for source in (paths, "::".join(map(str, paths)), str(tmp_path / "a*.jsonl"), str(tmp_path / "a{0,1}.jsonl")):
        data = feedline.open(source, fields=("audio", "text", "lang"))
        assert [(data[i].text, data[i].lang) for i in range(3)] == [("0", ""), ("1", "de"), ("2", "de")]
        numpy.testing.assert_array_equal(data[2].audio, part(2, 0.2, 0.4))
    assert pickle.loads(pickle.dumps(feedline.open(paths)))[1].text == "1"
    folders = []
    for i in range(2):
        folders.append(tmp_path / f"kaldi{i}")
        folders[i].mkdir()
        (folders[i] / "wav.scp").write_text(f"u{i} {wavs[i]}\n")
    data = feedline.open(folders)
    numpy.testing.assert_array_equal(data[1].audio, part(1, 0, 1))


def test_manifests_are_never_read_as_tables_of_whole_files(tmp_path: Path, wavs: list[Path]) -> None:
    path = lines(tmp_path / "a.jsonl", [{"audio_filepath": str(wavs[0]), "offset": 0.5, "duration": 0.2, "text": "x"}])
    with pytest.raises(feedline.ConfigError, match="lines choose parts of files by 'offset'"):
        feedline.open(path.as_uri())
    with pytest.raises(feedline.ConfigError, match="a manifest must be a local file or folder"):
        feedline.open(path.as_uri(), format="nemo")
    with pytest.raises(feedline.ConfigError, match="source must be a path or a list of shards"):
        feedline.open([1], format="nemo")
    assert feedline.open(path.as_uri(), format="table", fields="audio_filepath")[0].audio_filepath.shape == (1, RATE)


def test_verbs_open_manifests(tmp_path: Path, wavs: list[Path]) -> None:
    write_wav(tmp_path / "clips/a.wav", signal(0.5))
    table = tmp_path / "train.tsv"
    table.write_text("client_id\tpath\tsentence\nx\ta.wav\tOne.\n")
    assert feedline.inspect(table).samples == 1
    assert not feedline.inspect(table).findings
    report = verify(table, decode=True)
    assert report.samples == 1
    assert report.sound
    pack(table, tmp_path / "packed")
    packed = feedline.open(tmp_path / "packed", fields=("audio.wav", "text.txt"))
    numpy.testing.assert_array_equal(packed[0][0], floats(signal(0.5)))
    assert packed[0][1] == "One."


def test_parts_of_files_are_not_packed_as_whole_files(tmp_path: Path, wavs: list[Path]) -> None:
    whole = {"audio_filepath": str(wavs[0]), "duration": 1.0, "text": "x"}
    for rows in ([whole | {"offset": 0.5}], [whole | {"duration": 0.5}, whole]):
        path = lines(tmp_path / "a.jsonl", rows)
        data = feedline.open(path)
        for attempt in (data.pack, data[:1].pack, feedline.mix([data, data]).pack, functools.partial(pack, path)):
            with pytest.raises(feedline.ConfigError, match=r"pack: the samples of .* are parts of files"):
                attempt(tmp_path / "packed")
    feedline.open(lines(path, [whole])).pack(tmp_path / "packed")


def test_rounded_durations_do_not_cut_files(tmp_path: Path, wavs: list[Path]) -> None:
    whole = part(0, 0, 1.0)
    folder = tmp_path / "kaldi"
    folder.mkdir()
    (folder / "wav.scp").write_text(f"a {wavs[0]}\n")
    (folder / "utt2dur").write_text("a 0.75\n")
    numpy.testing.assert_array_equal(feedline.open(folder)[0].audio, whole)
    write_wav(tmp_path / "clips/a.wav", signal(1.0, seed=0))
    (tmp_path / "train.tsv").write_text("client_id\tpath\tsentence\nx\ta.wav\tOne.\n")
    (tmp_path / "clip_durations.tsv").write_text("clip\tduration[ms]\na.wav\t250\n")
    numpy.testing.assert_array_equal(feedline.open(tmp_path / "train.tsv")[0].audio, whole)


def test_texts_of_a_cut_are_joined(tmp_path: Path, wavs: list[Path]) -> None:
    said = [{"text": "one", "speaker": "a"}, {"text": ""}, {"text": "two", "speaker": "b"}]
    path = lines(tmp_path / "cuts.jsonl", [cut(0, supervisions=said)])
    sample = feedline.open(path, fields=("text", "speaker", "key"))[0]
    assert tuple(sample) == ("one two", "a", "cut0")


def test_librispeech_is_sorted(tmp_path: Path) -> None:
    for speaker in (5, 3, 8, 1, 9, 2, 7):
        folder = tmp_path / f"{speaker}" / "1"
        folder.mkdir(parents=True)
        (folder / f"{speaker}-1.trans.txt").write_text(f"{speaker}-1-0000 WORDS\n")
    data = feedline.open(tmp_path, fields="speaker")
    assert [data[i].speaker for i in range(7)] == ["1", "2", "3", "5", "7", "8", "9"]


def test_paths_may_be_relative_to_the_working_directory(
    tmp_path: Path, wavs: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lists").mkdir()
    row = {"audio_filepath": "wavs/1.wav", "offset": None, "duration": None, "text": "x"}
    path = lines(tmp_path / "lists/a.jsonl", [row])
    monkeypatch.chdir(tmp_path)
    numpy.testing.assert_array_equal(feedline.open(path)[0].audio, part(1, 0, 1))


def _stereo(path: Path) -> tuple[Path, Any]:
    both = numpy.concatenate([signal(1.0, seed=7), signal(1.0, seed=8)], 1)
    return write_wav(path, both), floats(both)


def test_channels_of_kaldis_segments(tmp_path: Path) -> None:
    _, both = _stereo(tmp_path / "a.wav")
    (tmp_path / "wav.scp").write_text("rec a.wav\n")
    (tmp_path / "segments").write_text("u0 rec 0.1 0.6 1\nu1 rec 0.5 -1 0\nu2 rec 0 0.25 1\n")
    data = feedline.open(tmp_path)
    parts = [both[1:, 1600:9600], both[:1, 8000:], both[1:, :4000]]
    for form in (data, data.audio(RATE), data.audio(mono=False)):
        for index, part_of in enumerate(parts):
            numpy.testing.assert_array_equal(form[index].audio, part_of)
    (batch,) = data.loader(3, output="numpy", num_workers=2)
    numpy.testing.assert_array_equal(batch.audio_length, [8000, 8000, 4000])
    numpy.testing.assert_array_equal(batch.audio[0], parts[0])
    integers = data.audio(dtype="int16")[0].audio
    numpy.testing.assert_array_equal(integers / 32768, parts[0])
    resampled = data.audio(8000)[1].audio
    write_wav(tmp_path / "only/0.wav", signal(1.0, seed=7)[8000:])
    numpy.testing.assert_array_equal(resampled, feedline.open(tmp_path / "only").audio(8000)[0].audio)
    with pytest.raises(feedline.ConfigError, match="are parts of files"):
        pack(tmp_path, tmp_path / "out")
    first = feedline.open(tmp_path).fingerprint
    (tmp_path / "segments").write_text("u0 rec 0.1 0.6 0\nu1 rec 0.5 -1 0\nu2 rec 0 0.25 1\n")
    assert feedline.open(tmp_path).fingerprint != first
    (tmp_path / "segments").write_text("u0 rec 0.1 0.6 2\n")
    with pytest.raises(feedline.DataError, match="the sample is channel 2 of the file, which has 2 channels"):
        feedline.open(tmp_path)[0]
    for channel in ("A", "-1", "99999999999"):
        (tmp_path / "segments").write_text(f"u0 rec 0.1 0.6 {channel}\n")
        with pytest.raises(feedline.DataError, match=rf"line 1: the channel is '{channel}', not a number from 0"):
            feedline.open(tmp_path)


def test_a_cut_may_be_one_channel(tmp_path: Path) -> None:
    path, both = _stereo(tmp_path / "a.wav")
    recording = {"sources": [{"type": "file", "source": str(path), "channels": [0, 1]}]}

    def cut(channel: Any) -> dict[str, Any]:
        return {"id": "x", "start": 0, "duration": 1, "recording": recording, "channel": channel}

    rows = [cut(1), cut([0]), cut(0)]
    data = feedline.open(lines(tmp_path / "cuts.jsonl", rows)).audio(mono=False)
    for index, channel in enumerate((1, 0, 0)):
        numpy.testing.assert_array_equal(data[index].audio, both[channel : channel + 1])
    whole = feedline.open(lines(tmp_path / "cuts.jsonl", [cut([0, 1])])).audio(mono=False)
    numpy.testing.assert_array_equal(whole[0].audio, both)
    with pytest.raises(feedline.ConfigError, match=r"the cut has the channels \[2\] of \[0, 1\]"):
        feedline.open(lines(tmp_path / "cuts.jsonl", [cut(2)]))
    recording["sources"][0]["channels"] = 2
    with pytest.raises(feedline.DataError, match=r"line 1: the channels of the source are 2, not a list"):
        feedline.open(lines(tmp_path / "cuts.jsonl", [cut(1)]))


def test_columns_of_numbers_in_nemo(tmp_path: Path, wavs: list[Path]) -> None:
    extra = [
        {"snr": 1.5, "take": 3, "ok": True, "lang": "en"},
        {"snr": 2, "take": 4, "ok": False},
        {"take": 5, "ok": True},
    ]
    rows = [{"audio_filepath": str(wav), "text": "a", **more} for wav, more in zip(wavs, extra, strict=True)]
    data = feedline.open(lines(tmp_path / "a.jsonl", rows), fields=("audio", "snr", "take", "ok", "lang"))
    (batch,) = data.loader(3, output="numpy")
    numpy.testing.assert_array_equal(batch.snr, [1.5, 2, numpy.nan])
    assert batch.snr.dtype == numpy.float64 and batch.take.dtype == numpy.int64
    assert batch.take.tolist() == [3, 4, 5] and batch.ok.tolist() == [1, 0, 1]
    assert list(batch.lang) == ["en", "", ""]
    rows[0]["id"] = 2**53 + 1
    with pytest.raises(feedline.ConfigError, match=r"row 1 of the column 'id' is '' \(str\), but row 0 is 900"):
        feedline.open(lines(tmp_path / "a.jsonl", rows), fields=("audio", "id"))
    assert len(feedline.open(lines(tmp_path / "a.jsonl", rows))) == 3
    for row in rows:
        row["id"] = 2**53 + 1
    assert feedline.open(lines(tmp_path / "a.jsonl", rows), fields=("audio", "id"))[0].id == 2**53 + 1
