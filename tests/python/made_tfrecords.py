# SPDX-License-Identifier: Apache-2.0
"""TFRecord files of tf.train.Example messages, written from the specifications, without a library."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

Value = bytes | str | int | float | Sequence[bytes] | Sequence[int] | Sequence[float]


def _table() -> list[int]:
    rows = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        rows.append(byte)
    return rows


_TABLE = _table()


def masked_crc(data: bytes) -> int:
    """CRC-32C (Castagnoli), rotated by 15 bits plus a constant."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked_crc(length)) + data + struct.pack("<I", masked_crc(data))


def varint(value: int) -> bytes:
    value &= 2**64 - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def message(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def feature(value: Value, packed: bool = True) -> bytes:
    """A feature with one value, or several values of one type, except floats."""
    values = list(value) if isinstance(value, Sequence) and not isinstance(value, bytes | str) else [value]
    if values and isinstance(values[0], bytes | str):
        return message(1, b"".join(message(1, one.encode() if isinstance(one, str) else one) for one in values))  # type: ignore[union-attr]
    if values and isinstance(values[0], int):
        numbers, kind, tag = [varint(one) for one in values], 3, b"\x08"  # type: ignore[arg-type]
    else:
        numbers, kind, tag = [struct.pack("<f", one) for one in values], 2, b"\x0d"
    listed = message(1, b"".join(numbers)) if packed else b"".join(tag + one for one in numbers)
    return message(kind, listed)


def example(features: Mapping[str, Value], packed: bool = True) -> bytes:
    entries = [message(1, name.encode()) + message(2, feature(value, packed)) for name, value in features.items()]
    return message(1, b"".join(message(1, entry) for entry in entries))


def sequence_example(context: Mapping[str, Value], lists: Mapping[str, Sequence[Value]]) -> bytes:
    entries = []
    for name, steps in lists.items():
        listed = b"".join(message(1, feature(step)) for step in steps)
        entries.append(message(1, message(1, name.encode()) + message(2, listed)))
    return example(context) + message(2, b"".join(entries))


def write(path: Path, examples: Iterable[bytes]) -> Path:
    path.write_bytes(b"".join(record(one) for one in examples))
    return path


def index_of(path: Path) -> str:
    """Writes an index like the `tfrecord` package and DALI's tfrecord2idx: offset and length of each record with its
    frame.
    """
    lines, data, begin = [], path.read_bytes(), 0
    while begin < len(data):
        length = struct.unpack_from("<Q", data, begin)[0] + 16
        lines.append(f"{begin} {length}\n")
        begin += length
    return "".join(lines)


def of_folder(folder: Path, root: Path, shards: int = 1) -> list[Path]:
    """The JPEGs of class folders, in torchvision's order, as TensorFlow's ImageNet scripts store them."""
    root.mkdir(parents=True, exist_ok=True)
    files = sorted(folder.glob("*/*.jpg"))
    classes = sorted({file.parent.name for file in files})
    paths = []
    for shard in range(shards):
        share = files[shard * len(files) // shards : (shard + 1) * len(files) // shards]
        samples = [
            example(
                {
                    "image/filename": file.name,
                    "image/class/label": classes.index(file.parent.name),
                    "image/encoded": file.read_bytes(),
                }
            )
            for file in share
        ]
        paths.append(write(root / f"train-{shard:05d}-of-{shards:05d}", samples))
    return paths
