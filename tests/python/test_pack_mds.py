# SPDX-License-Identifier: Apache-2.0
"""`pack(to="mds")`: the same samples as columns of MosaicML streaming's shards."""

from __future__ import annotations

import hashlib
import io
import itertools
import json
import shutil
import struct
from pathlib import Path
from typing import Any

import made_data
import numpy as np
import pytest

import feedline
from feedline import packing

PHOTO = made_data.encoded(made_data.photo(1, 40, 30))
PNG = made_data.encoded(made_data.photo(2, 12, 9), "PNG")
MASKS = [made_data.encoded(made_data.photo(3, *size)[..., 0], "PNG") for size in ((12, 9), (40, 30), (40, 30))]


def contents(folder: Path) -> dict[str, bytes]:
    """Returns all files, and the manifest without the path of the source."""
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    manifest = json.loads(files.pop("feedline-pack.json"))
    del manifest["source"]
    return files | {"manifest": json.dumps(manifest).encode()}


def npy(array: Any) -> bytes:
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def tar(path: Path, samples: list[dict[str, bytes]]) -> Path:
    members = [(f"{i:03d}.{end}", data) for i, sample in enumerate(samples) for end, data in sample.items()]
    return made_data.write_tar(path, members)


def values(folder: Path) -> list[dict[str, bytes]]:
    """Returns the stored values of all samples, parsed here according to streaming's writer."""
    found = []
    for entry in json.loads((folder / "index.json").read_text())["shards"]:
        raw = (folder / entry["raw_data"]["basename"]).read_bytes()
        assert len(raw) == entry["raw_data"]["bytes"]
        (count,) = struct.unpack("<I", raw[:4])
        assert count == entry["samples"]
        offsets = struct.unpack(f"<{count + 1}I", raw[4 : 4 * count + 8])
        settings = json.loads(raw[4 * count + 8 : offsets[0]])
        assert settings == {name: entry[name] for name in settings}
        assert offsets[-1] == len(raw)
        assert entry["column_names"] == sorted(entry["column_names"])
        for begin, end in itertools.pairwise(offsets):
            at = begin + 4 * entry["column_sizes"].count(None)
            sizes = iter(struct.unpack(f"<{entry['column_sizes'].count(None)}I", raw[begin:at]))
            sample = {}
            for name, size in zip(entry["column_names"], entry["column_sizes"], strict=True):
                own = next(sizes) if size is None else size
                sample[name] = raw[at : at + own]
                at += own
            assert at == end
            found.append(sample)
    return found


def test_a_folder_keeps_its_samples_labels_classes_and_order(folder: Path, tmp_path: Path) -> None:
    report = packing.pack(folder, tmp_path / "out", to="mds", samples_per_shard=8)
    assert (report.samples, report.shards, report.pattern) == (21, 3, str(tmp_path / "out"))
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "feedline-pack.json", "index.json", *(f"shard.0000{i}.mds" for i in range(3)),
    ]  # fmt: skip
    packed, original = feedline.open(report.pattern), feedline.open(folder)
    assert (packed.format, packed.classes) == ("mds", original.classes)
    assert [packed.encoded(i) for i in range(21)] == [original.encoded(i) for i in range(21)]
    labels = [struct.unpack("<q", sample["label"])[0] for sample in values(tmp_path / "out")]
    assert labels == [0] * 7 + [1] * 7 + [2] * 7
    small = [int(dataset.resize((4, 4))[20][1]) for dataset in (packed, original)]
    assert small == [2, 2]
    assert feedline.inspect(report.pattern).findings == []
    joined = packing.pack(folder, tmp_path / "other", to="mds")
    assert feedline.open([report.pattern, joined.pattern]).classes == original.classes
    (tmp_path / "other/index.json").write_text((tmp_path / "other/index.json").read_text().replace("apple", "ash"))
    assert feedline.open([report.pattern, joined.pattern]).classes == []


