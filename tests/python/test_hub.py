# SPDX-License-Identifier: Apache-2.0
"""Datasets on the Hugging Face Hub: configurations, splits, revisions, refusals, the local cache."""

from __future__ import annotations

import io
import json
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import made_hub
import made_litdata
import numpy as np
import pytest
from made_hub import TOKEN, MadeHub, etag_of

import feedline
from feedline import ConfigError, DataError, StorageError, packing, staging, verifying
from feedline.data.hub import card, file_kinds, split_files

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
Image = pytest.importorskip("PIL.Image")

_VARIABLES = (
    "HF_TOKEN",
    "HUGGING_FACE_HUB_TOKEN",
    "HF_TOKEN_PATH",
    "HF_HUB_CACHE",
    "HUGGINGFACE_HUB_CACHE",
    "HF_HUB_OFFLINE",
    "TRANSFORMERS_OFFLINE",
)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MadeHub]:
    for name in _VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "huggingface"))
    with made_hub.serve() as served:
        monkeypatch.setenv("HF_ENDPOINT", served.url)
        yield served


def parquet(first: int, rows: int, text: str = "") -> bytes:
    file = io.BytesIO()
    numbers = list(range(first, first + rows))
    noise = np.random.default_rng(first).integers(0, 2**62, rows).tolist()  # so that it is large
    pq.write_table(pa.table({"id": numbers, "text": [f"{text}{n}" for n in numbers], "noise": noise}), file)
    return file.getvalue()


def jpeg(value: int) -> bytes:
    file = io.BytesIO()
    Image.fromarray(np.full((16, 16, 3), value, np.uint8)).save(file, "JPEG", quality=95)
    return file.getvalue()


def ids(dataset: feedline.Dataset) -> list[int]:
    return [int(dataset[i].id) for i in range(len(dataset))]


CARD = """---
license: mit
configs:
- config_name: en
  default: true
  data_files:
  - split: train
    path: en/train-*
  - split: test
    path: [en/test.parquet]
- config_name: de
  data_dir: de
---
# A dataset
"""
FILES: dict[str, bytes | str] = {
    "README.md": CARD,
    "en/train-0.parquet": parquet(0, 400),
    "en/train-1.parquet": parquet(400, 300),
    "en/test.parquet": parquet(700, 20),
    "de/valid.parquet": parquet(900, 10),
}


def test_opening_sends_three_requests_before_those_for_data(hub: MadeHub) -> None:
    commit = hub.repository("org/name", FILES).branches["main"]
    dataset = feedline.open("hf://datasets/org/name", split="train")
    assert len(dataset) == 700
    assert [request.path.partition("?")[0] for request in hub.requests[:3]] == [
        "/api/datasets/org/name/revision/main",
        f"/api/datasets/org/name/tree/{commit}",
        f"/datasets/org/name/resolve/{commit}/README.md",
    ]
    assert all("en/train-" in request.path or request.host == "cdn" for request in hub.requests[3:])
    assert ids(dataset) == list(range(700))
    assert hub.count("/resolve/") == 3, "the card, and each large file once"


def test_configurations_and_splits_of_the_card(hub: MadeHub) -> None:
    hub.repository("org/name", FILES)
    source = "hf://datasets/org/name"
    assert ids(feedline.open(source, split="test")) == list(range(700, 720))
    assert ids(feedline.open(source, config="de")) == list(range(900, 910))
    for options, problem in (
        ({}, "has several splits: pass one of them as split=: 'train', 'test'"),
        ({"split": "dev"}, "has no split 'dev', only 'train', 'test'"),
        ({"config": "fr"}, "has no configuration 'fr', only 'en', 'de'"),
    ):
        with pytest.raises(ConfigError, match=problem):
            feedline.open(source, **options)
    with pytest.raises(ConfigError, match="config applies only to datasets on the Hub"):
        feedline.open("/nowhere", config="en")


