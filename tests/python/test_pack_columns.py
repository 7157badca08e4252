# SPDX-License-Identifier: Apache-2.0
"""`pack(to="tfrecord")`, `"lmdb"`, `"parquet"` and `"wds"`: the same samples, and files that other programs can
read.
"""

from __future__ import annotations

import io
import json
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import made_data
import made_tfrecords
import numpy as np
import pytest

import feedline
from feedline import _engine, packing
from feedline.pack.tfrecord_shard import masked_crc32c

PHOTO = made_data.encoded(made_data.photo(1, 40, 30))
PNG = made_data.encoded(made_data.photo(2, 12, 9), "PNG")
FORMATS = ["wds", "mds", "tfrecord", "lmdb", "parquet"]
NEW = FORMATS[2:]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def skip_without_writer(to: str) -> None:
    if to == "parquet":
        pytest.importorskip("pyarrow", reason="pyarrow, which writes Parquet, is not installed")


def npy(array: Any) -> bytes:
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def tar(path: Path, samples: list[dict[str, bytes]]) -> Path:
    members = [(f"{i:03d}.{end}", data) for i, sample in enumerate(samples) for end, data in sample.items()]
    return made_data.write_tar(path, members)


def opened(report: packing.Report) -> feedline.Dataset:
    return feedline.open(report.pattern, fields=tuple(report.fields) or None)


