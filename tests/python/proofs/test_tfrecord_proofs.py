# SPDX-License-Identifier: Apache-2.0
"""TFRecord: thousands of damaged files result in an error with its location, or in the values that were written."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from pathlib import Path

import made_tfrecords

import feedline

CORRUPTIONS, LONG_CORRUPTIONS = 600, 10_000
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
    """A length of any size in place of a record's length, with a correct checksum."""
    places, begin = [], 0
    while begin + 16 <= len(data):
        places.append(begin)
        begin += struct.unpack_from("<Q", data, begin)[0] + 16
    length = struct.pack("<Q", draw.choice([draw.randrange(400), 2**63, 2**64 - 1, 2**64 - 16, draw.randrange(2**64)]))
    at = draw.choice(places)
    data[at : at + 12] = length + struct.pack("<I", made_tfrecords.masked_crc(length))


DAMAGES: list[Callable[[bytearray, random.Random], None]] = [flip, cut, drop, double, zero, lengthen]


def test_corruptions_are_errors_or_nothing(tmp_path: Path, long_form: bool) -> None:
    """An intact record is read as it was written, whatever happens to its neighbours; in every second turn, a file with
    an index by another program is damaged after indexing.
    """
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
        (path.parent / ".feedline" / f"{path.name}.feedline-index").unlink(missing_ok=True)
        try:
            dataset = feedline.open(path, fields=FIELDS, format="tfrecord").collate("list", fields="x")
        except (feedline.DataError, feedline.ConfigError) as error:
            # a ConfigError: nothing is left of the file
            assert getattr(error, "shard", "") == str(path) or (not data and "have no records" in str(error)), turn
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
