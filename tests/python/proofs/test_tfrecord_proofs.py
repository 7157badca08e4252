# SPDX-License-Identifier: Apache-2.0
"""TFRecord: thousands of damaged files give an error that says where, or the values that were written; and files of
TensorFlow's own writer read as TensorFlow reads them."""

from __future__ import annotations

import json
import random
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import made_tfrecords
import numpy as np
import pytest

import feedline

CORRUPTIONS, LONG_CORRUPTIONS = 600, 10_000
CHECKOUT = Path(__file__).parents[3]
FIELDS = ("n", "text", "x:array", "raw")


def content(records: int) -> list[bytes]:
    return [
        made_tfrecords.record(
            made_tfrecords.example({"n": i, "text": f"sample {i}", "x": [i / 4] * (i % 5), "raw": bytes([i]) * 40})
        )
        for i in range(records)
    ]


def flip(data: bytearray, draw: random.Random) -> None:
    for _ in range(draw.randint(1, 4)):
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)


def cut(data: bytearray, draw: random.Random) -> None:
    del data[draw.randrange(len(data)) :]


def drop(data: bytearray, draw: random.Random) -> None:
    begin = draw.randrange(len(data))
    del data[begin : begin + draw.randint(1, 40)]


def double(data: bytearray, draw: random.Random) -> None:
    begin = draw.randrange(len(data))
    data[begin:begin] = data[begin : begin + draw.randint(1, 40)]


def zero(data: bytearray, draw: random.Random) -> None:
    begin = draw.randrange(len(data))
    data[begin : begin + 16] = bytes(len(data[begin : begin + 16]))


def lengthen(data: bytearray, draw: random.Random) -> None:
    """A length of any size at a record's place, with its right checksum."""
    places, begin = [], 0
    while begin + 16 <= len(data):
        places.append(begin)
        begin += struct.unpack_from("<Q", data, begin)[0] + 16
    length = struct.pack("<Q", draw.choice([draw.randrange(400), 2**63, 2**64 - 1, 2**64 - 16, draw.randrange(2**64)]))
    at = draw.choice(places)
    data[at : at + 12] = length + struct.pack("<I", made_tfrecords.masked_crc(length))


DAMAGES: list[Callable[[bytearray, random.Random], None]] = [flip, cut, drop, double, zero, lengthen]


def test_corruptions_are_errors_or_nothing(tmp_path: Path, long_form: bool) -> None:
    """A record that is whole is read as it was written, whatever becomes of its neighbours; a file with an index of
    another program is damaged behind its back in every second turn."""
    whole = content(12)
    written = {bytes([i]) * 40: (i, f"sample {i}", (i % 5) * [i / 4]) for i in range(len(whole))}
    path, index = tmp_path / "x.tfrecord", tmp_path / "x.tfindex"
    draw, at_open, at_read, right = random.Random(19), 0, 0, 0
    for turn in range(LONG_CORRUPTIONS if long_form else CORRUPTIONS):
        data = bytearray(b"".join(whole))
        DAMAGES[turn % len(DAMAGES)](data, draw)
        index.unlink(missing_ok=True)
        if turn // len(DAMAGES) % 2:
            path.write_bytes(b"".join(whole))
            index.write_text(made_tfrecords.index_of(path))
        path.write_bytes(data)
        Path(f"{path}.feedline-index").unlink(missing_ok=True)
        try:
            dataset = feedline.open(path, fields=FIELDS, format="tfrecord").collate("list", fields="x")
        except (feedline.DataError, feedline.ConfigError) as error:
            # a ConfigError: nothing is left of the file
            assert getattr(error, "shard", "") == str(path) or (not data and "hold no records" in str(error)), turn
            at_open += 1
            continue
        for i in range(len(dataset)):
            try:
                one = dataset[i]
            except feedline.DataError as error:
                assert error.record == i and error.shard == str(path) and error.offset is not None, turn
                at_read += 1
            else:
                assert written[one.raw] == (int(one.n), one.text, one.x.tolist()), turn
                right += 1
    assert min(at_open, at_read, right) > 50


