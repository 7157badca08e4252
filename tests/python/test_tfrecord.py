# SPDX-License-Identifier: Apache-2.0
"""TFRecord files, written from the specification: the batches of the same photos in a folder, every kind of field,
errors that name damage or skip the sample if possible, and never a wrong value.
"""

from __future__ import annotations

import gzip
import os
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import made_tfrecords
import numpy as np
import pytest
from conftest import training
from made_tfrecords import example, record, sequence_example, write
from range_server import serving

import feedline
from feedline import packing, verifying

Epoch = list[tuple[bytes, ...]]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Decompressed copies of files are stored with the test's files."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def records(folder: Path, tmp_path: Path) -> list[Path]:
    """The photos of `folder` in three files, in the same order."""
    return made_tfrecords.of_folder(folder, tmp_path / "records", shards=3)


def epoch(dataset: feedline.Dataset, batch_size: int = 4, **options: Any) -> Epoch:
    with dataset.loader(batch_size, seed=3, output="numpy", **options) as loader:
        return [tuple(field.tobytes() for field in batch) for batch in loader]


def small(path: Path, count: int = 6) -> Path:
    return write(path, [example({"n": i, "text": f"text {i}"}) for i in range(count)])


def values(path: Path, **options: Any) -> list[tuple[int, str]]:
    dataset = feedline.open(path, fields=("n", "text"), **options)
    return [(int(dataset[i].n), dataset[i].text) for i in range(len(dataset))]


def test_gives_the_batches_of_the_same_photos_in_a_folder(folder: Path, records: list[Path]) -> None:
    wanted = training(feedline.open(folder))
    dataset = training(feedline.open(records))
    assert (dataset.format, len(dataset), list(dataset.schema)) == ("tfrecord", 21, ["image", "label"])
    for options in ({}, {"shuffle": True}, {"shuffle": True, "num_workers": 3}, {"rank": 1, "world_size": 2}):
        assert epoch(dataset, **options) == epoch(wanted, **options), options
    assert dataset[20].image.tobytes() == wanted[20].image.tobytes()


@pytest.mark.parametrize("name", ["braces", "joined", "one file"])
def test_sources_are_named_as_tars_are(records: list[Path], tmp_path: Path, name: str) -> None:
    whole = tmp_path / "whole.records"  # recognised by its content
    whole.write_bytes(b"".join(path.read_bytes() for path in records))
    source = {
        "braces": str(records[0].parent / "train-{00000..00002}-of-00003"),
        "joined": "::".join(map(str, records)),
        "one file": str(whole),
    }[name]
    dataset = feedline.open(source)
    assert (dataset.format, len(dataset)) == ("tfrecord", 21)
    assert epoch(training(dataset)) == epoch(training(feedline.open(records)))


@pytest.mark.parametrize("name, compress", [("x.tfrecord.gz", gzip.compress), ("x.tfrecord", zlib.compress)])
def test_compressed_files_are_made_plain_once(tmp_path: Path, name: str, compress: Callable[[bytes], bytes]) -> None:
    plain = small(tmp_path / "plain.tfrecord")
    (tmp_path / name).write_bytes(compress(plain.read_bytes()))
    assert values(tmp_path / name) == values(plain)
    copies = list((tmp_path / "cache").rglob("*.tfrecord"))
    assert [copy.read_bytes() for copy in copies] == [plain.read_bytes()]
    assert values(tmp_path / name) == values(plain)


def test_features_of_every_kind(tmp_path: Path) -> None:
    path = write(
        tmp_path / "x.tfrecord",
        [
            example(
                {
                    "id": -i,
                    "weight": i / 2,
                    "tokens": [i, 2**40, -1],
                    "boxes": [1.0, 2.0, 3.0, 4.0] * (i + 1),
                    "raw": b"\x00r",
                },
                packed=i % 2 == 0,
            )
            for i in range(5)
        ],
    )
    dataset = feedline.open(path, fields=("id", "w=weight", "tokens", "boxes:boxes", "flat=boxes", "raw"))
    dataset = dataset.collate("list", fields="flat")
    (batch,) = dataset.loader(5, output="numpy")
    assert batch._fields == ("id", "w", "tokens", "boxes", "flat", "raw")
    np.testing.assert_array_equal(batch.id, -np.arange(5))
    np.testing.assert_array_equal(batch.w, np.arange(5, dtype=np.float32) / 2)
    np.testing.assert_array_equal(batch.tokens, [[i, 2**40, -1] for i in range(5)])
    assert (batch.w.dtype, batch.tokens.dtype) == (np.float32, np.int64)
    assert [boxes.shape for boxes in batch.boxes] == [(i + 1, 4) for i in range(5)]
    assert [flat.tolist() for flat in batch.flat] == [[1.0, 2.0, 3.0, 4.0] * (i + 1) for i in range(5)]
    assert batch.raw == [b"\x00r"] * 5