def stored_bytes(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


@pytest.mark.parametrize("to", ["wds", "tfrecord", "parquet"])
def test_a_folder_that_pack_has_not_finished_is_refused(to: str, folder: Path, tmp_path: Path) -> None:
    skip_without_writer(to)

    def interrupt(done: int, total: int) -> None:
        if done == total:
            raise KeyboardInterrupt

    options: Any = {"to": to, "samples_per_shard": 8, "num_workers": 1}
    with pytest.raises(KeyboardInterrupt):
        packing.pack(folder, tmp_path / "out", progress=interrupt, **options)
    with pytest.raises(feedline.ConfigError, match="did not finish"):
        feedline.open(tmp_path / "out")
    with pytest.raises(feedline.ConfigError, match="did not finish"):
        feedline.inspect(tmp_path / "out")
    packing.pack(folder, tmp_path / "out", **options)
    assert len(feedline.open(tmp_path / "out")) == 21


@pytest.mark.parametrize("to", FORMATS)
def test_a_folder_keeps_its_pixels_labels_and_order(to: str, folder: Path, tmp_path: Path) -> None:
    skip_without_writer(to)
    report = packing.pack(folder, tmp_path / "out", to=to, samples_per_shard=8)  # type: ignore[arg-type]
    assert (report.samples, report.shards, report.skipped) == (21, 3, [])
    packed, original = opened(report), feedline.open(folder)
    assert packed.format == {"wds": "tar"}.get(to, to)
    assert [packed.encoded(i) for i in range(21)] == [original.encoded(i) for i in range(21)]
    for i in range(21):
        assert np.array_equal(packed[i].image, original[i].image), i
        assert int(packed[i].label) == int(original[i].label), i
    if to in ("wds", "mds", "parquet"):
        assert packed.classes == original.classes
    if to in ("wds", "lmdb"):
        assert [packed.key(i) for i in range(21)] == [original.key(i).removesuffix(".jpg") for i in range(21)]


@pytest.mark.parametrize("to", NEW)
def test_every_kind_of_file_comes_back(to: str, tmp_path: Path) -> None:
    skip_without_writer(to)
    boxes = [np.arange(8, dtype="float32").reshape(2, 4), np.zeros((0, 4), "float32"), np.ones((300, 4), "float32")]
    samples = [
        {
            "jpg" if i else "png": PHOTO if i else PNG,
            "cls": b"-7" if i else b"3\n",
            "txt": "größe".encode(),
            "meta.json": b'{"k": [1]}',
            "boxes.npy": npy(boxes[i]),
            "ids.npy": npy(np.array([-(2**63), 2**63 - 1] * i, "int64")),
            "reals.npy": npy(np.array([0.1] * (i + 1), "float32")),
            "doubles.npy": npy(np.array([0.1] * (i + 1), "float64")),
            "cube.npy": npy(np.arange(8 * (i + 1), dtype="uint8").reshape(2, 2, -1)),
            "scale.npy": npy(np.float32(i / 2)),
            "precise.npy": npy(np.float64(i / 3)),
            "mp4": b"\x00\xff" * i,
        }
        for i in range(3)
    ]
    report = packing.pack(tar(tmp_path / "in.tar", samples), tmp_path / "out", to=to)  # type: ignore[arg-type]
    arrays = ("boxes", "ids", "reals", "doubles", "cube")
    dataset = opened(report).collate("list", fields=("image", *arrays))
    assert [dataset.encoded(i) for i in range(3)] == [PNG, PHOTO, PHOTO]
    for i, sample in enumerate(samples):
        one = dataset[i]._asdict()
        assert (int(one["label"]), one["txt"], one["mp4"]) == (-7 if i else 3, "größe", sample["mp4"])
        assert one["meta"] == {"k": [1]}
        assert (float(one["scale"]), float(one["precise"])) == (i / 2, i / 3)
        for name in arrays:
            wanted = np.load(io.BytesIO(sample[f"{name}.npy"]))
            assert (one[name].dtype, one[name].shape) == (wanted.dtype, wanted.shape), (name, i)
            assert np.array_equal(one[name], wanted), (name, i)


@pytest.mark.parametrize("to", FORMATS)
@pytest.mark.parametrize("end", ["", "/"])
def test_the_folder_opens_by_its_name(to: str, end: str, folder: Path, tmp_path: Path) -> None:
    skip_without_writer(to)
    out = tmp_path / "out"
    packing.pack(folder, out, to=to, samples_per_shard=8)  # type: ignore[arg-type]
    (out / "unnamed.lmdb").write_bytes(b"not listed")
    packed, original = feedline.open(f"{out}{end}"), feedline.open(folder)
    for i in range(21):
        assert np.array_equal(packed[i].image, original[i].image), i
        assert int(packed[i].label) == int(original[i].label), i
    assert feedline.inspect(f"{out}{end}").samples == 21


@pytest.mark.parametrize("to", NEW)
@pytest.mark.parametrize("fields", [("txt", "bin"), ("txt", "id")])
def test_the_folder_of_samples_without_images_opens_by_its_name(
    to: str, fields: tuple[str, ...], tmp_path: Path
) -> None:
    skip_without_writer(to)
    samples = [{"txt": f"text {i}".encode(), "bin": bytes([255, i]), "id": b"%d" % i} for i in range(5)]
    made = [{name: sample[name] for name in fields} for sample in samples]
    packing.pack(tar(tmp_path / "x.tar", made), tmp_path / "out", to=to, fields=fields)  # type: ignore[arg-type]
    packed, expected = feedline.open(tmp_path / "out"), feedline.open(tmp_path / "x.tar", fields=fields)
    for i in range(5):
        assert {name: getattr(packed[i], name) for name in packed[i]._fields} == expected[i]._asdict()
    inspected = feedline.inspect(tmp_path / "out")
    assert sorted(inspected.fields) == sorted(fields) and not inspected.findings


@pytest.mark.parametrize("to", FORMATS)
def test_a_folder_whose_packing_was_interrupted_is_not_opened(to: str, folder: Path, tmp_path: Path) -> None:
    skip_without_writer(to)
    done: list[int] = []

    def stop(samples: int, _: int) -> None:
        done.append(samples)
        if samples > 8:
            raise KeyboardInterrupt

    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        packing.pack(folder, out, to=to, samples_per_shard=4, progress=stop)  # type: ignore[arg-type]
    assert [path for path in out.iterdir() if path.name.startswith(("0000", "shard"))]
    with pytest.raises(feedline.Error, match="did not finish" if to != "mds" else "index"):
        feedline.open(out)


@pytest.mark.parametrize("to", NEW)
@pytest.mark.parametrize(
    ("second", "said"),
    [
        ({"jpg": PHOTO, "n.npy": npy(np.zeros(2, "int64"))}, "lacks label"),
        ({"jpg": PHOTO, "cls": b"1", "n.npy": npy(np.zeros(2, "int64")), "txt": b""}, "also has txt"),
    ],
)
def test_a_sample_with_other_columns_is_an_error_or_left_out(
    to: str, second: dict[str, bytes], said: str, tmp_path: Path
) -> None:
    skip_without_writer(to)
    first = {"jpg": PHOTO, "cls": b"1", "n.npy": npy(np.zeros(2, "int64"))}
    source = tar(tmp_path / "in.tar", [first, second, first])
    with pytest.raises(feedline.DataError, match=f"need the same columns.* sample 001 .*{said}"):
        packing.pack(source, tmp_path / "raised", to=to)  # type: ignore[arg-type]
    report = packing.pack(source, tmp_path / "out", to=to, on_error="skip")  # type: ignore[arg-type]
    assert ([one.key for one in report.skipped], len(opened(report))) == (["001"], 2)


@pytest.mark.parametrize("to", ["tfrecord", "parquet"])
@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("cls", b"cat", "'label' .int. cannot hold the value of sample 001"),
        ("cls", b"9223372036854775808", "more than 64 bits"),
        ("txt", b"\xff", "'txt' .str. cannot hold"),
        ("n.npy", npy(np.zeros(2, "int32")), "int32 with 1 dimensions, but the first sample has int64 with 1"),
        ("n.npy", npy(np.zeros((2, 2), "int64")), "int64 with 2 dimensions"),
        ("n.npy", b"\x93NUMPY", "cannot hold"),
    ],
)
def test_a_value_that_does_not_fit_is_an_error(to: str, name: str, value: bytes, said: str, tmp_path: Path) -> None:
    skip_without_writer(to)
    first = {"jpg": PHOTO, "cls": b"1", "txt": b"a", "n.npy": npy(np.zeros(2, "int64"))}
    with pytest.raises(feedline.DataError, match=said):
        packing.pack(tar(tmp_path / "in.tar", [first, first | {name: value}]), tmp_path / "out", to=to)  # type: ignore[arg-type]


