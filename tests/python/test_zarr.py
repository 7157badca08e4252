# SPDX-License-Identifier: Apache-2.0
"""Zarr arrays of versions 2 and 3 as volumes."""

from __future__ import annotations

import json
import os
import shutil
import struct
import zlib
from pathlib import Path
from typing import Any

import made_volumes as made
import numpy as np
import pytest
from made_volumes import LITTLE, blosc, gzipped, lz4, shard_encoder, sharding, with_crc, zarr2, zarr3, zstd
from range_server import serving

import feedline

SHAPE, CHUNK = (10, 13, 17), (4, 5, 6)


@pytest.fixture
def array() -> np.ndarray[Any, Any]:
    return np.random.default_rng(0).integers(-3000, 3000, SHAPE).astype("i2")


def whole(path: Any, **options: Any) -> Any:
    return feedline.open(path, **options)[0].image


def check_patches(path: Any, array: Any) -> None:
    """Compares the whole array, and all patches of a grid that is not aligned to the chunks."""
    assert np.array_equal(whole(path), array, equal_nan=array.dtype.kind == "f")
    patches = feedline.open(path).grid_patches((3, 7, 5), overlap=(1, 2, 0))
    for i in range(len(patches)):
        sample = patches[i]
        box = tuple(slice(int(a), int(a) + n) for a, n in zip(sample.patch_position, (3, 7, 5), strict=True))
        assert np.array_equal(sample.image, array[box], equal_nan=array.dtype.kind == "f")


PLAIN: list[Any] = [LITTLE]
ENCODINGS: dict[str, Any] = {
    "bytes": ([LITTLE], bytes),
    "gzip": ([LITTLE, {"name": "gzip", "configuration": {"level": 1}}], gzipped),
    "zstd": ([LITTLE, {"name": "zstd", "configuration": {"level": 0, "checksum": False}}], zstd),
    "crc32c": ([LITTLE, "crc32c"], with_crc),
    "zstd and crc32c": ([LITTLE, {"name": "zstd"}, {"name": "crc32c"}], lambda b: with_crc(zstd(b))),
    "blosc": ([LITTLE, {"name": "blosc", "configuration": {}}], lambda b: blosc(b, "zstd", 2, "bytes")),
}


@pytest.mark.parametrize("name", ENCODINGS)
def test_version_3(tmp_path: Path, array: Any, name: str) -> None:
    codecs, encode = ENCODINGS[name]
    check_patches(zarr3(tmp_path / "a.zarr", array, CHUNK, codecs, encode), array)


@pytest.mark.parametrize("name", ENCODINGS)
@pytest.mark.parametrize("options", [{}, {"first": True}, {"has_sum": False}, {"gap": 7, "reverse": True}])
def test_shards(tmp_path: Path, array: Any, name: str, options: dict[str, Any]) -> None:
    codecs, encode = ENCODINGS[name]
    shard, inner = (8, 15, 12), (4, 5, 6)
    location = "start" if options.get("first") else None
    codec = sharding(inner, codecs, location=location, has_sum=options.get("has_sum", True))
    encode = shard_encoder(shard, inner, "i2", encode, **options)
    check_patches(zarr3(tmp_path / "a.zarr", array, shard, [codec], encode), array)


@pytest.mark.parametrize("dtype", ["?", "u1", "i1", "u2", "i4", "u4", "i8", "u8", "f4", "f8"])
@pytest.mark.parametrize("endian", ["little", "big"])
def test_dtypes_and_byte_orders(tmp_path: Path, array: Any, dtype: str, endian: str) -> None:
    values = array.astype(dtype)
    codecs = [{"name": "bytes", "configuration": {"endian": endian}}]
    swapped = np.dtype(dtype).newbyteorder("<" if endian == "little" else ">")
    three = zarr3(
        tmp_path / "3.zarr", values, CHUNK, codecs, lambda b: np.frombuffer(b, dtype).astype(swapped).tobytes()
    )
    check_patches(three, values)
    check_patches(zarr2(tmp_path / "2.zarr", values.astype(swapped), CHUNK, None, bytes), values)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0), (2, 0, 1)])
def test_transpose(tmp_path: Path, array: Any, order: tuple[int, ...]) -> None:
    codecs = [{"name": "transpose", "configuration": {"order": order}}, LITTLE, "crc32c"]
    check_patches(zarr3(tmp_path / "a.zarr", array, CHUNK, codecs, with_crc, transpose=order), array)