def test_files_become_the_columns_that_their_names_specify(tmp_path: Path) -> None:
    boxes = [np.arange(8, dtype="float32").reshape(2, 4), np.zeros((0, 4), "float32"), np.ones((300, 4), "float32")]
    samples = [
        {
            "jpg" if i else "png": PHOTO if i else PNG,
            "cls": b"-7" if i else b"3\n",
            "seg.png": MASKS[i],
            "txt": "größe".encode(),
            "meta.a.json": b'{"k": [1]}',
            "boxes.npy": npy(boxes[i]),
            "turned.npy": npy(np.asfortranarray(np.arange(6, dtype=">i2").reshape(2, 3))),
            "scale.npy": npy(np.float32(i / 2)),
            "on.npy": npy(np.array([True, False])),
            "mp4": b"\x00\xff" * i,
        }
        for i in range(3)
    ]
    report = packing.pack(tar(tmp_path / "in.tar", samples), tmp_path / "out", to="mds", keep_keys=True)
    (entry,) = json.loads((tmp_path / "out/index.json").read_text())["shards"]
    assert dict(zip(entry["column_names"], entry["column_encodings"], strict=True)) == {
        "__key__": "str", "boxes": "ndarray", "image": "png", "label": "int", "meta.a": "json", "mp4": "bytes",
        "on": "bytes", "scale": "float32", "seg": "png", "turned": "ndarray", "txt": "str",
    }  # fmt: skip
    stored = values(tmp_path / "out")
    assert [sample["__key__"] for sample in stored] == [b"000", b"001", b"002"]
    assert stored[0]["boxes"] == b"\x22\x08\x02\x04" + boxes[0].tobytes()  # float32, two dimensions of one byte each
    assert stored[2]["boxes"] == b"\x22\x09\x2c\x01\x04\x00" + boxes[2].tobytes()  # of two bytes each
    fields = ("image", "label", "boxes", "turned", "scale", "txt", "meta.a", "on:array", "mp4", "seg")
    dataset = feedline.open(report.pattern, fields=fields).collate("list", fields=("boxes", "image", "seg"))
    for i, sample in enumerate(samples):
        one = dataset[i]._asdict()
        assert np.array_equal(one["boxes"], boxes[i]) and one["boxes"].dtype == boxes[i].dtype
        assert one["boxes"].shape == boxes[i].shape
        assert one["turned"].tolist() == [[0, 1, 2], [3, 4, 5]]
        assert one["on"].tolist() == [True, False]
        assert (one["txt"], one["meta_a"], one["mp4"]) == ("größe", {"k": [1]}, sample["mp4"])
        assert (int(one["label"]), float(one["scale"])) == (-7 if i else 3, i / 2)
    assert [feedline.open(report.pattern).encoded(i) for i in range(3)] == [PNG, PHOTO, PHOTO]


@pytest.mark.parametrize(
    ("second", "said"),
    [
        ({"jpg": PHOTO}, "lacks label"),
        ({"jpg": PHOTO, "cls": b"1", "txt": b""}, "also has txt"),
        ({"jpg": PHOTO, "png": PNG, "cls": b"1"}, "lacks image and also has jpg, png"),
        ({"jpg": PHOTO, "cls": b"cat"}, "'label' \\(int\\) cannot hold the value of sample 001"),
        ({"jpg": PHOTO, "cls": b"9223372036854775808"}, "more than 64 bits"),
    ],
)
def test_a_sample_with_other_columns_is_an_error_or_left_out(
    tmp_path: Path, second: dict[str, bytes], said: str
) -> None:
    source = tar(tmp_path / "in.tar", [{"jpg": PHOTO, "cls": b"1"}, second, {"jpg": PHOTO, "cls": b"2"}])
    with pytest.raises(feedline.DataError, match=said) as caught:
        packing.pack(source, tmp_path / "out", to="mds")
    assert caught.value.key == "001"
    assert not (tmp_path / "out/index.json").exists(), "streaming takes a folder with it for a whole dataset"
    report = packing.pack(source, tmp_path / "out", to="mds", on_error="skip")
    assert (report.samples, [skipped.key for skipped in report.skipped]) == (2, ["001"])
    assert len(feedline.open(report.pattern)) == 2