def test_rows_of_another_length_do_not_fit_in_parquet(tmp_path: Path) -> None:
    skip_without_writer("parquet")
    samples = [{"jpg": PHOTO, "boxes.npy": npy(np.zeros((2, extent), "float32"))} for extent in (4, 5)]
    with pytest.raises(feedline.DataError, match="rows of 5 numbers, but those of the first sample have 4"):
        packing.pack(tar(tmp_path / "in.tar", samples), tmp_path / "out", to="parquet")


@pytest.mark.parametrize("to", NEW)
def test_interrupted_it_resumes_to_the_same_bytes(to: str, folder: Path, tmp_path: Path) -> None:
    skip_without_writer(to)
    packing.pack(folder, tmp_path / "whole", to=to, samples_per_shard=4)  # type: ignore[arg-type]
    wanted = stored_bytes(tmp_path / "whole")
    assert sum(name.startswith("00000") for name in wanted) == 6

    class Stop(Exception):
        pass

    def stop(done: int, total: int) -> None:
        if done == 10:
            raise Stop

    with pytest.raises(Stop):
        packing.pack(folder, tmp_path / "out", to=to, samples_per_shard=4, progress=stop)  # type: ignore[arg-type]
    assert not list((tmp_path / "out").glob("*.unfinished"))
    again = packing.pack(folder, tmp_path / "out", to=to, samples_per_shard=4)  # type: ignore[arg-type]
    assert (again.shards, again.shards_found) == (6, 2)
    assert stored_bytes(tmp_path / "out") == wanted
    first = sorted((tmp_path / "out").glob("000000.*"))[0]
    first.write_bytes(first.read_bytes()[:-1] + b"?")
    with pytest.raises(feedline.DataError, match=f"{first.name} has changed since it was packed"):
        packing.pack(folder, tmp_path / "out", to=to, samples_per_shard=4)  # type: ignore[arg-type]


@pytest.mark.parametrize("to", NEW)
def test_ranges_have_the_same_bytes(to: str, folder: Path, tmp_path: Path) -> None:
    skip_without_writer(to)
    options: dict[str, Any] = {"to": to, "samples_per_shard": 8}
    packing.pack(folder, tmp_path / "whole", **options)
    for span in ((2, 3), (0, 2)):
        packing.pack(folder, tmp_path / "out", shard_range=span, **options)
    merged = packing.merge_index(tmp_path / "out")
    assert (merged.shards, merged.samples) == (3, 21)
    assert stored_bytes(tmp_path / "out") == stored_bytes(tmp_path / "whole")
    if to == "tfrecord":
        with pytest.raises(feedline.ConfigError, match="requires samples_per_shard"):
            packing.pack(folder, tmp_path / "sized", to="tfrecord", shard_range=(0, 1))
    else:
        assert packing.shard_count(folder, to=to, shard_bytes=20_000) > 1  # type: ignore[arg-type]