def test_two_transposes_follow_each_other(tmp_path: Path, array: Any) -> None:
    codecs = [{"name": "transpose", "configuration": {"order": order}} for order in ((1, 2, 0), (0, 2, 1))]
    # (1, 2, 0) then (0, 2, 1)
    path = zarr3(tmp_path / "a.zarr", array, CHUNK, [*codecs, LITTLE], bytes, transpose=(1, 0, 2))
    check_patches(path, array)


@pytest.mark.parametrize(("encoding", "separator"), [("default", "/"), ("default", "."), ("v2", "."), ("v2", "/")])
def test_chunk_keys(tmp_path: Path, array: Any, encoding: str, separator: str) -> None:
    check_patches(zarr3(tmp_path / "a.zarr", array, CHUNK, PLAIN, bytes, encoding=encoding, separator=separator), array)


@pytest.mark.parametrize(
    ("dtype", "fill", "shown"),
    [
        ("i2", -7, None),
        ("i2", 3, 3.0),
        ("?", True, None),
        ("f4", 1.5, None),
        ("f4", np.nan, "NaN"),
        ("f4", np.inf, "Infinity"),
        ("f8", -np.inf, "-Infinity"),
        ("f4", np.nan, "0x7fc00000"),
        ("f8", 2.0, "0x4000000000000000"),
        ("u8", 2**64 - 1, None),
    ],
)
def test_missing_chunks_have_the_fill_value(tmp_path: Path, array: Any, dtype: str, fill: Any, shown: Any) -> None:
    values = array.astype(dtype)
    missing = [(0, 1, 2), (2, 2, 2)]
    three = zarr3(tmp_path / "3.zarr", values, CHUNK, PLAIN, bytes, fill=fill, shown_fill=shown, missing=missing)
    inner, shard = (2, 5, 3), (4, 5, 6)
    encode = shard_encoder(shard, inner, dtype, bytes, missing=[(1, 0, 1)])
    sharded = zarr3(
        tmp_path / "s.zarr",
        values,
        shard,
        [sharding(inner, PLAIN)],
        encode,
        fill=fill,
        shown_fill=shown,
        missing=missing,
    )
    expected, expected_sharded = values.copy(), values.copy()
    for at in np.ndindex(3, 3, 3):
        low = [i * n for i, n in zip(at, CHUNK, strict=True)]
        if at in missing:
            box = tuple(slice(a, a + n) for a, n in zip(low, CHUNK, strict=True))
            expected[box] = expected_sharded[box] = fill
        expected_sharded[low[0] + 2 : low[0] + 4, low[1] : low[1] + 5, low[2] + 3 : low[2] + 6] = fill
    check_patches(three, expected)
    check_patches(sharded, expected_sharded)


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("separator", [None, ".", "/"])
def test_version_2(tmp_path: Path, array: Any, order: str, separator: str | None) -> None:
    path = zarr2(
        tmp_path / "a", array, CHUNK, {"id": "zlib", "level": 1}, zlib.compress, order=order, separator=separator
    )
    check_patches(path, array)


@pytest.mark.parametrize(
    ("compressor", "encode"),
    [
        (None, bytes),
        ({"id": "gzip", "level": 5}, gzipped),
        ({"id": "zstd", "level": 1}, zstd),
        ({"id": "lz4", "acceleration": 1}, lz4),
        ({"id": "blosc", "cname": "lz4", "shuffle": 1}, lambda b: blosc(b, "lz4", 2, "bytes")),
    ],
)
def test_compressors_of_version_2(tmp_path: Path, array: Any, compressor: Any, encode: Any) -> None:
    check_patches(zarr2(tmp_path / "a.zarr", array, CHUNK, compressor, encode), array)


def test_filters_and_fill_of_version_2(tmp_path: Path, array: Any) -> None:
    filters = [{"id": "shuffle", "elementsize": 2}]
    path = zarr2(
        tmp_path / "a.zarr",
        array,
        CHUNK,
        {"id": "zlib"},
        lambda b: zlib.compress(np.frombuffer(b, "u1").reshape(-1, 2).T.tobytes()),
        filters=filters,
        fill=None,
        missing=[(0, 0, 0)],
    )
    expected = array.copy()
    expected[:4, :5, :6] = 0
    check_patches(path, expected)