def test_the_columns_are_those_of_the_first_sample_whatever_the_order_and_the_range(
    folder: Path, tmp_path: Path
) -> None:
    arguments: dict[str, Any] = {"to": "mds", "shard_bytes": 16_000, "shuffle": True, "seed": 3, "compression": "gz:1"}
    whole = packing.pack(folder, tmp_path / "whole", **arguments)
    counted = {name: arguments[name] for name in arguments}
    shards = packing.shard_count(folder, **counted)
    assert whole.shards == shards > 3
    for first in range(0, shards, 2):
        packing.pack(folder, tmp_path / "parts", shard_range=(first, first + 2), **arguments)
    assert not (tmp_path / "parts/index.json").exists()
    merged = packing.merge_index(tmp_path / "parts")
    assert (merged.shards, merged.pattern) == (shards, str(tmp_path / "parts"))
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole")
    for entry in json.loads((tmp_path / "whole/index.json").read_text())["shards"]:
        assert entry["raw_data"]["bytes"] <= 16_000
        assert entry["size_limit"] == 16_000
    assert sorted(map(feedline.open(whole.pattern).encoded, range(21))) == sorted(
        map(feedline.open(folder).encoded, range(21))
    )


def test_ranges_by_size_take_sizes_that_are_known(tmp_path: Path) -> None:
    source = tar(tmp_path / "in.tar", [{"x.npy": npy(np.arange(i + 1))} for i in range(4)])
    with pytest.raises(feedline.ConfigError, match="arrays in 'x' are unknown; pass samples_per_shard"):
        packing.shard_count(source, fields="x.npy", to="mds")
    arguments: dict[str, Any] = {"fields": "x.npy", "to": "mds", "samples_per_shard": 2}
    for shards in ((0, 1), (1, 2)):
        packing.pack(source, tmp_path / "out", shard_range=shards, **arguments)
    assert packing.merge_index(tmp_path / "out").samples == 4
    assert [row[0].tolist() for row in map(feedline.open(tmp_path / "out").collate("list").__getitem__, range(4))] == [
        [0], [0, 1], [0, 1, 2], [0, 1, 2, 3],
    ]  # fmt: skip