def test_planned_sizes_of_lmdb_are_those_of_its_shards(folder: Path, tmp_path: Path) -> None:
    count = packing.shard_count(folder, to="lmdb", shard_bytes=40_000)
    assert packing.pack(folder, tmp_path / "out", to="lmdb", shard_bytes=40_000).shards == count > 1


def test_keys_are_kept_in_a_column(folder: Path, tmp_path: Path) -> None:
    report = packing.pack(folder, tmp_path / "out", to="tfrecord", keep_keys=True)
    original = feedline.open(folder)
    dataset = feedline.open(report.pattern, fields=("key=__key__:text",))
    assert [dataset[i].key for i in range(21)] == [original.key(i).removesuffix(".jpg") for i in range(21)]


def test_names_that_differ_by_extension_only_have_different_keys_in_lmdb(tmp_path: Path) -> None:
    (tmp_path / "in/a").mkdir(parents=True)
    for name, data in (("x.jpg", PHOTO), ("x.png", PNG), ("y.jpg", PHOTO)):
        (tmp_path / "in/a" / name).write_bytes(data)
    packed = opened(packing.pack(tmp_path / "in", tmp_path / "out", to="lmdb"))
    assert [packed.encoded(i) for i in range(3)] == [PHOTO, PNG, PHOTO]
    assert packed.key(0) != packed.key(1)