@pytest.mark.parametrize("codec", ["lz4", "zlib", "zstd"])
@pytest.mark.parametrize("shuffle", ["none", "bytes", "bits"])
@pytest.mark.parametrize("dtype", ["u1", "i2", "f4", "f8"])
@pytest.mark.parametrize(("block", "split"), [(None, True), (None, False), (4096, True), (1000, False)])
def test_blosc(tmp_path: Path, codec: str, shuffle: str, dtype: str, block: int | None, split: bool) -> None:
    values = np.random.default_rng(0).integers(0, 50, (16, 21, 11)).astype(dtype)
    element = values.dtype.itemsize
    path = zarr3(
        tmp_path / "a.zarr",
        values,
        (16, 11, 11),
        [LITTLE, "blosc"],
        lambda data: blosc(data, codec, element, shuffle, block, split),
    )
    assert np.array_equal(whole(path), values)


def test_zarr_python_and_numcodecs_are_read(tmp_path: Path, array: Any) -> None:
    zarr = pytest.importorskip("zarr")
    codecs = pytest.importorskip("zarr.codecs")
    numcodecs = pytest.importorskip("numcodecs")
    number = 0
    for values in (array, array.astype("u1"), array.astype("f8") / 7):
        cases: list[dict[str, Any]] = [
            {"chunks": CHUNK},
            {"chunks": CHUNK, "compressors": codecs.GzipCodec(level=3)},
            {"chunks": (2, 5, 3), "shards": (4, 5, 6)},
            {
                "chunks": CHUNK,
                "filters": codecs.TransposeCodec(order=(2, 0, 1)),
                "serializer": codecs.BytesCodec(endian="big"),
            },
        ]
        for cname in ("lz4", "lz4hc", "zstd", "zlib"):
            for shuffle in ("noshuffle", "shuffle", "bitshuffle"):
                cases.append({"chunks": SHAPE, "compressors": codecs.BloscCodec(cname=cname, shuffle=shuffle)})
        for options in cases:
            number += 1
            path = tmp_path / f"{number}.zarr"
            zarr.create_array(str(path), data=values, fill_value=0, **options)
            check_patches(path, values)
        for compressor in (
            None,
            numcodecs.Zstd(),
            numcodecs.LZ4(),
            numcodecs.Blosc("lz4"),
            numcodecs.Blosc("zstd", shuffle=2),
        ):
            for order in "CF":
                number += 1
                path = tmp_path / f"{number}.zarr"
                zarr.create_array(
                    str(path),
                    data=values,
                    chunks=CHUNK,
                    zarr_format=2,
                    compressors=compressor,
                    order=order,
                    fill_value=0,
                )
                check_patches(path, values)


# ---- groups ----


def test_arrays_of_a_group(tmp_path: Path, array: Any) -> None:
    root = tmp_path / "scan.zarr"
    zarr3(root / "scan/volume", array, CHUNK, PLAIN, bytes)
    zarr3(root / "scan/mask", (array % 3).astype("u1"), (5, 5, 5), PLAIN, bytes)
    consolidated = {"metadata": {"scan": {"node_type": "group"}, "scan/volume": {"node_type": "array"}}}
    group = {"zarr_format": 3, "node_type": "group", "consolidated_metadata": consolidated}
    (root / "zarr.json").write_text(json.dumps(group))
    sample = feedline.open(root, fields=("scan/volume", "scan/mask")).random_crop((5, 5, 5))[0]
    assert sample._fields == ("volume", "mask")
    at = np.argwhere(array == sample.volume[0, 0, 0])
    assert any(np.array_equal(array[x : x + 5, y : y + 5, z : z + 5], sample.volume) for x, y, z in at)
    assert np.array_equal(sample.mask, sample.volume % 3)
    with pytest.raises(feedline.ConfigError, match=r"is a Zarr group: name its arrays.*it has scan/volume"):
        feedline.open(root)
    with pytest.raises(feedline.ConfigError, match="has no array 'scan/none'; it has scan/volume"):
        feedline.open(root, fields="image=scan/none")


def test_groups_of_version_2(tmp_path: Path, array: Any) -> None:
    root = tmp_path / "scan"
    zarr2(root / "x", array, CHUNK, None, bytes)
    (root / ".zgroup").write_text('{"zarr_format": 2}')
    assert np.array_equal(whole(root, fields="image=x"), array)
    with pytest.raises(feedline.ConfigError, match="is a Zarr group"):
        feedline.open(root)
    (root / ".zmetadata").write_text(json.dumps({"zarr_consolidated_format": 1, "metadata": {"x/.zarray": {}}}))
    with pytest.raises(feedline.ConfigError, match="it has x"):
        feedline.open(root)