@pytest.mark.parametrize("compression", ["gz", "bz2:1", "zstd", "zstd:19"])
def test_compressed_shards_have_their_checksums_and_damage_is_found(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compression: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    if compression.startswith("zstd"):
        pytest.importorskip("zstandard")
    hashes = ["sha1", "md5"]
    out = tmp_path / "out"
    packing.pack(folder, out, to="mds", samples_per_shard=11, compression=compression, hashes=hashes)
    end = compression.partition(":")[0]
    for number, entry in enumerate(json.loads((out / "index.json").read_text())["shards"]):
        assert (entry["compression"], entry["hashes"]) == (compression, ["md5", "sha1"])
        stored = (out / f"shard.{number:05d}.mds.{end}").read_bytes()
        said = entry["zip_data"]
        assert (said["basename"], said["bytes"]) == (f"shard.{number:05d}.mds.{end}", len(stored))
        assert said["hashes"] == {name: hashlib.new(name, stored).hexdigest() for name in hashes}
    packed, original = feedline.open(out), feedline.open(folder)
    assert [packed.encoded(i) for i in range(21)] == [original.encoded(i) for i in range(21)]
    plain = packing.pack(folder, tmp_path / "plain", to="mds", samples_per_shard=11, hashes=hashes)
    for one, other in zip(*(json.loads((at / "index.json").read_text())["shards"] for at in (out, tmp_path / "plain")),
                          strict=True):  # fmt: skip
        assert one["samples"] == other["samples"]
        assert one["raw_data"]["basename"] == other["raw_data"]["basename"]
    assert feedline.inspect(plain.pattern).findings == []
    shard = out / f"shard.00001.mds.{end}"
    damaged = bytearray(shard.read_bytes())
    damaged[len(damaged) // 2] ^= 4
    shard.write_bytes(damaged)
    assert "checksum_differs" in {finding.code for finding in feedline.inspect(out).findings}
    with pytest.raises(feedline.DataError, match=r"shard\.00001\.mds"):
        packing.pack(folder, out, to="mds", samples_per_shard=11, compression=compression, hashes=hashes)


def test_a_changed_byte_of_a_plain_shard_is_found(folder: Path, tmp_path: Path) -> None:
    packing.pack(folder, tmp_path / "out", to="mds")
    shard = tmp_path / "out/shard.00000.mds"
    damaged = bytearray(shard.read_bytes())
    damaged[-1] ^= 1
    shard.write_bytes(damaged)
    assert [finding.code for finding in feedline.inspect(tmp_path / "out").findings] == ["checksum_differs"]


def test_interrupted_anywhere_it_resumes_to_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    class Stop(Exception):
        pass

    arguments: dict[str, Any] = {"to": "mds", "samples_per_shard": 4, "num_workers": 1}
    packing.pack(folder, tmp_path / "whole", **arguments)
    for last in (0, 7, 21):

        def stop(done: int, total: int, last: int = last) -> None:
            if done == last:
                raise Stop

        out = tmp_path / f"out{last}"
        with pytest.raises(Stop):
            packing.pack(folder, out, progress=stop, **arguments)
        left = {path.name for path in out.iterdir()}
        assert "index.json" not in left and not any(name.endswith(".unfinished") for name in left)
        report = packing.pack(folder, out, **arguments)
        assert (report.samples, report.shards, report.shards_found) == (21, 6, last // 4)
        assert contents(out) == contents(tmp_path / "whole")
    shutil.copy(tmp_path / "whole/shard.00001.mds", tmp_path / "whole/shard.00000.mds")
    with pytest.raises(feedline.DataError, match=r"shard\.00000\.mds has changed since it was packed"):
        packing.pack(folder, tmp_path / "whole", **arguments)
    with pytest.raises(feedline.ConfigError, match="compression was None and is 'gz'"):
        packing.pack(folder, tmp_path / "out0", compression="gz", **arguments)


def test_mds_is_packed_as_tars_and_back(folder: Path, tmp_path: Path) -> None:
    there = packing.pack(folder, tmp_path / "mds", to="mds").pattern
    tars = packing.pack(there, tmp_path / "tars").pattern
    back = packing.pack(tars, tmp_path / "back", to="mds").pattern
    assert values(Path(back)) == values(Path(there))
    assert feedline.open(tars).classes == feedline.open(folder).classes


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"to": "zip"}, 'to must be "tar", "wds", "mds"'),
        ({"compression": "gz"}, 'require to="mds"'),
        ({"keep_keys": True}, 'requires to="mds", "tfrecord" or "parquet"'),
        ({"to": "mds", "compression": "lzma"}, "must be one of bz2, gz, zstd"),
        ({"to": "mds", "compression": "gz:10"}, "must be a number from 0 to 9"),
        ({"to": "mds", "compression": "gz:"}, "must be a number from 0 to 9"),
        ({"to": "mds", "hashes": ["crc"]}, "unknown checksum 'crc'"),
        ({"to": "mds", "hashes": ["shake_128"]}, "unknown checksum"),
        ({"to": "mds", "shard_bytes": "4 GiB"}, "smaller than 4 GiB"),
    ],
)
def test_wrong_arguments_leave_no_folder(folder: Path, tmp_path: Path, arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(feedline.ConfigError, match=said):
        packing.pack(folder, tmp_path / "out", **arguments)
    assert not (tmp_path / "out").exists()


def test_the_command_line_packs_it(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("click", reason="the command line is not installed")
    from feedline.cli.root import run

    options = ["--to", "mds", "--compression", "gz", "--hashes", "sha1, md5", "--keep-keys", "--shard-size", "20kB"]
    assert run(["pack", str(folder), str(tmp_path / "out"), *options]) == 0
    assert f'feedline.open("{tmp_path / "out"}")' in capsys.readouterr().out.replace("\n", "")
    entry = json.loads((tmp_path / "out/index.json").read_text())["shards"][0]
    assert (entry["compression"], entry["hashes"], entry["size_limit"]) == ("gz", ["md5", "sha1"], 20_000)
    assert entry["column_names"] == ["__key__", "image", "label"]
    assert run(["pack", str(folder), str(tmp_path / "out"), *options, "--count"]) == 0
    assert capsys.readouterr().out.strip() == str(len(json.loads((tmp_path / "out/index.json").read_text())["shards"]))