def test_a_key_that_lmdb_cannot_hold_is_an_error(tmp_path: Path) -> None:
    photo = tmp_path / "in" / ("a" * 250) / ("b" * 250) / f"{'k' * 20}.jpg"
    photo.parent.mkdir(parents=True)
    photo.write_bytes(PHOTO)
    with pytest.raises(feedline.DataError, match="has 528 bytes, but LMDB allows 511; shorten the name"):
        packing.pack(tmp_path / "in", tmp_path / "out", to="lmdb")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"to": "lmdb", "shuffle": True}, "LMDB sorts samples by key, so shuffle has no effect"),
        ({"to": "tfrecord", "compression": "gz"}, 'compression and hashes require to="mds"'),
        ({"to": "lmdb", "keep_keys": True}, 'keep_keys requires to="mds", "tfrecord" or "parquet"'),
    ],
)
def test_wrong_arguments_leave_no_folder(folder: Path, tmp_path: Path, arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(feedline.ConfigError, match=said):
        packing.pack(folder, tmp_path / "out", **arguments)
    assert not (tmp_path / "out").exists()


def test_parquet_without_pyarrow_says_what_to_install(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(feedline.ConfigError, match="needs the package pyarrow: pip install pyarrow"):
        packing.pack(folder, tmp_path / "out", to="parquet")


def test_the_command_line_names_the_fields(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("click", reason="the command line is not installed")
    from feedline.cli.root import run

    assert run(["pack", str(folder), str(tmp_path / "out"), "--to", "lmdb"]) == 0
    call = f"feedline.open(\"{tmp_path}/out/000000.lmdb\", fields=['{{key}}.image', '{{key}}.label'])"
    assert call in capsys.readouterr().out.replace("\n", "").replace("fields=['", "fields=['")


# ---- readers of other programs


def test_checksums_are_those_of_the_specification() -> None:
    assert _engine.crc32c(b"123456789") == 0xE3069283  # the check value of CRC-32C
    data = np.random.default_rng(1).bytes(100_003)
    for size in (0, 1, 7, 255, 256, 257, 511, 512, 513, 4096, 65_537, len(data)):
        assert masked_crc32c(data[:size]) == made_tfrecords.masked_crc(data[:size]), size


def records(path: Path) -> Iterator[bytes]:
    """Returns records as the specification defines them, and checks both checksums."""
    data, at = path.read_bytes(), 0
    while at < len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        record = data[at + 12 : at + 12 + length]
        assert struct.unpack_from("<I", data, at + 8)[0] == made_tfrecords.masked_crc(data[at : at + 8])
        assert struct.unpack_from("<I", data, at + 12 + length)[0] == made_tfrecords.masked_crc(record)
        yield record
        at += 16 + length
    assert at == len(data)


def test_records_are_those_of_another_writer(folder: Path, tmp_path: Path) -> None:
    """The messages equal those of an independent writer, whose files TensorFlow reads (tests/python/originals)."""
    packing.pack(folder, tmp_path / "out", to="tfrecord")
    original = feedline.open(folder)
    assert list(records(tmp_path / "out/000000.tfrecord")) == [
        made_tfrecords.example({"image": original.encoded(i), "label": int(original[i].label)}) for i in range(21)
    ]


def test_the_tfrecord_package_reads_the_records(folder: Path, tmp_path: Path) -> None:
    reader = pytest.importorskip("tfrecord.reader", reason="the tfrecord package is not installed")
    packing.pack(folder, tmp_path / "out", to="tfrecord")
    original = feedline.open(folder)
    path = str(tmp_path / "out/000000.tfrecord")
    rows = list(reader.tfrecord_loader(path, None, {"image": "byte", "label": "int"}))
    assert [bytes(row["image"]) for row in rows] == [original.encoded(i) for i in range(21)]
    assert [int(row["label"][0]) for row in rows] == [int(original[i].label) for i in range(21)]


def test_pyarrow_reads_the_rows(folder: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    packing.pack(folder, tmp_path / "out", to="parquet")
    table = parquet.read_table(tmp_path / "out/000000.parquet")
    original = feedline.open(folder)
    assert [row["bytes"] for row in table["image"].to_pylist()] == [original.encoded(i) for i in range(21)]
    assert table["label"].to_pylist() == [int(original[i].label) for i in range(21)]
    features = json.loads(table.schema.metadata[b"huggingface"])["info"]["features"]
    assert features == {
        "image": {"_type": "Image"}, "label": {"names": original.classes, "_type": "ClassLabel"},
    }  # fmt: skip


def test_row_groups_are_bounded(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    monkeypatch.setattr("feedline.pack.parquet_shard._GROUP_BYTES", 10_000)
    report = packing.pack(folder, tmp_path / "out", to="parquet")
    groups = parquet.ParquetFile(tmp_path / "out/000000.parquet").metadata
    assert groups.num_row_groups > 2 and groups.num_rows == 21
    assert [opened(report).encoded(i) for i in range(21)] == [feedline.open(folder).encoded(i) for i in range(21)]


def test_webdataset_reads_the_shards(folder: Path, tmp_path: Path) -> None:
    webdataset = pytest.importorskip("webdataset", reason="webdataset is not installed")
    report = packing.pack(folder, tmp_path / "out", to="wds", samples_per_shard=8)
    original = feedline.open(folder)
    rows = list(webdataset.WebDataset(report.pattern, shardshuffle=False))
    assert [row["jpg"] for row in rows] == [original.encoded(i) for i in range(21)]
    assert [int(row["cls"]) for row in rows] == [int(original[i].label) for i in range(21)]


def test_liblmdb_reads_tall_trees(tmp_path: Path) -> None:
    lmdb = pytest.importorskip("lmdb", reason="lmdb is not installed; tests/python/originals reads with it")
    rng = np.random.default_rng(2)
    entries = {f"{i:06d}{'k' * int(rng.integers(0, 400))}": rng.bytes(int(rng.integers(0, 5000))) for i in range(3000)}
    from feedline.pack.lmdb_shard import LmdbFile

    names = list(entries)
    rng.shuffle(names)
    file = LmdbFile(tmp_path / "x.lmdb")
    file.take([(name, entries[name]) for name in names])
    file.commit()
    with lmdb.open(str(tmp_path / "x.lmdb"), subdir=False, readonly=True, lock=False) as env, env.begin() as txn:
        assert txn.stat()["entries"] == 3000 and txn.stat()["depth"] > 2
        assert dict(txn.cursor()) == {name.encode(): data for name, data in entries.items()}
    shutil.copy(tmp_path / "x.lmdb", tmp_path / "y.lmdb")
    with lmdb.open(str(tmp_path / "y.lmdb"), subdir=False, map_size=1 << 28) as env, env.begin(write=True) as txn:
        txn.put(b"more", b"1")
        assert txn.get(names[0].encode()) == entries[names[0]]