def test_remote_shards_are_read_by_ranges(tmp_path: Path) -> None:
    values = np.random.default_rng(0).integers(0, 2**15, (64, 64, 64)).astype("i2")
    encode = shard_encoder((64, 64, 64), (16, 16, 16), "i2", bytes)
    zarr3(tmp_path / "a.zarr", values, (64, 64, 64), [sharding((16, 16, 16), PLAIN)], encode)
    with serving(tmp_path) as server:
        patches = feedline.open(server.url("a.zarr")).center_crop((16, 16, 16))
        assert np.array_equal(patches[0].image, values[24:40, 24:40, 24:40])
        ranges = [request.removeprefix("bytes=").split("-") for path, request in server.requests if "c/0/0/0" in path]
        (batch,) = patches.loader(batch_size=1)
        assert np.array_equal(np.asarray(batch.image)[0], values[24:40, 24:40, 24:40])
    wanted = [(int(first), int(last)) for first, last in ranges if first and last]
    assert 0 < sum(last - first + 1 for first, last in wanted) < values.nbytes / 2
    assert len(ranges) <= 4  # the start, the index, and neighbouring chunks together


# ---- bad input ----


def damaged(folder: Path, array: Any, **changes: Any) -> Path:
    return zarr3(
        folder,
        array,
        changes.pop("chunk", CHUNK),
        changes.pop("codecs", PLAIN),
        changes.pop("encode", bytes),
        **changes,
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"codecs": [LITTLE, {"name": "numcodecs.lzma"}]}, "\"codecs\": unknown codec 'numcodecs.lzma'"),
        ({"codecs": ["vlen-utf8"]}, "unknown codec 'vlen-utf8'"),
        ({"codecs": []}, '"codecs" has neither bytes nor sharding_indexed'),
        ({"codecs": ["gzip", LITTLE]}, "'gzip' precedes the codec 'bytes'"),
        ({"codecs": [LITTLE, LITTLE]}, "follows a codec that makes bytes"),
        ({"codecs": ["bytes"]}, 'no valid "endian"'),
        ({"codecs": [{"name": "transpose", "configuration": {"order": [0, 0, 1]}}, LITTLE]}, "not a permutation"),
        ({"codecs": [{"name": "transpose", "configuration": {"order": [1, 0]}}, LITTLE]}, "must have 3 axes"),
        ({"codecs": [sharding((3, 5, 6), PLAIN)]}, "do not consist of chunks"),
        ({"codecs": [sharding((4, 5), PLAIN)]}, "has 2 axes, but the array has 3"),
        ({"codecs": [sharding((4, 5, 6), [sharding((4, 5, 6), PLAIN)])]}, "shards inside shards"),
        ({"codecs": [sharding((4, 5, 6), PLAIN), "crc32c"]}, "after sharding_indexed is not supported"),
        ({"node_type": "table"}, "node_type"),
        ({"zarr_format": 4}, '"zarr_format" is not 3'),
        ({"data_type": "complex64"}, "'complex64' is not supported"),
        ({"data_type": "r16"}, "'r16' is not supported"),
        ({"chunk_grid": {"name": "rectangular", "configuration": {}}}, "'rectangular' is not supported"),
        (
            {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4, 5]}}},
            '"shape" has 3 axes, but the chunks have 2',
        ),
        ({"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4, 5, 0]}}}, "extent of 0"),
        ({"shape": [10, -1, 17]}, "extent of -1"),
        ({"shape": [2**40, 2**40, 2**40]}, "extent of"),
        ({"shape": "omit"}, '"shape" is missing'),
        ({"fill_value": "many"}, "\"fill_value\" 'many' is not a value of int16"),
        ({"fill_value": 40000}, "is not a value of int16"),
        ({"fill_value": "omit"}, '"fill_value" is missing'),
        ({"chunk_key_encoding": {"name": "hashed"}}, "unknown \"chunk_key_encoding\" 'hashed'"),
        ({"storage_transformers": [{"name": "x"}]}, "storage_transformers"),
        ({"extension": {"name": "x"}}, 'unknown key "extension"'),
    ],
)
def test_metadata_that_cannot_be_read_is_named(
    tmp_path: Path, array: Any, changes: dict[str, Any], message: str
) -> None:
    path = damaged(tmp_path / "a.zarr", array, **changes)
    with pytest.raises(feedline.DataError) as raised:
        feedline.open(path)
    assert message in str(raised.value)
    assert "zarr.json" in str(raised.value)