def test_paths_and_patterns(hub: MadeHub) -> None:
    repository = hub.repository("org/name", FILES)
    commit = repository.branches["main"]
    repository.branches["refs/pr/1"] = repository.branches["v1"] = commit
    for source, rows in (
        ("hf://datasets/org/name/en/test.parquet", 20),
        ("hf://datasets/org/name/de", 10),
        ("hf://datasets/org/name@v1/de/", 10),
        ("hf://datasets/org/name@refs/pr/1/en/train-*.parquet", 700),
        (f"hf://datasets/org/name@{commit}/en/train-{{0..1}}.parquet", 700),
        (["hf://datasets/org/name/en/test.parquet", "hf://datasets/org/name@v1/de/valid.parquet"], 30),
        ("hf://datasets/org/name/en/test.parquet::hf://datasets/org/name/de/valid.parquet", 30),
    ):
        assert len(feedline.open(source)) == rows, source
    with pytest.raises(ConfigError, match=r"no file of .* matches 'x/\*'; it has"):
        feedline.open("hf://datasets/org/name/x/*")
    with pytest.raises(StorageError, match="no such file in this revision"):
        feedline.open("hf://datasets/org/name/en/other.parquet")
    with pytest.raises(ConfigError, match="write hf://datasets/ORG/NAME"):
        feedline.open("hf://datasets/name")


def test_a_standalone_yaml_overrides_the_card(hub: MadeHub) -> None:
    override = "configs:\n- config_name: one\n  data_files: de/*\n"
    hub.repository("org/name", FILES | {".huggingface.yaml": override})
    assert ids(feedline.open("hf://datasets/org/name")) == list(range(900, 910))


# ---- revisions ----


def test_a_moved_branch_keeps_the_opened_revision(hub: MadeHub) -> None:
    repository = hub.repository("org/name", {"train.parquet": parquet(0, 500)})
    dataset = feedline.open("hf://datasets/org/name")
    copy = pickle.dumps(dataset)
    repository.commit({"train.parquet": parquet(10_000, 500)})
    assert ids(dataset) == ids(pickle.loads(copy)) == list(range(500))
    assert int(feedline.open("hf://datasets/org/name")[0].id) == 10_000, "a new call looks the branch up again"


def test_a_state_of_another_revision_is_refused(hub: MadeHub) -> None:
    repository = hub.repository("org/name", {"train.parquet": parquet(0, 500)})
    before = repository.branches["main"]
    loader = feedline.open("hf://datasets/org/name").loader(100, shuffle=True)
    iterator = iter(loader)
    next(iterator)
    saved = loader.state_dict()
    assert saved["dataset"]["revisions"] == [f"hf://datasets/org/name@{before}"]
    rest = [batch.id.tolist() for batch in iterator]
    after = repository.commit({"train.parquet": parquet(10_000, 500)})  # of the same size and form
    moved = feedline.open("hf://datasets/org/name").loader(100, shuffle=True)
    with pytest.raises(ConfigError, match=f"@{before}, but the loader reads .*@{after}"):
        moved.load_state_dict(saved)
    pinned = feedline.open(f"hf://datasets/org/name@{before}").loader(100, shuffle=True)
    pinned.load_state_dict(saved)
    assert [batch.id.tolist() for batch in pinned] == rest


def test_a_renamed_dataset_is_followed(hub: MadeHub) -> None:
    hub.repository("org/new", FILES)
    hub.renamed["org/old"] = "org/new"
    dataset = feedline.open("hf://datasets/org/old", split="test")
    assert ids(dataset) == list(range(700, 720))
    assert "hf://datasets/org/new@" in dataset.loader(1).explain()
    assert hub.count("org/old") == 1


# ---- faults ----