def test_arrays_of_different_lengths_are_padded(tmp_path: Path) -> None:
    path = write(tmp_path / "x.tfrecord", [example({"n": 1, "ids": list(range(i))}) for i in (3, 1, 2)])
    dataset = feedline.open(path, fields=("n", "ids")).collate("pad", fields="ids")
    (batch,) = dataset.loader(3, output="numpy")
    np.testing.assert_array_equal(batch.ids, [[0, 1, 2], [0, 0, 0], [0, 1, 0]])
    np.testing.assert_array_equal(batch.ids_length, [3, 1, 2])


def test_sequences_are_rows(tmp_path: Path) -> None:
    path = write(
        tmp_path / "x.tfrecord",
        [sequence_example({"id": i}, {"track": [[float(t), i + 0.5] for t in range(i + 1)]}) for i in range(3)],
    )
    (batch,) = feedline.open(path, fields=("id", "track")).collate("list", fields="track").loader(3, output="numpy")
    assert [track.tolist() for track in batch.track] == [[[float(t), i + 0.5] for t in range(i + 1)] for i in range(3)]


def test_every_flipped_bit_is_an_error_or_the_same_value(tmp_path: Path) -> None:
    """Two valid records; the second one together with a good one, through a loader that skips damaged samples."""
    good = b"".join(record(example({"n": i, "text": f"text {i}"})) for i in range(2))
    path, wanted = tmp_path / "x.tfrecord", [(0, "text 0"), (1, "text 1")]
    for bit in range(8 * len(good)):
        content = bytearray(good)
        content[bit // 8] ^= 1 << bit % 8
        path.write_bytes(content)
        (tmp_path / ".feedline" / "x.tfrecord.feedline-index").unlink(missing_ok=True)
        try:
            dataset = feedline.open(path, fields=("n", "text"), format="tfrecord")
        except feedline.DataError as error:
            assert error.shard == str(path) and error.offset is not None, bit
            continue
        seen = []
        for i in range(len(dataset)):
            try:
                seen.append((int(dataset[i].n), dataset[i].text))
            except feedline.DataError as error:
                assert (error.record, error.key) == (i, f"x/{i:08d}") and error.shard == str(path), bit
        assert len(dataset) == 2 and len(seen) == 1 and seen[0] in wanted, bit


def test_a_damaged_record_is_left_out_if_the_loader_allows_it(tmp_path: Path) -> None:
    path = small(tmp_path / "x.tfrecord", 50)
    content = bytearray(path.read_bytes())
    content[content.index(b"text 37")] ^= 1
    path.write_bytes(content)
    dataset = feedline.open(path, fields=("n", "text"))
    with pytest.raises(
        feedline.DataError, match=r"record 37 of the shard: the checksum of the record's data is wrong"
    ) as caught:
        list(dataset.loader(10, output="numpy"))
    assert caught.value.record == 37 and caught.value.stage == "format"
    with dataset.loader(10, output="numpy", on_error="skip", error_budget=1) as loader:
        seen = [int(n) for batch in loader for n in batch.n]
    assert sorted(seen) == [i for i in range(50) if i != 37]


@pytest.mark.parametrize(
    "damage, says",
    [
        (lambda data: data[:-3], "record 5, at byte .* the file is truncated"),
        (lambda data: data + b"12345", "record 6, at byte .* the file ends within its header"),
        (lambda data: data + record(b"")[:14], "record 6, at byte .* the file is truncated"),
        (lambda data: b"no record at all" + data, "record 0, at byte 0, .* not a TFRecord file"),
        (
            lambda data: data + struct.pack("<QI", 2**63, made_tfrecords.masked_crc(struct.pack("<Q", 2**63))) + data,
            "record 6, .* has 9223372036854775808 bytes according to its header",
        ),
    ],
)
def test_what_ends_a_shard_is_an_error_of_opening(tmp_path: Path, damage: Callable[[bytes], bytes], says: str) -> None:
    path = small(tmp_path / "x.tfrecord")
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(feedline.DataError, match=says) as caught:
        feedline.open(path, fields=("n", "text"))
    assert caught.value.shard == str(path) and caught.value.offset is not None
    assert [found.severity for found in feedline.inspect(path, fields=("n", "text")).findings] == ["error"]


@pytest.mark.parametrize("end", [".tfindex", ".tfrecord.idx"])
def test_indexes_of_others_are_used_and_never_trusted(tmp_path: Path, end: str) -> None:
    path = small(tmp_path / "x.tfrecord")
    index = tmp_path / f"x{end}"
    index.write_text(made_tfrecords.index_of(path))
    wanted = [(i, f"text {i}") for i in range(6)]
    assert values(path) == wanted
    assert not list(tmp_path.rglob("*.feedline-index")), "our own index was not needed"
    other = small(tmp_path / "other.records", 7)
    index.write_text(made_tfrecords.index_of(other))
    dataset = feedline.open(path, fields=("n", "text"))
    assert f"the index '{index}' does not belong to this shard and is not used: " in dataset.explain()
    assert values(path) == wanted
    assert [found.code for found in feedline.inspect(path, fields=("n", "text")).findings] == ["foreign_index"]


def test_from_a_server_the_batches_are_the_same(records: list[Path], tmp_path: Path) -> None:
    """A list and a compressed file are recognised only by their names; the second opening uses the stored index, and
    does not request another program's.
    """
    wanted = epoch(training(feedline.open(records)), shuffle=True)
    packed = records[0].parent / "packed.tfrecord.gz"
    packed.write_bytes(gzip.compress(b"".join(path.read_bytes() for path in records)))
    with serving(records[0].parent) as server:
        source = server.url("train-{00000..00002}-of-00003")
        assert epoch(training(feedline.open(source)), shuffle=True) == wanted
        server.requests.clear()
        assert epoch(training(feedline.open(source, cache=tmp_path / "node")), shuffle=True) == wanted
        assert not [path for path, _ in server.requests if path.endswith(("idx", "index"))]
        assert epoch(training(feedline.open(server.url("packed.tfrecord.gz"))), shuffle=True) == wanted
        with pytest.raises(feedline.StorageError, match="404"):
            feedline.open(server.url("train-{00003..00004}-of-00005"))


def test_errors_of_choosing_fields_come_before_any_sample(tmp_path: Path) -> None:
    path = write(tmp_path / "x.tfrecord", [example({"n": [1, 2], "x": 1.5})])
    for fields, says in (
        ("y", r"no sample has the field 'y' .* the features are n \(int64\), x \(float\)"),
        ("n:image", "'n' cannot be of kind image"),
        (None, "no feature can be recognised as the image"),
    ):
        with pytest.raises(feedline.ConfigError, match=says):
            feedline.open(path, fields=fields)


def test_inspect_tells_features_that_no_one_reads(records: list[Path]) -> None:
    found = feedline.inspect(records)
    assert (found.format, found.samples, found.shards, list(found.fields)) == ("tfrecord", 21, 3, ["image", "label"])
    assert found.extensions == dict.fromkeys(("image/class/label", "image/encoded", "image/filename"), 21)
    (finding,) = found.findings
    assert (finding.code, finding.severity) == ("unread_feature", "note") and "'image/filename' (bytes)" in finding.text


def test_packs_to_tars_of_the_same_batches(records: list[Path], tmp_path: Path) -> None:
    source, output = str(records[0].parent / "train-{00000..00002}-of-00003"), tmp_path / "out"
    report = packing.pack(source, output, samples_per_shard=10)
    assert (report.samples, report.skipped) == (21, [])
    packed = feedline.open(output / "{000000..000002}.tar")
    assert epoch(training(packed), shuffle=True) == epoch(training(feedline.open(records)), shuffle=True)
    assert [packed.key(i) for i in (0, 20)] == ["train-00000-of-00003/00000000", "train-00002-of-00003/00000006"]
    names = feedline.open(output / "{000000..000002}.tar", fields=("jpg", "image_filename.bin"))
    assert names.collate("list", fields="jpg")[3].image_filename_bin == b"003.jpg"


def test_verify_proves_and_names_damage(records: list[Path]) -> None:
    source = str(records[0].parent / "train-{00000..00002}-of-00003")
    verified = verifying.verify(source, decode=True)
    assert (verified.samples, verified.format, [one.code for one in verified.findings]) == (21, "tfrecord", [])
    content = bytearray(records[1].read_bytes())
    content[300] ^= 1  # in a photo
    records[1].write_bytes(content)
    found = {(one.code, one.about["shard"], one.about["key"]) for one in verifying.verify(source).findings}
    assert ("bad_record", str(records[1]), "train-00001-of-00003/00000000") in found


def test_verify_compares_the_stored_index(tmp_path: Path) -> None:
    """A file that was replaced by another of the same size and time."""
    first, short, long = (example({"n": i, "text": "abc"[:i]}) for i in (1, 2, 3))
    path = write(tmp_path / "x.tfrecord", [first, short, long])
    feedline.open(path, fields=("n", "text"))
    assert not verifying.verify(path, fields=("n", "text")).findings
    times = path.stat()
    write(path, [first, long, short])
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    found = [one.code for one in verifying.verify(path, fields=("n", "text")).findings]
    assert "index_differs" in found
