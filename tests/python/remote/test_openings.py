# SPDX-License-Identifier: Apache-2.0
"""The requests for opening datasets of tables: few per shard, or none if their result is cached; it is then verified
during the first epoch.
"""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import made_arrow
import made_litdata
import made_mds
import made_parquet
import made_png
import pytest
from range_server import RangeServer, serving

import feedline

_SHARDS, _EACH = 4, 200
_KINDS = ("mds", "litdata", "parquet", "arrow")
# Per shard. An Arrow stream has the position of each batch before the batch, and each of the 4 batches has offsets.
_MOST_REQUESTS = {"mds": 2, "litdata": 2, "parquet": 3, "arrow": 3 + 4}
_LOOKS = {"mds": 0, "litdata": 0, "parquet": 1, "arrow": 1}  # per dataset: does a column of bytes contain images?


def _rows(shift: int) -> list[dict[str, Any]]:
    return [{"n": i + shift, "blob": bytes([i % 256]) * 3000, "text": f"text {i}"} for i in range(_SHARDS * _EACH)]


def _shares(rows: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    return [rows[at : at + _EACH] for at in range(0, len(rows), _EACH)]


def _write(root: Path, kind: str, shift: int = 0) -> list[str]:
    """Returns the names of shards."""
    if kind == "mds":
        columns = {"n": "int", "blob": "bytes", "text": "str"}
        made_mds.write(root, columns, _rows(shift), _SHARDS)
        return [f"shard.{i:05d}.mds" for i in range(_SHARDS)]
    if kind == "litdata":
        made_litdata.write(root, {"n": "int", "blob": "bytes", "text": "str"}, _rows(shift), _SHARDS)
        return [f"chunk-0-{i}.bin" for i in range(_SHARDS)]
    names = [f"{i:03d}.{kind}" for i in range(_SHARDS)]
    for name, share in zip(names, _shares(_rows(shift)), strict=True):
        if kind == "arrow":
            data = made_arrow.stream(share, per_batch=50)
        else:
            data = made_parquet.file_of(share, per_group=100, per_page=20, indexed=True)
        (root / name).write_bytes(data)
    return names


@pytest.fixture(params=_KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def names(tmp_path: Path, kind: str) -> list[str]:
    (tmp_path / "data").mkdir()
    return _write(tmp_path / "data", kind)


@pytest.fixture
def server(names: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RangeServer]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with serving(tmp_path / "data") as running:
        yield running


def _source(server: RangeServer, kind: str) -> str:
    if kind in ("mds", "litdata"):
        return server.url("index.json")
    return server.url(f"{{000..{_SHARDS - 1:03d}}}.{kind}")


def _open(server: RangeServer, kind: str, fields: tuple[str, ...] = ("n", "blob"), **options: Any) -> feedline.Dataset:
    return feedline.open(_source(server, kind), fields=fields, format=kind, **options)


def _requests_of(server: RangeServer, run: Callable[[], Any]) -> tuple[Any, list[tuple[str, str]]]:
    before = len(server.requests)
    result = run()
    return result, server.requests[before:]


def _numbers(dataset: feedline.Dataset, **options: Any) -> list[int]:
    with dataset.loader(50, output="numpy", num_workers=2, **options) as loader:
        return [int(number) for batch in loader for number in batch.n]


def _shards_of(requests: list[tuple[str, str]]) -> Counter[str]:
    return Counter(path.lstrip("/") for path, _ in requests if not path.endswith("index.json"))


def _are_few(requests: list[tuple[str, str]], kind: str, names: list[str], looks: int, more: int = 0) -> bool:
    """At most `_MOST_REQUESTS` plus `more` per shard, and `looks` at values of the first shard."""
    of_shards = _shards_of(requests)
    return all(of_shards[name] <= _MOST_REQUESTS[kind] + more + looks * (name == names[0]) for name in names)


def test_a_shard_is_opened_by_few_requests_and_by_none_once_these_are_cached(
    server: RangeServer, kind: str, names: list[str]
) -> None:
    dataset, cold = _requests_of(server, lambda: _open(server, kind))
    assert set(_shards_of(cold)) == set(names)
    assert _are_few(cold, kind, names, _LOOKS[kind])
    again, warm = _requests_of(server, lambda: _open(server, kind))
    assert not _shards_of(warm)
    assert (again.fingerprint, len(again)) == (dataset.fingerprint, _SHARDS * _EACH)
    numbers, first = _requests_of(server, lambda: _numbers(again))
    assert numbers == list(range(_SHARDS * _EACH)) == _numbers(dataset)
    assert Counter(path.lstrip("/") for path, asked in first if asked == "bytes=0-0") == dict.fromkeys(names, 1)
    _, second = _requests_of(server, lambda: _numbers(again))
    assert not [path for path, asked in second if asked == "bytes=0-0"], "all are known"
    _, asking = _requests_of(server, lambda: _open(server, kind, listing_age=0))
    assert set(_shards_of(asking)) == set(names)


def test_other_fields_are_read_of_what_was_kept_and_the_rest(server: RangeServer, kind: str) -> None:
    expected = [row["text"] for row in _rows(0)]
    _open(server, kind)
    dataset = _open(server, kind, ("n", "text"))
    assert [dataset[i].text for i in range(0, len(dataset), 37)] == expected[::37]
    _, warm = _requests_of(server, lambda: (_open(server, kind, ("n", "text")), _open(server, kind)))
    assert not _shards_of(warm), "what both have read is kept together"


def test_a_changed_shard_is_never_other_data_and_is_read_again(
    server: RangeServer, kind: str, names: list[str], tmp_path: Path
) -> None:
    _, cold = _requests_of(server, lambda: _open(server, kind))
    (tmp_path / "other").mkdir()
    _write(tmp_path / "other", kind, shift=5000)
    (tmp_path / "data" / names[3]).write_bytes((tmp_path / "other" / names[3]).read_bytes())
    stale = _open(server, kind)
    with pytest.raises(feedline.StorageError, match="changed between index and read") as it:
        _numbers(stale, rank=0, world_size=_SHARDS * _EACH // 50)  # which reads nothing from it
    assert it.value.shard == server.url(names[3])
    after, again = _requests_of(server, lambda: _open(server, kind))
    # the server may receive the last reads of the closed loader only now; opening reads other ranges
    assert set(_shards_of([one for one in again if one in cold])) == {names[3]}
    numbers = _numbers(after)
    assert numbers[3 * _EACH : 4 * _EACH] == list(range(5000 + 3 * _EACH, 5000 + 4 * _EACH))
    assert numbers[: 3 * _EACH] == list(range(3 * _EACH))


def test_a_sample_of_a_changed_shard_reports_it_and_the_next_opening_knows(
    server: RangeServer, kind: str, names: list[str], tmp_path: Path
) -> None:
    _open(server, kind)
    (tmp_path / "other").mkdir()
    _write(tmp_path / "other", kind, shift=5000)
    (tmp_path / "data" / names[0]).write_bytes((tmp_path / "other" / names[0]).read_bytes())
    stale = _open(server, kind)
    with pytest.raises(feedline.StorageError, match="changed between index and read"):
        stale[7]
    assert int(_open(server, kind)[7].n) == 5007


def test_lines_and_their_table_are_opened_without_a_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    count = 17_000  # whose table, which is the whole file, is larger than the largest cached table

    def write(root: Path, first: int) -> None:
        rows = ({"n": first + i, "text": "x" * 40} for i in range(count))
        made_mds.write(root, {"n": "int", "text": "str"}, rows, form="tsv")

    write(tmp_path / "data", 10_000)
    names = ("shard.00000.tsv", "shard.00000.tsv.meta")
    with serving(tmp_path / "data") as server:
        dataset, cold = _requests_of(server, lambda: _open(server, "mds", ("n",)))
        assert set(_shards_of(cold)) == set(names)
        assert max(_shards_of(cold).values()) <= 2
        again, warm = _requests_of(server, lambda: _open(server, "mds", ("n",)))
        assert not _shards_of(warm)
        assert (again.fingerprint, len(again)) == (dataset.fingerprint, count)
        assert [int(again[i].n) for i in (0, count - 1)] == [10_000, 26_999]
        write(tmp_path / "data", 50_000)  # with the same number of bytes
        stale = _open(server, "mds", ("n",))
        with pytest.raises(feedline.StorageError, match="changed between index and read") as it:
            _numbers(stale)
        assert it.value.shard == server.url(names[0])
        assert int(_open(server, "mds", ("n",))[1].n) == 50_001


def test_damaged_cached_data_is_rebuilt(server: RangeServer, kind: str, names: list[str], tmp_path: Path) -> None:
    _open(server, kind)
    indexes = sorted((tmp_path / "cache").rglob("*.feedline-index"))
    assert len(indexes) == len(names)
    for file in indexes:
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 1
        file.write_bytes(data)
    dataset, again = _requests_of(server, lambda: _open(server, kind))
    assert set(_shards_of(again)) == set(names)
    assert _numbers(dataset) == list(range(_SHARDS * _EACH))


def test_a_cache_fetches_no_shard_that_is_only_opened(server: RangeServer, kind: str, tmp_path: Path) -> None:
    with_cache = {"cache": tmp_path / "copies", "index": tmp_path / "indexes"}
    dataset, cold = _requests_of(server, lambda: _open(server, kind, **with_cache))
    # one more for the version, which is part of a copy's name
    assert _are_few(cold, kind, sorted(_shards_of(cold)), _LOOKS[kind], more=1)
    copies = list((tmp_path / "copies").rglob("*.object"))
    assert len(copies) == (kind in ("mds", "litdata")), "of index.json alone"
    assert _numbers(dataset) == list(range(_SHARDS * _EACH))
    _, later = _requests_of(server, lambda: _numbers(_open(server, kind, ("n", "text"), **with_cache)))
    assert all(asked == "bytes=0-0" for path, asked in later if not path.endswith("index.json")), "of their copies"


_IMAGE = made_png.png(made_png.Kind())


def _photos(kind: str, blob: Callable[[int], bytes | None], packed: bool) -> list[bytes]:
    """Shards with a column of bytes whose name does not show its contents."""
    rows = [{"n": i, "blob": blob(i)} for i in range(_SHARDS * _EACH)]
    if kind == "arrow":
        return [made_arrow.stream(share, per_batch=50) for share in _shares(rows)]
    options: dict[str, Any] = {"codec": 2, "pack": gzip.compress} if packed else {}
    return [made_parquet.file_of(share, per_group=100, per_page=20, indexed=True, **options) for share in _shares(rows)]


@pytest.mark.parametrize("kind", ["parquet", "packed parquet", "arrow"])
@pytest.mark.parametrize("content", ["images", "bytes", "images after nulls"])
def test_whether_bytes_are_images_is_asked_once_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, content: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "data").mkdir()
    form = kind.removeprefix("packed ")
    nulls = 3 if content == "images after nulls" else 0
    first = _IMAGE if content.startswith("images") else b"no image" * 400
    shards = _photos(form, lambda i: None if i < nulls else first, kind.startswith("packed"))
    names = [f"{i:03d}.{form}" for i in range(_SHARDS)]
    for name, data in zip(names, shards, strict=True):
        (tmp_path / "data" / name).write_bytes(data)
    expected = "image" if content.startswith("images") else "bytes"

    def kind_of(dataset: feedline.Dataset) -> str:
        value: Any = dataset[len(dataset) - 1]
        return "bytes" if isinstance(value.blob, bytes) else "image"

    with serving(tmp_path / "data") as server:
        said, known = _requests_of(server, lambda: _open(server, form, ("n", f"blob:{expected}")))
        assert kind_of(said) == expected and _are_few(known, form, names, looks=0)
        looked, cold = _requests_of(server, lambda: _open(server, form))
        assert kind_of(looked) == expected
        assert sum(_shards_of(cold).values()) <= 1, "the rest is known"
        for fields in (("n", "blob"), ("blob",), ("n", "blob")):
            again, warm = _requests_of(server, lambda fields=fields: _open(server, form, fields))
            assert kind_of(again) == expected and not _shards_of(warm)
        # another version is examined again
        (tmp_path / "data" / names[0]).write_bytes(_photos(form, lambda i: b"other" * 99, kind.startswith("packed"))[0])
        other, _ = _requests_of(server, lambda: _open(server, form, listing_age=0))
        assert kind_of(other) == "bytes"


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_a_described_image_is_not_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "data").mkdir()
    names = [f"{i:03d}.{form}" for i in range(_SHARDS)]
    features = {"blob": {"_type": "Image"}}
    rows = [{"n": i, "blob": _IMAGE} for i in range(_SHARDS * _EACH)]
    for name, share in zip(names, _shares(rows), strict=True):
        if form == "arrow":
            share = [{"n": row["n"], "blob": {"bytes": row["blob"], "path": ""}} for row in share]
            data = made_arrow.stream(share, per_batch=50, features=features)
        else:
            data = made_parquet.file_of(share, features, per_group=100, per_page=20, indexed=True)
        (tmp_path / "data" / name).write_bytes(data)
    with serving(tmp_path / "data") as server:
        _, cold = _requests_of(server, lambda: _open(server, form))
        assert _are_few(cold, form, names, looks=0)