def test_signed_urls_that_expire_in_an_epoch(hub: MadeHub) -> None:
    files = {f"train/{i:02}.parquet": parquet(i * 500, 500) for i in range(4)}
    hub.repository("org/name", files)
    hub.lifetime = 1.0
    loader = feedline.open("hf://datasets/org/name").loader(100, shuffle=True, memory_budget="8 MiB")
    seen: list[int] = []
    for batch in loader:
        seen += batch.id.tolist()
        if len(seen) in (300, 1200):
            time.sleep(1.1)
    assert sorted(seen) == list(range(2000))
    assert all(request.status < 400 for request in hub.requests if request.host == "hub")


def test_a_url_that_is_refused_is_renewed_once(hub: MadeHub) -> None:
    hub.repository("org/name", {f"train/{i:02}.parquet": parquet(i * 500, 500) for i in range(4)})
    loader = feedline.open("hf://datasets/org/name").loader(100, shuffle=True)
    hub.requests.clear()
    hub.cdn_refuses = 1
    seen = [one for batch in loader for one in batch.id.tolist()]
    assert sorted(seen) == list(range(2000))
    assert sum(request.status == 403 for request in hub.requests) == 1
    assert hub.count("/resolve/") == 1


def test_a_refusal_that_renewal_does_not_cure(hub: MadeHub) -> None:
    hub.repository("org/name", {"train.parquet": parquet(0, 500)})
    hub.cdn_refuses = 1000
    with pytest.raises(StorageError, match="403 Forbidden, Request has expired") as caught:
        feedline.open("hf://datasets/org/name")
    assert "train.parquet" in str(caught.value) and "Signature" not in str(caught.value)
    assert (hub.count("/blob/"), hub.count("/resolve/")) == (2, 2)


@pytest.mark.parametrize("style", ["window", "retry-after"])
@pytest.mark.parametrize("part", ["/revision/", "/tree/", "/resolve/"])
def test_429_is_waited_for(hub: MadeHub, style: str, part: str) -> None:
    hub.repository("org/name", {"train.parquet": parquet(0, 500)})
    hub.throttled = [(part, style, 1)]
    begun = time.monotonic()
    assert len(feedline.open("hf://datasets/org/name")) == 500
    assert time.monotonic() - begun >= 1
    statuses = [request.status for request in hub.requests]
    assert statuses.count(429) == 1, "nothing else is sent before the window ends"


def test_servers_that_answer_in_other_forms(hub: MadeHub) -> None:
    hub.repository("org/name", {"README.md": "hello", "train.parquet": parquet(0, 500), "test.csv": "id\n1\n"})
    hub.whole_for_ranges = hub.small_by_redirect = True
    assert ids(feedline.open("hf://datasets/org/name/train.parquet")) == list(range(500))
    assert ids(feedline.open("hf://datasets/org/name/test.csv")) == [1]


@pytest.mark.parametrize("host", ["", "https://huggingface.invalid"])
def test_listings_of_many_pages(hub: MadeHub, host: str) -> None:
    files: dict[str, bytes | str] = {f"train/{i:03}.csv": f"id\n{i}\n" for i in range(120)}
    hub.repository("org/name", files)
    hub.page, hub.next_host = 7, host
    assert ids(feedline.open("hf://datasets/org/name")) == list(range(120))
    assert hub.count("/tree/") == 18