def test_extensions_that_may_be_ignored(tmp_path: Path, array: Any) -> None:
    check_patches(damaged(tmp_path / "a.zarr", array, extension={"must_understand": False}), array)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"compressor": {"id": "bz2"}}, "\"compressor\": unknown codec 'bz2'"),
        ({"filters": [{"id": "delta", "dtype": "<i2"}]}, "\"filters\": 'delta' is not supported"),
        ({"dtype": "<U3"}, "'<U3' is not supported"),
        ({"order": "K"}, '"order"'),
        ({"chunks": [4, 5]}, "the chunks have 2"),
        ({"dimension_separator": "-"}, "dimension_separator"),
    ],
)
def test_metadata_of_version_2_is_checked(tmp_path: Path, array: Any, changes: dict[str, Any], message: str) -> None:
    zarr2(tmp_path / "a.zarr", array, CHUNK, None, bytes)
    metadata = json.loads((tmp_path / "a.zarr/.zarray").read_text()) | changes
    (tmp_path / "a.zarr/.zarray").write_text(json.dumps(metadata))
    with pytest.raises(feedline.DataError) as raised:
        feedline.open(tmp_path / "a.zarr")
    assert message in str(raised.value)
    assert ".zarray" in str(raised.value)


@pytest.mark.parametrize("name", ENCODINGS)
@pytest.mark.parametrize("change", ["short", "long", "flip"])
def test_damaged_chunks_are_named(tmp_path: Path, array: Any, name: str, change: str) -> None:
    codecs, encode = ENCODINGS[name]
    path = zarr3(tmp_path / "a.zarr", array, CHUNK, codecs, encode)
    chunk = path / "c/1/0/2"
    data = chunk.read_bytes()
    if change == "flip":
        if name == "bytes":
            pytest.skip("plain bytes have no checksum")
        middle = len(data) // 2 if "crc" in name else 0
        data = data[:middle] + bytes([data[middle] ^ 0xFF]) + data[middle + 1 :]
    chunk.write_bytes(data[:-3] if change == "short" else data + b"xyz" if change == "long" else data)
    if change == "long" and name == "blosc":
        return  # the header has the size
    with pytest.raises(feedline.DataError) as raised:
        whole(path)
    assert "c/1/0/2" in str(raised.value)


def test_chunks_that_are_too_large_are_named(tmp_path: Path, array: Any) -> None:
    path = zarr3(tmp_path / "a.zarr", array, CHUNK, PLAIN, bytes)
    (path / "c/1/0/2").write_bytes(bytes(1 << 20))
    with pytest.raises(feedline.DataError, match=r"the chunk has more than 65806 bytes, but decodes to 240.*c/1/0/2"):
        whole(path)
    metadata = path / "zarr.json"
    metadata.write_text(metadata.read_text().replace("[4, 5, 6]", "[2000, 2000, 2000]"))
    with pytest.raises(feedline.DataError, match="16000000000 bytes, over the limit of 2147483648; rewrite the array"):
        feedline.open(path)