WRITER = """
import json, sys
import numpy as np
import tensorflow as tf

folder, draw = sys.argv[1], np.random.default_rng(7)

def feature(**one):
    return tf.train.Feature(**one)

def example(i):
    return tf.train.Example(features=tf.train.Features(feature={
        "n": feature(int64_list=tf.train.Int64List(value=[int(draw.integers(-2**63, 2**63))])),
        "many": feature(int64_list=tf.train.Int64List(value=[int(x) for x in draw.integers(-1000, 1000, i % 7)])),
        "x": feature(float_list=tf.train.FloatList(value=draw.normal(size=i % 4).astype(np.float32).tolist())),
        "raw": feature(bytes_list=tf.train.BytesList(value=[draw.bytes(int(draw.integers(0, 3000)))])),
        "not_set": feature(),
    }))

def sequence(i):
    steps = [tf.train.Feature(float_list=tf.train.FloatList(value=[t, t / 2])) for t in range(i % 5)]
    return tf.train.SequenceExample(
        context=tf.train.Features(feature={"n": feature(int64_list=tf.train.Int64List(value=[i]))}),
        feature_lists=tf.train.FeatureLists(feature_list={"steps": tf.train.FeatureList(feature=steps)}))

wanted = {}
for name, kind in (("plain", ""), ("gzip", "GZIP"), ("zlib", "ZLIB")):
    path = f"{folder}/{name}.tfrecord"
    with tf.io.TFRecordWriter(path, kind) as writer:
        for i in range(200):
            writer.write(example(i).SerializeToString())
    rows = []
    for record in tf.data.TFRecordDataset(path, kind):
        one = tf.io.parse_single_example(record, {
            "n": tf.io.FixedLenFeature([], tf.int64), "many": tf.io.VarLenFeature(tf.int64),
            "x": tf.io.VarLenFeature(tf.float32), "raw": tf.io.FixedLenFeature([], tf.string)})
        rows.append([int(one["n"]), one["many"].values.numpy().tolist(), one["x"].values.numpy().tolist(),
                     one["raw"].numpy().hex()])
    wanted[name] = rows
with tf.io.TFRecordWriter(f"{folder}/sequence.tfrecord") as writer:
    for i in range(1, 60):
        writer.write(sequence(i).SerializeToString())
print(json.dumps(wanted))
"""


@pytest.fixture(scope="module")
def tensorflow(long_form: bool) -> Path:
    if not long_form:
        pytest.skip("TensorFlow is installed only in the long form")
    sys.path.append(str(CHECKOUT / "bench" / "peers"))
    import environments

    try:
        peer = environments.peers(CHECKOUT / "bench" / "format_peers.toml")["tfdata"]
        return environments.ensure(peer, CHECKOUT / "build" / "peers")
    except environments.NotInstalled as error:
        pytest.skip(f"tensorflow-cpu cannot be installed: {error}")


def test_files_of_tensorflow_read_as_it_reads_them(
    tensorflow: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    done = subprocess.run(
        [str(tensorflow), "-c", WRITER, str(tmp_path)], capture_output=True, text=True, timeout=600, check=True
    )
    for name, rows in json.loads(done.stdout.splitlines()[-1]).items():
        dataset = feedline.open(tmp_path / f"{name}.tfrecord", fields=("n", "many", "x", "raw"))
        dataset = dataset.collate("list", fields=("many", "x"))
        assert len(dataset) == len(rows) == 200
        for i, row in enumerate(rows):
            one = dataset[i]
            assert [int(one.n), one.many.tolist(), one.x.tolist(), one.raw.hex()] == row, (name, i)
    sequences = feedline.open(tmp_path / "sequence.tfrecord", fields=("n", "steps")).collate("list", fields="steps")
    for i in range(len(sequences)):
        np.testing.assert_array_equal(
            sequences[i].steps, np.array([[t, t / 2] for t in range((i + 1) % 5)], np.float32).reshape(-1, 2)
        )
