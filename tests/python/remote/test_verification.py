# SPDX-License-Identifier: Apache-2.0
"""``open(verify=...)``: whole shards are compared with the checksums from packing or from their server."""

from __future__ import annotations

import base64
import json
import re
import shutil
import threading
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import made_data
import numpy as np
import pytest
from range_server import RangeServer, serving
from running_processes import HANG_S

import feedline
from feedline import packing


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Shards with the manifest that packing writes next to them."""
    folder = tmp_path_factory.mktemp("verified")
    photos = made_data.make_folder(folder / "photos", 20)
    packing.pack(photos, folder / "shards", samples_per_shard=20)
    return folder / "shards"


@pytest.fixture
def server(packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RangeServer]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "indexes"))
    shutil.copytree(packed, tmp_path / "served")
    for index in (tmp_path / "served").glob("*.fidx*"):
        index.unlink()
    with serving(tmp_path / "served") as running:
        running.sums = lambda data: {"x_amz_checksum_crc32": crc32(data)}
        yield running


def crc32(data: bytes) -> str:
    return base64.b64encode(zlib.crc32(data).to_bytes(4, "big")).decode()


def shards_of(packed: Path) -> str:
    names = sorted(path.name.removesuffix(".tar") for path in packed.glob("*.tar"))
    return f"{{{names[0]}..{names[-1]}}}.tar"


def pixels(data: feedline.Dataset) -> list[bytes]:
    with data.center_crop(8).loader(10, output="numpy", num_workers=2) as loader:
        return [np.asarray(batch[0]).tobytes() for batch in loader]


@pytest.mark.parametrize("verify", ["manifest", "headers"])
def test_what_fits_is_read_and_reported_to_be_compared(
    server: RangeServer, packed: Path, tmp_path: Path, verify: str
) -> None:
    expected = pixels(feedline.open(f"{packed}/{shards_of(packed)}"))
    data = feedline.open(server.url(shards_of(packed)), cache=tmp_path / "cache", verify=verify)
    assert pixels(data) == expected
    with data.center_crop(8).loader(10, output="numpy") as loader:
        assert "3 fetched objects matched their expected checksums" in loader.explain()


@pytest.mark.parametrize("verify", ["manifest", "headers"])
def test_a_damaged_shard_is_an_error_and_no_copy(
    server: RangeServer, packed: Path, tmp_path: Path, verify: str
) -> None:
    """Damaged in storage after it was indexed: only a checksum detects this."""
    source = server.url(shards_of(packed))
    pixels(feedline.open(source))  # from now on, there is an index
    damaged = server.root / "000001.tar"
    assert damaged.is_file(), sorted(packed.iterdir())
    server.damage = lambda number, body: (
        body[:-1] + bytes([body[-1] ^ 1]) if server.requests[number][0] == "/000001.tar" else body
    )
    with pytest.raises(feedline.StorageError) as caught:
        pixels(feedline.open(source, cache=tmp_path / "cache", verify=verify))
    text = str(caught.value)
    assert "000001.tar" in text and "verify=None" in text
    kind = "sha256" if verify == "manifest" else "crc32"
    assert len(re.findall(rf"{kind} [0-9a-f]+", text)) == 2, "both sums"
    copies = [json.dumps(str(path)) for path in (tmp_path / "cache").rglob("*.object")]
    assert len(copies) <= 2


@pytest.mark.parametrize("verify", ["manifest", "headers"])
def test_damage_under_way_is_fetched_again(server: RangeServer, packed: Path, tmp_path: Path, verify: str) -> None:
    source = server.url(shards_of(packed))
    expected = pixels(feedline.open(source))
    first: list[int] = []

    def once(number: int, body: bytes) -> bytes:
        if server.requests[number][0] != "/000001.tar" or len(body) < 600 or (first and number not in first):
            return body
        first.append(number)
        return body[:-1] + bytes([body[-1] ^ 1])

    server.damage = once
    assert pixels(feedline.open(source, cache=tmp_path / "cache", verify=verify)) == expected
    assert first, "it was damaged"


def test_nothing_is_asked_or_compared_by_default(server: RangeServer, packed: Path, tmp_path: Path) -> None:
    server.sums = lambda data: {"x_amz_checksum_crc32": "AAAAAA=="}
    source = server.url(shards_of(packed))
    assert pixels(feedline.open(source, cache=tmp_path / "cache"))
    assert not [path for path, asked in server.requests if not asked and path.endswith(".tar")], "no HEAD"
    assert not [path for path, _ in server.requests if path.endswith(".json")]


def test_a_cut_shard_is_noticed_when_it_is_opened(server: RangeServer, packed: Path) -> None:
    shard = server.root / "000001.tar"
    shard.write_bytes(shard.read_bytes()[:-512])
    with pytest.raises(feedline.StorageError, match=r"bytes, but feedline-pack\.json next to it lists"):
        feedline.open(server.url(shards_of(packed)), verify="manifest")
    assert feedline.open(f"{packed}/{shards_of(packed)}", verify="manifest"), "local ones have the length"


def test_without_a_manifest_that_names_it_nothing_is_opened(server: RangeServer, packed: Path, tmp_path: Path) -> None:
    manifest = server.root / "feedline-pack.json"
    content = json.loads(manifest.read_text())
    del content["shards"][1]
    manifest.write_text(json.dumps(content))
    with pytest.raises(feedline.ConfigError, match=r"000001\.tar' is missing from feedline-pack\.json"):
        feedline.open(server.url(shards_of(packed)), verify="manifest")
    manifest.write_text("{}")
    with pytest.raises(feedline.DataError, match=r"feedline-pack\.json, which verify=.* is damaged"):
        feedline.open(server.url(shards_of(packed)), verify="manifest")
    manifest.unlink()
    with pytest.raises(feedline.ConfigError, match=r"feedline-pack\.json.*cannot be read"):
        feedline.open(server.url(shards_of(packed)), verify="manifest")
    assert (packed / "feedline-pack.json").exists()  # a copy of it is used
    assert len(feedline.open(packed, verify="manifest")) > 0


def test_other_words_are_refused(packed: Path) -> None:
    with pytest.raises(feedline.ConfigError, match="verify must be"):
        feedline.open(f"{packed}/{shards_of(packed)}", verify="everything")
    with pytest.raises(feedline.ConfigError, match="hedge"):
        feedline.open(f"{packed}/{shards_of(packed)}", hedge="yes")  # type: ignore[arg-type]


def test_second_requests_change_no_batch_and_are_explained(server: RangeServer, packed: Path) -> None:
    data = feedline.open(server.url(shards_of(packed)), hedge=True)
    assert pixels(data) == pixels(feedline.open(f"{packed}/{shards_of(packed)}"))
    with data.center_crop(8).loader(10, output="numpy") as loader:
        assert "second requests for late ones" in loader.explain()


def test_second_requests_are_counted_as_the_server_sees_them(server: RangeServer, packed: Path, tmp_path: Path) -> None:
    """One request of each epoch is not answered until it is repeated."""
    data = feedline.open(server.url(shards_of(packed)), hedge=True).center_crop(8)
    again = threading.Event()
    held: list[tuple[str, str]] = []
    known = 80  # number of responses after which late ones can be recognised

    def hold_one(number: int, path: str) -> str:
        asked = server.requests[number]
        if held and asked == held[0]:
            again.set()
        elif not held and number >= known:
            held.append(asked)
            again.wait(HANG_S)
        return ""

    server.fault = hold_one
    with data.loader(5, output="numpy", shuffle=True) as loader:
        assert loader.stats()["hedge"] == {"requests": 0, "won": 0, "dropped_bytes": 0}
        counted = {"won": 0}
        while not counted["won"] and len(server.requests) < 50 * known:
            again.clear()
            held.clear()
            for _ in loader:
                pass
            counted = loader.stats()["hedge"]
    twice = sum(count - 1 for count in Counter(server.requests).values())
    assert 1 <= counted["won"] <= counted["requests"] <= twice
    with feedline.open(f"{packed}/{shards_of(packed)}").center_crop(8).loader(5, output="numpy") as loader:
        assert loader.stats()["hedge"] is None


def test_a_list_is_not_asked_for_by_its_name(server: RangeServer, packed: Path) -> None:
    feedline.open(server.url(shards_of(packed)))
    assert server.requests and not [path for path, _ in server.requests if "{" in path]
