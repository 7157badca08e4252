# SPDX-License-Identifier: Apache-2.0
"""webdataset's shards over a network, read by Feedline's client if their URLs request it: the same samples as stock."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from lowered import plan_of
from PIL import Image
from range_server import RangeServer, serving

from feedline import ConfigError, DataLoader
from feedline.torch_loader.lowering.datasets import remote_shards
from feedline.torch_loader.native import shard_streams

wds = pytest.importorskip("webdataset", reason="webdataset is not installed")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RangeServer]:
    root = tmp_path_factory.mktemp("shards")
    for shard in range(3):
        with tarfile.open(root / f"{shard}.tar", "w") as tar:
            for number in range(6 * shard, 6 * shard + 6):
                stream = io.BytesIO()
                pixels = np.random.default_rng(number).integers(0, 256, (20, 24, 3), dtype=np.uint8)
                Image.fromarray(pixels).save(stream, "PNG")
                for extension, data in (("png", stream.getvalue()), ("cls", str(number % 5).encode())):
                    member = tarfile.TarInfo(f"{number:04}.{extension}")
                    member.size = len(data)
                    tar.addfile(member, io.BytesIO(data))
    with serving(root) as running:
        yield running


def samples(loader: Any) -> list[tuple[Any, ...]]:
    return [
        (sample["__key__"], sample["__url__"], bytes(sample["png"]), sample["cls"])
        for batch in loader
        for sample in batch
    ]


def same(batch: list[Any]) -> list[Any]:
    return batch


def stock(server: RangeServer, prefix: str = "") -> list[tuple[Any, ...]]:
    """As webdataset reads the files themselves, with the URLs that they would have had."""
    found = []
    for name in ("0.tar", "1.tar", "2.tar"):
        for sample in wds.WebDataset([str(server.root / name)], shardshuffle=False):
            found.append((sample["__key__"], prefix + server.url(name), sample["png"], sample["cls"]))
    return found


@pytest.mark.parametrize(
    ("before", "behind"), [("", ""), ("pipe:curl -s -f -L ", ""), ("pipe:curl --retry 3 -sL '", "'")]
)
@pytest.mark.parametrize("workers", [0, 2])
def test_samples_are_the_stock_ones(server: RangeServer, before: str, behind: str, workers: int) -> None:
    shards = [f"feedline.{before}{server.url(f'{i}.tar')}{behind}" for i in range(3)]
    data = wds.WebDataset(shards, shardshuffle=False)
    server.requests.clear()
    loader = DataLoader(data, batch_size=None if workers == 0 else 2, num_workers=workers, collate_fn=same)
    read = samples([[sample] for sample in loader] if workers == 0 else loader)
    expected = [(key, before + url + behind, *rest) for key, url, *rest in stock(server)]
    assert sorted(read) == sorted(expected)
    if workers == 0:
        assert read == expected
    assert all(found for _, found in server.requests), "by ranges, which curl does not ask for"
    text = loader.explain()
    assert "bytes of 3 shards" in text and "by Feedline's client" in text


def test_a_data_pipeline_and_images_are_lowered_too(server: RangeServer) -> None:
    vision = pytest.importorskip("torchvision.transforms", reason="torchvision is not installed")

    def pipeline(urls: list[str]) -> Any:
        return wds.DataPipeline(
            wds.SimpleShardList(urls),
            wds.split_by_worker,
            wds.tarfile_to_samples(),
            wds.decode("pil"),
            wds.to_tuple("png", "cls"),
            wds.map_tuple(vision.Compose([vision.CenterCrop(16), vision.ToTensor()]), None),
        )

    ours = DataLoader(pipeline([f"feedline.{server.url(f'{i}.tar')}" for i in range(3)]), batch_size=4)
    theirs = torch.utils.data.DataLoader(pipeline([str(server.root / f"{i}.tar") for i in range(3)]), batch_size=4)
    assert plan_of(ours) == "prefix"
    for mine, stock_batch in zip(ours, theirs, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(mine, stock_batch, strict=True))
    assert "transform  CenterCrop" in ours.explain()


@pytest.mark.parametrize("before", ["", "pipe:curl -sL "])
@pytest.mark.parametrize("composed", [False, True])
def test_all_shards_over_a_network_are_read_where_that_is_required(
    server: RangeServer, before: str, composed: bool
) -> None:
    urls = [before + server.url(f"{i}.tar") for i in range(3)]
    whole = wds.DataPipeline(wds.SimpleShardList(urls), wds.split_by_worker, wds.tarfile_to_samples())
    data = whole if composed else wds.WebDataset(urls, shardshuffle=False)
    server.requests.clear()
    loader = DataLoader(data, batch_size=None, lower="require")
    assert not server.requests and 'lower="require" requests it' in loader.explain()
    assert samples([[sample] for sample in loader]) == stock(server, before)
    assert server.requests and all(found for _, found in server.requests), "by ranges, which curl does not ask for"


def test_what_is_required_and_cannot_be_is_refused_with_its_reason(server: RangeServer, tmp_path: Path) -> None:
    def loader(data: Any, **options: Any) -> DataLoader:
        return DataLoader(data, batch_size=None, lower="require", **options)

    url = server.url("0.tar")
    local = wds.WebDataset([str(server.root / "0.tar")], shardshuffle=False)
    with pytest.raises(ConfigError, match="cannot run natively: read"):
        loader(local)
    with pytest.raises(ConfigError, match='lower="require" with pipe: supports only `curl URL`'):
        loader(wds.WebDataset([url, "pipe:cat 1.tar"], shardshuffle=False))
    with pytest.raises(ConfigError, match=r"1 shards are remote.*without a cache"):
        loader(wds.WebDataset([url], shardshuffle=False, cache_dir=str(tmp_path)))
    with pytest.raises(ConfigError, match=r"1 shards are remote.*worker_init_fn"):
        loader(wds.WebDataset([url], shardshuffle=False), num_workers=1, worker_init_fn=print)
    with pytest.raises(ConfigError, match=r"decode .images.: images are not transformed"):
        loader(wds.WebDataset([url], shardshuffle=False).decode("pil"))
    loader(wds.WebDataset([url], shardshuffle=False).decode("rgb8"))  # arrays, which the engine makes


def test_errors_are_handed_to_the_stages_own_handler(server: RangeServer) -> None:
    shards = [f"feedline.{server.url(name)}" for name in ("0.tar", "missing.tar", "2.tar")]
    with pytest.raises(Exception, match="404"):
        list(DataLoader(wds.WebDataset(shards, shardshuffle=False), batch_size=None))
    heard: list[Exception] = []

    def note(error: Exception) -> bool:
        heard.append(error)
        return True

    data = wds.WebDataset(shards, shardshuffle=False, handler=note)
    keys = [sample["__key__"] for sample in DataLoader(data, batch_size=None)]
    assert len(keys) == 12
    assert len(heard) == 1 and server.url("missing.tar") in str(heard[0].args)


def test_without_the_prefix_all_stays_as_it_was(server: RangeServer) -> None:
    data = wds.WebDataset([str(server.root / "0.tar")], shardshuffle=False)
    loader = DataLoader(data, batch_size=None)
    assert plan_of(loader) == "python"
    assert "Feedline's client" not in loader.explain()
    assert shard_streams.with_native_reads(data.pipeline) == data.pipeline


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("feedline.s3://box/a.tar", "s3://box/a.tar"),
        ("feedline.pipe:aws s3 cp --quiet s3://box/a.tar -", "s3://box/a.tar"),
        ("feedline.pipe:gsutil cat gs://box/a.tar", "gs://box/a.tar"),
        ("feedline.pipe:curl -s 'https://h/a.tar?x=1&y=2'", "https://h/a.tar?x=1&y=2"),
        ("feedline.pipe:curl --connect-timeout 30 -fsSL https://h/a.tar", "https://h/a.tar"),
    ],
)
def test_the_url_of_a_command_is_found(url: str, found: str) -> None:
    assert remote_shards.location(url) == found


@pytest.mark.parametrize(
    "command",
    [
        "curl -s https://h/a.tar | gzip -dc",
        "curl -s https://h/a.tar; rm -rf /",
        "curl -s $URL",
        "curl -H 'Authorization: Bearer hunter2' https://h/a.tar",
        "curl -r 0-99 https://h/a.tar",
        "curl -s https://h/a.tar https://h/b.tar",
        "curl -s https://h/a.tar --retry",
        "aws s3 cp s3://box/a.tar a.tar",
        "aws s3 cp s3://box/a.tar - --endpoint-url https://h",
        "cat a.tar",
        "curl -s 'https://h/a.tar",
    ],
)
def test_a_command_that_does_more_is_refused_and_not_run(command: str) -> None:
    with pytest.raises(ConfigError, match="remove 'feedline") as caught:
        DataLoader(wds.WebDataset([f"feedline.pipe:{command}"], shardshuffle=False), batch_size=None).explain()
    assert "hunter2" not in str(caught.value)


def test_where_no_one_reads_them_it_is_reported(server: RangeServer, tmp_path: Path) -> None:
    shards = [f"feedline.{server.url('0.tar')}"]
    with pytest.raises(ConfigError, match='cannot read them: lower="never"'):
        DataLoader(wds.WebDataset(shards, shardshuffle=False), batch_size=None, lower="never").explain()
    cached = wds.WebDataset(shards, shardshuffle=False, cache_dir=str(tmp_path))
    with pytest.raises(ConfigError, match="without a cache"):
        DataLoader(cached, batch_size=None).explain()


def test_a_stream_reads_as_a_file_does(server: RangeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard_streams, "_PIECE", 1000)
    whole = (server.root / "1.tar").read_bytes()
    with shard_streams.Stream(server.url("1.tar")) as stream:
        read = [stream.read(1), stream.read(2500), stream.read(0), stream.read(999), stream.read(), stream.read(5)]
    assert [len(part) for part in read[:4]] == [1, 2500, 0, 999]
    assert b"".join(read) == whole and read[-1] == b""