@pytest.mark.parametrize("change", ["sum", "short", "far", "huge"])
def test_damaged_shards_are_named(tmp_path: Path, array: Any, change: str) -> None:
    shard = (16, 20, 18)
    path = zarr3(tmp_path / "a.zarr", array, shard, [sharding(CHUNK, PLAIN)], shard_encoder(shard, CHUNK, "i2", bytes))
    file = path / "c/0/0/0"
    data = file.read_bytes()
    table = 16 * 4 * 4 * 3
    if change == "sum":
        data = data[:-10] + b"\x01" + data[-9:]
    elif change == "short":
        data = data[: table // 2]
    else:
        index = bytearray(data[-table - 4 : -4])
        struct.pack_into("<QQ", index, 0, *((2**63, 240) if change == "far" else (0, 2**60)))
        data = data[: -table - 4] + made.with_crc(bytes(index))
    file.write_bytes(data)
    with pytest.raises(feedline.DataError) as raised:
        whole(path)
    assert "c/0/0/0" in str(raised.value)


def test_metadata_that_changes_while_it_is_open_is_noticed(tmp_path: Path, array: Any) -> None:
    path = zarr3(tmp_path / "a.zarr", array, CHUNK, PLAIN, bytes)
    dataset = feedline.open(path)
    dataset[0]
    shutil.rmtree(path)
    zarr3(path, np.ascontiguousarray(array.T), CHUNK, PLAIN, bytes)
    made.touched(path / "zarr.json")
    with pytest.raises(feedline.StorageError, match=r"has changed.*zarr\.json"):
        dataset[0]
    assert np.array_equal(whole(path), array.T)


def test_shards_that_change_while_they_are_open_are_noticed(tmp_path: Path, array: Any) -> None:
    shard = (16, 20, 18)
    encoder = shard_encoder(shard, CHUNK, "i2", gzipped)
    codecs = [sharding(CHUNK, ENCODINGS["gzip"][0])]
    path = zarr3(tmp_path / "a.zarr", array, shard, codecs, encoder)
    dataset = feedline.open(path)
    assert np.array_equal(dataset[0].image, array)
    encoder = shard_encoder(shard, CHUNK, "i2", gzipped, gap=50)
    other = zarr3(tmp_path / "b.zarr", array + 1, shard, codecs, encoder)
    shutil.copyfile(other / "c/0/0/0", path / "c/0/0/0")
    made.touched(path / "c/0/0/0")
    with pytest.raises(feedline.StorageError, match=r"has changed.*c/0/0/0"):
        dataset[0]
    assert np.array_equal(whole(path), array + 1)


def test_a_shard_that_is_written_later_is_read(tmp_path: Path, array: Any) -> None:
    shard = (16, 20, 18)
    path = zarr3(tmp_path / "a.zarr", array, shard, [sharding(CHUNK, PLAIN)], shard_encoder(shard, CHUNK, "i2", bytes))
    (path / "c/0/0/0").rename(tmp_path / "later")
    dataset = feedline.open(path)
    assert not dataset[0].image.any()
    (tmp_path / "later").rename(path / "c/0/0/0")
    assert np.array_equal(dataset[0].image, array)


@pytest.mark.filterwarnings("ignore:random_crop.*fit badly")
def test_foreground_is_found_again_in_chunks_that_changed(tmp_path: Path, array: Any) -> None:
    def labels(voxel: tuple[int, ...]) -> Any:
        mask = np.zeros(SHAPE, "u1")
        mask[voxel] = 1
        shutil.rmtree(tmp_path / "m.zarr", ignore_errors=True)
        return zarr3(tmp_path / "m.zarr", mask, CHUNK, PLAIN, bytes)

    def patch() -> Any:
        dataset = feedline.open([(image, tmp_path / "m.zarr")], index=tmp_path / "index")
        (batch,) = dataset.random_crop((1, 1, 1), foreground=("mask", 1.0)).loader(batch_size=1)
        return np.asarray(batch.mask).item(), np.asarray(batch.image).item()

    image = zarr3(tmp_path / "a.zarr", array, CHUNK, PLAIN, bytes)
    labels((5, 6, 7))
    metadata = (tmp_path / "m.zarr/zarr.json").stat()
    assert patch() == (1, array[5, 6, 7])
    assert list((tmp_path / "index").rglob("*foreground*"))
    labels((8, 1, 2))
    for chunk in (path for path in (tmp_path / "m.zarr/c").rglob("*") if path.is_file()):
        made.touched(chunk)
    os.utime(tmp_path / "m.zarr/zarr.json", ns=(metadata.st_atime_ns, metadata.st_mtime_ns))  # only chunks changed
    assert patch() == (1, array[8, 1, 2])


def test_a_folder_that_is_not_zarr(tmp_path: Path, array: Any) -> None:
    path = zarr3(tmp_path / "a.zarr", array, CHUNK, PLAIN, bytes)
    shutil.copytree(path, tmp_path / "b.zarr")
    (tmp_path / "b.zarr/zarr.json").unlink()
    with pytest.raises(feedline.ConfigError, match="is not a Zarr array or group"):
        feedline.open(tmp_path / "b.zarr")
    (tmp_path / "b.zarr/zarr.json").write_text("{")
    with pytest.raises(feedline.DataError, match="not a JSON object"):
        feedline.open(tmp_path / "b.zarr")
