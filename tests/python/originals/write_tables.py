# SPDX-License-Identifier: Apache-2.0
"""Writes Arrow and Parquet files with pyarrow and datasets, and prints what these read. Run by their interpreter."""

import io
import itertools
import json
import pathlib
import sys

import datasets
import numpy as np
import PIL.Image
import pyarrow as pa
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet as pq

out, draw, ROWS = pathlib.Path(sys.argv[1]), np.random.default_rng(11), 700


def some(i, value):
    return None if i % 13 == 5 else value


def table(nested):
    words = ["", "a", "word", "another word", "ö" * 50]
    columns = {
        "n": pa.array([some(i, int(draw.integers(-(2**62), 2**62))) for i in range(ROWS)], pa.int64()),
        "up": pa.array([some(i, 3 * i) for i in range(ROWS)], pa.int32()),
        "small": pa.array([some(i, i % 250) for i in range(ROWS)], pa.uint8()),
        "tiny": pa.array([i % 100 - 50 for i in range(ROWS)], pa.int8()),
        "flag": pa.array([some(i, i % 3 == 0) for i in range(ROWS)], pa.bool_()),
        "x": pa.array([some(i, float(np.float32(draw.normal()))) for i in range(ROWS)], pa.float32()),
        "y": pa.array([float(draw.normal()) for i in range(ROWS)], pa.float64()),
        "half": pa.array([np.float16(i / 8) for i in range(ROWS)], pa.float16()),
        "text": pa.array([some(i, words[i % 5]) for i in range(ROWS)], pa.string()),
        "large": pa.array([some(i, words[i * 7 % 5]) for i in range(ROWS)], pa.large_string()),
        "raw": pa.array([some(i, draw.bytes(int(draw.integers(0, 3000)))) for i in range(ROWS)], pa.binary()),
        "code": pa.array([some(i, b"%04d" % i) for i in range(ROWS)], pa.binary(4)),
        "ids": pa.array([some(i, list(range(i % 7))) for i in range(ROWS)], pa.list_(pa.int64())),
        "word": pa.array([some(i, words[i % 4]) for i in range(ROWS)]).dictionary_encode(),
        "file": pa.array(
            [some(i, {"bytes": draw.bytes(50), "path": f"{i}.bin"}) for i in range(ROWS)],
            pa.struct([("bytes", pa.binary()), ("path", pa.string())]),
        ),
    }
    if nested:
        columns["pair"] = pa.array([some(i, [i, -i]) for i in range(ROWS)], pa.list_(pa.float32(), 2))
        columns["many"] = pa.array([some(i, [i] * (i % 3)) for i in range(ROWS)], pa.large_list(pa.int16()))
        columns["boxes"] = pa.array(
            [[[i, j, i + 1, j + 1] for j in range(i % 4)] for i in range(ROWS)], pa.list_(pa.list_(pa.float32()))
        )
        columns["none"] = pa.nulls(ROWS)
        columns["in"] = pa.array([{"a": i, "b": [{"c": "x"}]} for i in range(ROWS)])
    return pa.table(columns)


def shown(value):
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict):
        return shown(value["bytes"])
    return np.asarray(value).tolist() if isinstance(value, list | np.floating) else value


def rows_of(read):
    names = [name for name in read.schema.names if name not in ("none", "in")]
    return [[shown(row[name]) for name in names] for row in read.select(names).to_pylist()]


wanted = {}


def keep(name, read):
    wanted[name] = rows_of(read)


flat, nested = table(False), table(True)
for codec in (None, "lz4", "zstd"):
    options = pa.ipc.IpcWriteOptions(compression=codec)
    for kind, new in (("stream", pa.ipc.new_stream), ("file", pa.ipc.new_file)):
        path = out / f"{kind}_{codec}.arrow"
        with pa.OSFile(str(path), "wb") as sink, new(sink, nested.schema, options=options) as writer:
            writer.write_table(nested, max_chunksize=97)
        opened = pa.ipc.open_stream(path.open("rb")) if kind == "stream" else pa.ipc.open_file(path)
        keep(path.name, opened.read_all())
pyarrow.feather.write_feather(nested, out / "x.feather")
keep("x.feather", pyarrow.feather.read_table(out / "x.feather"))
old = io.BytesIO()
with pa.ipc.new_stream(old, nested.schema, options=pa.ipc.IpcWriteOptions(use_legacy_format=True)) as writer:
    writer.write_table(nested)
(out / "legacy.arrow").write_bytes(old.getvalue())
keep("legacy.arrow", nested)

for codec, version, dictionary, index in itertools.product(
    ("NONE", "SNAPPY", "GZIP", "ZSTD", "BROTLI", "LZ4"), ("1.0", "2.0"), (True, False), (True, False)
):
    path = out / f"{codec}_{version[0]}_{dictionary}_{index}.parquet"
    pq.write_table(
        flat,
        path,
        compression=codec,
        data_page_version=version,
        use_dictionary=dictionary,
        write_page_index=index,
        row_group_size=300,
        data_page_size=2000,
        write_batch_size=16,
        write_page_checksum=index,
    )
    keep(path.name, pq.read_table(path))
ENCODINGS = {
    "n": ["PLAIN", "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"],
    "up": ["DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"],
    "x": ["BYTE_STREAM_SPLIT"],
    "y": ["BYTE_STREAM_SPLIT"],
    "half": ["BYTE_STREAM_SPLIT"],
    "flag": ["RLE", "PLAIN"],
    "text": ["DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"],
    "raw": ["DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"],
    "code": ["DELTA_BYTE_ARRAY", "BYTE_STREAM_SPLIT"],
    "ids.list.element": ["DELTA_BINARY_PACKED"],
}
for number, version in itertools.product(range(3), ("1.0", "2.0")):
    path = out / f"encodings_{number}_{version[0]}.parquet"
    chosen = {name: kinds[number % len(kinds)] for name, kinds in ENCODINGS.items()}
    pq.write_table(
        flat,
        path,
        compression="SNAPPY",
        data_page_version=version,
        use_dictionary=False,
        column_encoding=chosen,
        row_group_size=300,
        data_page_size=2000,
        write_batch_size=16,
    )
    keep(path.name, pq.read_table(path))

photos = []
for i in range(40):
    buffer = io.BytesIO()
    PIL.Image.fromarray(draw.integers(0, 256, (16 + i, 20, 3), dtype=np.uint8)).save(buffer, "PNG")
    photos.append(buffer.getvalue())
features = datasets.Features(
    {
        "image": datasets.Image(),
        "label": datasets.ClassLabel(names=["cat", "ö"]),
        "points": datasets.Array2D((2, 3), "float32"),
        "ids": datasets.Sequence(datasets.Value("int32")),
    }
)
made = datasets.Dataset.from_dict(
    {
        "image": [{"bytes": photo, "path": None} for photo in photos],
        "label": [i % 2 for i in range(40)],
        "points": [[[i, 1, 2], [3, 4, 5]] for i in range(40)],
        "ids": [list(range(i % 3)) for i in range(40)],
    },
    features=features,
)
made.save_to_disk(out / "saved", num_shards=3)
datasets.DatasetDict({"train": made, "test": made.select(range(5))}).save_to_disk(out / "dict")
made.to_parquet(out / "photos.parquet")
wanted["photos"] = [
    [
        np.asarray(row["image"].convert("RGB")).tobytes().hex(),
        row["label"],
        np.asarray(row["points"]).tolist(),
        list(row["ids"]),
    ]
    for row in datasets.load_from_disk(out / "saved")
]
print(json.dumps(wanted))
