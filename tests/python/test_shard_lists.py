# SPDX-License-Identifier: Apache-2.0
"""Lists of shards and indexes of other programs: written lists describe the shards, lists that are read open to the
same samples, and a list for other shards is an error.
"""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import struct
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import made_tfrecords
import pytest
from range_server import serving

import feedline
from feedline.cli.root import run as run_command


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def shards(tars: list[Path], tmp_path: Path) -> list[Path]:
    """Copies the shards to a separate folder."""
    (tmp_path / "shards").mkdir()
    return [Path(shutil.copy(tar, tmp_path / "shards" / f"part-{i:02d}.tar")) for i, tar in enumerate(tars)]


def run(*arguments: object, status: int = 0) -> dict[str, Any]:
    """Returns the JSON output of `feedline index`, or its standard error."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        ended = run_command(["index", *map(str, arguments), "--json"])
    assert ended == status, err.getvalue()
    written: dict[str, Any] = json.loads(out.getvalue()) if status == 0 else {"said": err.getvalue()}
    return written


def keys(dataset: feedline.Dataset) -> list[str]:
    return [dataset.key(i) for i in range(len(dataset))]


def pattern(shards: list[Path]) -> str:
    return str(shards[0].parent / f"part-{{00..{len(shards) - 1:02d}}}.tar")


@pytest.mark.parametrize(
    ("kind", "name"), [("wids", "index.json"), ("timm", "_info.json"), ("open_clip", "sizes.json")]
)
def test_a_list_that_is_written_opens_to_the_same_samples(shards: list[Path], kind: str, name: str) -> None:
    expected = keys(feedline.open(pattern(shards)))
    written = run(pattern(shards), "--as", kind)
    assert written == {"files": [str(shards[0].parent / name)], "shards": len(shards), "samples": len(expected)}
    assert keys(feedline.open(written["files"][0])) == expected
    assert keys(feedline.open([written["files"][0], shards[0]])) == [*expected, *keys(feedline.open(shards[0]))]


def test_lists_report_what_their_readers_look_for(shards: list[Path], tmp_path: Path) -> None:
    counts = [len(feedline.open(shard)) for shard in shards]
    names = [f"shards/{shard.name}" for shard in shards]
    said = {}
    for kind in ("wids", "timm", "open_clip"):
        run(pattern(shards), "--as", kind, "--output", tmp_path / kind, "--split", "val")
        said[kind] = json.loads((tmp_path / kind).read_text())
    assert said["wids"] == {
        "__kind__": "wids-shard-index-v1",
        "wids_version": 1,
        "name": "val",
        "shardlist": [
            {"url": name, "nsamples": count, "filesize": shard.stat().st_size}
            for name, count, shard in zip(names, counts, shards, strict=True)
        ],
    }
    own = {"name": "val", "num_samples": sum(counts), "filenames": names, "shard_lengths": counts}
    assert said["timm"] == {"splits": {"val": own}}
    assert said["open_clip"] == dict(zip([shard.name for shard in shards], counts, strict=True))


def test_dalis_index_leads_to_every_file(shards: list[Path]) -> None:
    assert run(pattern(shards), "--as", "dali")["files"] == [str(shard.with_suffix(".idx")) for shard in shards]
    for shard in shards:
        head, *lines = shard.with_suffix(".idx").read_text().splitlines()
        assert head == f"v1.2 {len(lines)}" and len(lines) == len(feedline.open(shard))
        data, found = shard.read_bytes(), []
        for line in lines:
            words = line.split(" ")
            assert len(words) % 4 == 0
            for at in range(0, len(words), 4):
                extension, offset, size, name = words[at : at + 4]
                assert name.endswith(f".{extension}") and int(offset) % 512 == 0
                found.append((name, data[int(offset) : int(offset) + int(size)]))
        with tarfile.open(shard) as tar:
            assert found == [(member.name, tar.extractfile(member).read()) for member in tar if member.isreg()]  # type: ignore[union-attr]


def test_dalis_index_is_read_in_place_of_a_scan_and_compared(shards: list[Path]) -> None:
    for path in shards[0].parent.rglob("*.feedline-index"):
        path.unlink()
    run(pattern(shards), "--as", "dali")
    for path in shards[0].parent.rglob("*.feedline-index"):
        path.unlink()
    dataset = feedline.open(pattern(shards))
    assert f"{len(shards)} shards used DALI's indexes instead of a scan" in dataset.explain()
    assert not list(shards[0].parent.rglob("*.feedline-index"))
    by_index = [(dataset.key(i), dataset.encoded(i)) for i in range(len(dataset))]
    state = dataset.fingerprint
    assert feedline.inspect(pattern(shards)).findings == []
    indexes = [shard.with_suffix(".idx") for shard in shards]
    texts = [index.read_text() for index in indexes]
    for index, text in zip(indexes, texts[1:] + texts[:1], strict=True):
        index.write_text(text)
    assert {found.code for found in feedline.inspect(pattern(shards)).findings} == {"foreign_index"}
    scanned = feedline.open(pattern(shards))
    assert f"the index '{indexes[0]}' does not belong to this shard and is not used: " in scanned.explain()
    assert [(scanned.key(i), scanned.encoded(i)) for i in range(len(scanned))] == by_index
    assert scanned.fingerprint == state


def test_energons_index_cuts_a_shard_between_samples(shards: list[Path], tmp_path: Path) -> None:
    run(pattern(shards), "--as", "energon")
    for shard in shards:
        content = Path(f"{shard.with_suffix('')}.tar.idx").read_bytes()
        begins = struct.unpack(f"<{len(content) // 8}Q", content)
        expected = keys(feedline.open(shard))
        assert len(begins) == len(expected) + 1
        data = shard.read_bytes()
        assert not any(data[begins[-1] :])
        for key, begin, end in zip(expected, begins[:-1], begins[1:], strict=True):
            (tmp_path / "one.tar").write_bytes(data[begin:end] + bytes(1024))
            assert keys(feedline.open(tmp_path / "one.tar", index=tmp_path / "indexes")) == [key]


def test_an_index_of_tfrecords_is_that_of_their_own_tool(folder: Path, tmp_path: Path) -> None:
    records = made_tfrecords.of_folder(folder, tmp_path / "records", shards=2)
    files = run(tmp_path / "records" / "train-{00000..00001}-of-00002", "--as", "tfindex")["files"]
    assert [Path(file).read_text() for file in files] == [made_tfrecords.index_of(path) for path in records]


def wids(path: Path, shards: list[dict[str, Any]], **more: Any) -> Path:
    path.write_text(json.dumps({"__kind__": "wids-shard-index-v1", "wids_version": 1, "shardlist": shards, **more}))
    return path


def test_names_are_relative_to_the_list_or_its_base(shards: list[Path], tmp_path: Path) -> None:
    expected = keys(feedline.open(shards[1]))
    count = len(expected)
    cases = [
        wids(tmp_path / "beside.json", [{"url": "shards/part-01.tar", "nsamples": count}]),
        wids(tmp_path / "base.json", [{"url": "part-01.tar"}], base=str(tmp_path / "shards")),
        wids(tmp_path / "absolute.json", [{"url": str(shards[1]), "nsamples": count}]),
        wids(tmp_path / "url.json", [{"url": shards[1].as_uri(), "nsamples": count}]),
    ]
    for path in cases:
        assert keys(feedline.open(path)) == expected, path.name
    splits = {name: {"filenames": [f"shards/part-{name}.tar"]} for name in ("00", "01")}
    (tmp_path / "_info.json").write_text(json.dumps({"splits": splits}))
    assert keys(feedline.open(f"{tmp_path}/_info.json#01")) == expected
    with pytest.raises(feedline.ConfigError, match=r"'00', '01'.*_info.json#00"):
        feedline.open(tmp_path / "_info.json")


def test_lists_over_http_name_what_is_next_to_them(shards: list[Path], tmp_path: Path) -> None:
    expected = keys(feedline.open(pattern(shards)))
    run(pattern(shards), "--as", "wids", "--output", tmp_path / "index.json")
    with serving(tmp_path) as server:
        assert keys(feedline.open(server.url("index.json"))) == expected
        assert keys(feedline.open(server.url("index.json?token=x"))) == expected
        assert {f"/shards/{shard.name}?token=x" for shard in shards} <= server.credentials


def test_counts_that_differ_name_the_shard(shards: list[Path], tmp_path: Path) -> None:
    right = [len(feedline.open(shard)) for shard in shards]
    for wrong in range(len(shards)):
        said = [{"url": str(shard), "nsamples": right[i] + (i == wrong)} for i, shard in enumerate(shards)]
        with pytest.raises(
            feedline.DataError, match=f"{right[wrong]} samples.*list specifies {right[wrong] + 1}"
        ) as caught:
            feedline.open(wids(tmp_path / "x.json", said))
        assert caught.value.shard == str(shards[wrong])
    feedline.open(wids(tmp_path / "x.json", said), missing="skip")  # which may omit some


@pytest.mark.parametrize(
    "said",
    [
        {"__kind__": "wids-shard-index-v1", "shardlist": []},
        {"__kind__": "wids-shard-index-v1", "shardlist": [{"nsamples": 3}]},
        {"__kind__": "wids-shard-index-v1", "shardlist": [{"url": "a.tar", "nsamples": "3"}]},
        {"__kind__": "wids-shard-index-v1", "shardlist": [{"url": "pipe:echo", "nsamples": 3}]},
        {"__kind__": "wids-shard-index-v1", "shardlist": [{"url": "a::b", "nsamples": 3}]},
        {"__kind__": "wids-shard-index-v1", "shardlist": [], "datasets": [{"source_url": "x"}]},
        {"splits": {"train": {"filenames": ["a.tar"], "shard_lengths": [1, 2]}}},
        {"splits": []},
        {"a.tar": 1, "b.tar": -1},
    ],
)
def test_lists_that_make_no_sense_are_config_errors(said: Any, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(json.dumps(said))
    with pytest.raises(feedline.ConfigError, match=r"x\.json"):
        feedline.open(tmp_path / "x.json")
    (tmp_path / "x.json").write_text('{"__kind__": "wids-shard-index-v1", ')
    with pytest.raises(feedline.ConfigError, match="not valid JSON"):
        feedline.open(tmp_path / "x.json")


def rename(path: Path, name: Callable[[str], str]) -> None:
    with tarfile.open(path) as old, tarfile.open(path.with_suffix(".new"), "w") as made:
        for member in old:
            content = old.extractfile(member)
            member.name = name(member.name)
            made.addfile(member, content)
    path.with_suffix(".new").replace(path)


def test_what_an_index_cannot_express_is_refused(shards: list[Path], folder: Path, tmp_path: Path) -> None:
    for kind, source in (("wids", folder), ("dali", "http://127.0.0.1:9/a.tar"), ("dali", tmp_path / "none.tar")):
        run(source, "--as", kind, status=2 if kind != "dali" or "http" in str(source) else 3)
    assert "--output" in run(shards[0], "--as", "dali", "--output", tmp_path / "x", status=2)["said"]
    (tmp_path / "other").mkdir()
    twin = shutil.copy(shards[0], tmp_path / "other")
    assert "have the same name" in run(f"{shards[0]}::{twin}", "--as", "open_clip", status=2)["said"]
    cut = tmp_path / "cut.tar"
    cut.write_bytes(shards[0].read_bytes()[:-10240])
    assert "cut.tar" in run(cut, "--as", "energon", status=3)["said"]
    rename(shards[0], lambda name: f"a b/{name}")
    assert "space" in run(shards[0], "--as", "dali", status=2)["said"]
    assert not list(shards[0].parent.glob("*.idx")) and not list(tmp_path.rglob("*unfinished"))