def test_refusals_say_what_to_do(hub: MadeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.repository("org/private", FILES).is_private = True
    hub.repository("org/gated", FILES).is_gated = True
    hub.repository("org/name", FILES)

    def problem(name: str) -> str:
        with pytest.raises(StorageError) as caught:
            feedline.open(f"hf://datasets/{name}", split="train")
        return str(caught.value)

    assert "401 Unauthorized, Repository not found" in problem("org/none") and "HF_TOKEN" in problem("org/none")
    assert "it is private" in problem("org/private")
    assert "accept its conditions" in problem("org/gated") and "HF_TOKEN" in problem("org/gated")
    assert "no such branch, tag or commit" in problem("org/name@none")
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    assert "404 Not Found" in problem("org/none") and "the token may not read it" in problem("org/none")
    assert "403 Forbidden" in problem("org/gated") and "fine-grained" in problem("org/gated")
    assert len(feedline.open("hf://datasets/org/private", split="train")) == 700
    assert TOKEN not in problem("org/none") + problem("org/gated")


def test_the_token_goes_to_the_endpoint_only(hub: MadeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.repository("org/private", FILES).is_private = True

    def opened() -> None:
        hub.requests.clear()
        assert len(feedline.open("hf://datasets/org/private", split="test", listing_age=0)) == 20
        assert {request.headers.get("Authorization") for request in hub.requests if request.host == "hub"} == {
            f"Bearer {TOKEN}"
        }
        assert not any("Authorization" in request.headers for request in hub.requests if request.host == "cdn")
        assert all(request.headers["Accept-Encoding"] == "identity" for request in hub.requests)
        assert not any("If-Match" in request.headers for request in hub.requests)

    home = tmp_path / "huggingface"
    home.mkdir(exist_ok=True)
    (home / "token").write_text(TOKEN + "\n")
    opened()
    (home / "token").write_text("hf_other")
    other = tmp_path / "token"
    other.write_text(TOKEN)
    monkeypatch.setenv("HF_TOKEN_PATH", str(other))
    opened()
    monkeypatch.setenv("HF_TOKEN_PATH", "/nowhere")
    monkeypatch.setenv("HUGGING_FACE_HUB_TOKEN", TOKEN)
    opened()
    monkeypatch.setenv("HUGGING_FACE_HUB_TOKEN", "hf_other")
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    opened()


# ---- caches ----


def store_locally(home: Path, name: str, commit: str, files: dict[str, bytes | str], branch: str = "main") -> None:
    """Writes the cache of huggingface_hub."""
    folder = home / "hub" / f"datasets--{name.replace('/', '--')}"
    (folder / "blobs").mkdir(parents=True, exist_ok=True)
    (folder / "refs").mkdir(exist_ok=True)
    (folder / "refs" / branch).write_text(commit)
    for path, content in files.items():
        stored = content.encode() if isinstance(content, str) else content
        blob = folder / "blobs" / etag_of(stored)
        blob.write_bytes(stored)
        link = folder / "snapshots" / commit / path
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(os.path.relpath(blob, link.parent))


def test_files_in_the_local_cache_are_not_requested(hub: MadeHub, tmp_path: Path) -> None:
    commit = hub.repository("org/name", FILES).branches["main"]
    some = {path: FILES[path] for path in ("README.md", "en/train-0.parquet")}
    store_locally(tmp_path / "huggingface", "org/name", commit, some)
    assert ids(feedline.open("hf://datasets/org/name", split="train")) == list(range(700))
    asked = {request.path.partition(f"/{commit}")[2] for request in hub.requests if "/resolve/" in request.path}
    assert asked == {"/en/train-1.parquet"}


def test_offline_nothing_is_requested(hub: MadeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = hub.repository("org/name", FILES)
    commit = repository.branches["main"]
    home = tmp_path / "huggingface"
    store_locally(home, "org/name", commit, FILES)
    online = feedline.open("hf://datasets/org/name", split="train")
    repository.commit({"other.parquet": parquet(0, 1)})
    hub.requests.clear()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    offline = feedline.open("hf://datasets/org/name", split="train")
    assert ids(offline) == list(range(700))
    assert offline.fingerprint == online.fingerprint
    images = {f"{name}/{i}.jpg": jpeg(i) for name in ("cat", "dog") for i in range(3)}
    store_locally(home, "org/images", "a" * 40, images)
    resized = feedline.open("hf://datasets/org/images").resize((16, 16))
    labels = [int(one) for batch in resized.loader(2) for one in batch.label]
    assert labels == [0, 0, 0, 1, 1, 1]
    with pytest.raises(StorageError, match="HF_HUB_OFFLINE=1 forbids requests"):
        feedline.open("hf://datasets/org/other")
    with pytest.raises(StorageError, match="HF_HUB_OFFLINE=1 forbids requests"):
        feedline.open(f"hf://datasets/org/name@{'b' * 40}")
    assert hub.requests == []


def test_the_node_cache_fetches_each_file_once(hub: MadeHub, tmp_path: Path) -> None:
    hub.repository("org/name", {"train.parquet": parquet(0, 5000)})
    for _ in range(2):
        dataset = feedline.open("hf://datasets/org/name", cache=tmp_path / "node")
        for _ in range(2):
            assert sorted(one for batch in dataset.loader(500, shuffle=True) for one in batch.id.tolist()) == list(
                range(5000)
            )
        sent = sum(request.sent for request in hub.requests if request.host == "cdn")
        assert sent <= len(parquet(0, 5000)) + 70_000, "opening reads the footer"
        hub.requests.clear()
    assert sent == 0, "the second dataset reads the copy"


def test_whole_copies_are_compared_with_the_listing(hub: MadeHub, tmp_path: Path) -> None:
    hub.repository("org/name", {"train.parquet": parquet(0, 5000)})
    hub.is_damaged = True
    dataset = feedline.open("hf://datasets/org/name", cache=tmp_path / "node", verify="headers")
    with pytest.raises(StorageError, match="the Hub's listing") as caught:
        list(dataset.loader(500))
    assert "train.parquet" in str(caught.value)
    hub.is_damaged = False
    assert len(list(dataset.loader(500))) == 10


def test_a_token_that_ends_in_an_epoch(hub: MadeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {f"train/{i:02}.parquet": parquet(i * 5000, 5000) for i in range(4)}
    repository = hub.repository("org/name", files)
    repository.is_private = True
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    dataset = feedline.open("hf://datasets/org/name")
    hub.lifetime = 0.2  # of the URLs that follow
    hub.cdn_refuses = 1
    monkeypatch.setattr(made_hub, "TOKEN", "hf_new")
    with pytest.raises(StorageError, match=r"401 Unauthorized, .*the token may not read it"):
        list(dataset.loader(500))


# ---- formats ----


def test_images_in_folders(hub: MadeHub) -> None:
    files = {f"train/{name}/{i}.jpg": jpeg(20 * i + n) for n, name in enumerate(("dog", "cat")) for i in range(3)}
    hub.repository("org/name", files | {"test/cat/0.jpg": jpeg(7)})
    dataset = feedline.open("hf://datasets/org/name", split="train")
    assert dataset.classes == ["cat", "dog"]
    assert [int(dataset[i].label) for i in range(6)] == [0, 0, 0, 1, 1, 1]
    assert [int(dataset[i].image[0, 0, 0]) for i in range(6)] == [1, 21, 41, 0, 20, 40]
    assert feedline.inspect("hf://datasets/org/name", split="train").samples == 6
    assert not hasattr(feedline.open("hf://datasets/org/name", split="test")[0], "label"), "there is one class"
    hub.repository("org/deep", {"cat/1.jpg": jpeg(1), "dog/more/2.jpg": jpeg(2)})
    assert not hasattr(feedline.open("hf://datasets/org/deep")[0], "label"), "the files are at different depths"


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_images_with_metadata_are_in_its_order(hub: MadeHub, form: str) -> None:
    rows = [(2, "two"), (0, "zero"), (1, "one")]
    jsonl = "".join(f'{{"file_name": "{i}.jpg", "caption": "{text}"}}\n' for i, text in rows)
    csv = "file_name,caption\n" + "".join(f"{i}.jpg,{text}\n" for i, text in rows)
    files = {f"train/{i}.jpg": jpeg(20 * i) for i in range(4)}
    hub.repository("org/name", files | {f"train/metadata.{form}": jsonl if form == "jsonl" else csv})
    dataset = feedline.open("hf://datasets/org/name")
    assert [int(dataset[i].image[0, 0, 0]) for i in range(len(dataset))] == [40, 0, 20]
    captioned = feedline.open("hf://datasets/org/name", fields=("image=file_name", "caption:text"))
    assert captioned[0].caption == "two"


def test_tables_tars_and_indexed_folders(hub: MadeHub, tmp_path: Path) -> None:
    import tarfile

    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as archive:
        for i in range(4):
            for name, content in ((f"{i}.jpg", jpeg(i)), (f"{i}.cls", str(i).encode())):
                member = tarfile.TarInfo(name)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    hub.repository("org/tars", {"train-000.tar": tar.getvalue()})
    assert [int(feedline.open("hf://datasets/org/tars")[i].label) for i in range(4)] == [0, 1, 2, 3]
    hub.repository("org/lines", {"train.jsonl": '{"id": 5}\n{"id": 6}\n', "test.jsonl": '{"id": 7}\n'})
    assert ids(feedline.open("hf://datasets/org/lines", split="train")) == [5, 6]
    folder = tmp_path / "images"
    for i in range(6):
        path = folder / ("cat" if i < 3 else "dog") / f"{i}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(jpeg(i))
    packing.pack(folder, tmp_path / "packed")
    packing.pack(folder, tmp_path / "mds", to="mds")
    stored = {
        str(path.relative_to(tmp_path)): path.read_bytes()
        for form in ("packed", "mds")
        for path in sorted((tmp_path / form).rglob("*"))
        if path.is_file()
    }
    hub.repository(
        "org/packed", {"train/" + path.split("/", 1)[1]: stored[path] for path in stored if "packed" in path}
    )
    assert len(feedline.open("hf://datasets/org/packed/train")) == 6
    assert len(feedline.open("hf://datasets/org/packed", split="train")) == 6
    hub.repository("org/mds", {path.split("/", 1)[1]: stored[path] for path in stored if path.startswith("mds")})
    assert len(feedline.open("hf://datasets/org/mds")) == 6
    lit = made_litdata.of_folder(folder, tmp_path / "lit", chunks=2)
    chunks = {f"train/{path.name}": path.read_bytes() for path in lit.iterdir()}
    hub.repository("org/lit", {"README.md": "hello"} | chunks)
    assert len(feedline.open("hf://datasets/org/lit", split="train")) == 6
    with pytest.raises(ConfigError, match="has no split 'test', only 'train'"):
        feedline.open("hf://datasets/org/lit", split="test")


def test_files_of_other_kinds_are_named(hub: MadeHub) -> None:
    hub.repository("org/pdf", {"a.pdf": b"x", "b.pdf": b"y"})
    with pytest.raises(ConfigError, match=r"consists of pdf files, which this version cannot open: 'a.pdf', 'b.pdf'"):
        feedline.open("hf://datasets/org/pdf")
    hub.repository("org/none", {"README.md": "hello", "x.bin": b"1"})
    with pytest.raises(ConfigError, match="has no files of a known kind"):
        feedline.open("hf://datasets/org/none")


def test_the_first_part_of_a_conversion_is_not_taken_for_the_whole(hub: MadeHub) -> None:
    repository = hub.repository("org/name", FILES)
    repository.commit(
        {"en/partial-train/0000.parquet": parquet(0, 9), "en/test/0000.parquet": parquet(9, 2)}, "refs/convert/parquet"
    )
    source = "hf://datasets/org/name@~parquet"
    assert ids(feedline.open(source, split="test")) == [9, 10]
    with pytest.raises(ConfigError, match="'partial-train' is only its first part"):
        feedline.open(source, split="train")
    assert len(feedline.open(source, split="partial-train")) == 9


def test_the_commands_accept_the_hub(hub: MadeHub, tmp_path: Path) -> None:
    hub.repository("org/name", FILES)
    assert feedline.inspect("hf://datasets/org/name", config="en", split="test").samples == 20
    assert verifying.verify("hf://datasets/org/name/en/test.parquet").samples == 20
    staged = staging.stage("hf://datasets/org/name/en/test.parquet", tmp_path / "staged")
    assert ids(feedline.open(staged.opens)) == list(range(700, 720))
    packing.pack("hf://datasets/org/name/en/test.parquet", tmp_path / "packed", to="parquet")
    assert len(feedline.open(tmp_path / "packed")) == 20


def test_staging_accepts_a_split_and_a_configuration(hub: MadeHub, tmp_path: Path) -> None:
    hub.repository("org/name", FILES)
    source = "hf://datasets/org/name"
    staged = staging.stage(source, tmp_path / "python", split="test", config="en")
    assert ids(feedline.open(staged.opens)) == ids(feedline.open(source, split="test", config="en"))
    command = [sys.executable, "-m", "feedline", "stage", source, str(tmp_path / "command"), "--config", "de", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert ids(feedline.open(json.loads(done.stdout)["opens"])) == ids(feedline.open(source, config="de"))
    with pytest.raises(ConfigError, match="stage: split='train' applies to datasets on the Hub"):
        staging.stage(tmp_path / "python", tmp_path / "other", split="train")


@pytest.mark.parametrize("config", ["flat", "classes"])
def test_inspect_counts_pictures_as_open_does(hub: MadeHub, tmp_path: Path, config: str) -> None:
    entries = "".join(f"- config_name: {name}\n  data_files: {name}/**\n" for name in ("flat", "classes"))
    pictures = {f"flat/{i}.jpg": jpeg(i) for i in range(5)}
    pictures |= {f"classes/{'ab'[i % 2]}/{i}.jpg": jpeg(i) for i in range(6)}
    hub.repository("org/pictures", {"README.md": f"---\nconfigs:\n{entries}---\n", **pictures})
    source = "hf://datasets/org/pictures"
    count = len(feedline.open(source, config=config))
    assert feedline.inspect(source, config=config).samples == count == (5 if config == "flat" else 6)
    command = [sys.executable, "-m", "feedline", "inspect", source, "--config", config, "--all", "--json"]
    shown = json.loads(subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout)
    assert shown["samples"] == shown["images"]["looked_at"] == count
    assert verifying.verify(source, config=config).samples == count
    assert packing.pack(source, tmp_path / "out", config=config).samples == count


def test_the_commands_accept_a_configuration(hub: MadeHub, tmp_path: Path) -> None:
    hub.repository("org/name", FILES)
    source = "hf://datasets/org/name"

    def samples(*arguments: Any) -> int:
        command = [sys.executable, "-m", "feedline", *map(str, arguments), "--config", "de", "--json"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert done.returncode in (0, 1), done.stderr
        return int(json.loads(done.stdout)["samples"])

    assert samples("inspect", source) == samples("verify", source) == 10
    assert samples("pack", source, tmp_path / "packed", "--to", "parquet") == 10
    assert len(feedline.open(tmp_path / "packed")) == 10
    assert packing.shard_count(source, config="de", samples_per_shard=4) == 3
    entries = "".join(f"- config_name: {name}\n  data_files: {name}/**\n" for name in ("en", "de"))
    pictures = {f"{name}.jpg": jpeg(9) for name in ("en/a/0", "de/a/0", "de/b/1")}
    hub.repository("org/pictures", {"README.md": f"---\nconfigs:\n{entries}---\n", **pictures})
    assert samples("inspect", "--all", "hf://datasets/org/pictures") == 2


# ---- rules ----


@pytest.mark.parametrize(
    ("paths", "splits"),
    [
        (["Train.csv", "Test.csv"], {"train": ["Test.csv", "Train.csv"]}),
        (["mytrain.csv", "mytest.csv"], {"train": ["mytest.csv", "mytrain.csv"]}),
        (["train.csv", "extra.csv"], {"train": ["train.csv"]}),
        (["train/a.csv", "b/test.csv"], {"train": ["train/a.csv"]}),
        (["train_test.csv"], {"train": ["train_test.csv"], "test": ["train_test.csv"]}),
        (["train2017/a.jpg", "val2017/b.jpg"], {"train": ["train2017/a.jpg"], "validation": ["val2017/b.jpg"]}),
        (["a/my-dev/x.csv", "a/testing.csv"], {"validation": ["a/my-dev/x.csv"]}),
        (["a.csv", ".hidden.csv", "__x/b.csv", "README.md", "config.json"], {"train": ["a.csv"]}),
        (["logs/a.eval", "train.csv"], {"logs": ["logs/a.eval"]}),
        (["x/task.toml", "x/instruction.md", "train.csv"], {"test": ["x/task.toml", "x/instruction.md"]}),
        (
            ["data/b-00000-of-00001.parquet", "data/test-00000-of-00001-x.parquet", "train.parquet"],
            {"test": ["data/test-00000-of-00001-x.parquet"], "b": ["data/b-00000-of-00001.parquet"]},
        ),
    ],
)
def test_splits_by_names(paths: list[str], splits: dict[str, list[str]]) -> None:
    found = split_files.files_of(split_files.patterns_by_name(paths), paths)
    assert found == splits and list(found) == list(splits)


def test_patterns() -> None:
    paths = ["a.csv", "b/a.csv", "b/c/a.csv", "b/[x].csv", ".h/a.csv"]
    for pattern, matched in (
        ("*.csv", ["a.csv"]),
        ("**/*.csv", ["a.csv", "b/[x].csv", "b/a.csv", "b/c/a.csv"]),
        ("b/*", ["b/[x].csv", "b/a.csv"]),
        ("b/**", ["b/[x].csv", "b/a.csv", "b/c/a.csv"]),
        ("?.csv", ["a.csv"]),
        ("[!b].csv", ["a.csv"]),
        (".h/*", [".h/a.csv"]),
        ("./a.csv", ["a.csv"]),
        ("A.csv", []),
    ):
        assert split_files.matching(pattern, paths) == matched, pattern
    with pytest.raises(ConfigError, match=r"\*\* must be a whole name"):
        split_files.matching("a**", paths)
    with pytest.raises(ConfigError, match=r"the file 'x\.csv', named by the split 'train', does not exist"):
        split_files.files_of({"train": ["x.csv"]}, paths)


def test_damaged_cards() -> None:
    def problem(yaml: str) -> str:
        with pytest.raises((DataError, ConfigError)) as caught:
            card.default_of("D", card.configs_of("D", f"---\n{yaml}\n---\n", None))
        return str(caught.value)

    assert "line" in problem("a: [")
    assert "must be a list" in problem("configs: x")
    assert "has no 'config_name'" in problem("configs:\n- data_files: x")
    entry = "configs:\n- config_name: a\n  data_files:\n  - split: {}\n    path: x\n{}"
    assert "exactly the keys" in problem(entry.format("train", "    more: 1"))
    assert "must consist of letters" in problem(entry.format("a-b", ""))
    assert "is repeated" in problem(entry.format("a", "  - split: a\n    path: y"))
    two = "configs:\n- config_name: a\n{0}- config_name: b\n{0}"
    assert "several configurations and no default" in problem(two.format(""))
    assert "several default configurations" in problem(two.format("  default: true\n"))


def test_kinds_by_extensions() -> None:
    for paths, kind in (
        (["a.parquet", "b.csv"], "parquet"),
        (["a.csv", "b.csv", "c.parquet"], "csv"),
        (["a.jpg", "metadata.csv", "x/metadata.csv"], "image"),
        (["a.jsonl.gz"], "json"),
        (["a.unknown"], ""),
    ):
        assert file_kinds.kind_of(paths) == kind, paths
    assert file_kinds.of_kind(["a.jpg", "metadata.csv", "b.csv"], "image") == ["a.jpg"]
