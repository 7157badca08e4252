# SPDX-License-Identifier: Apache-2.0
"""Datasets on the Hub have the rows of `datasets`, in its order, after fewer requests."""

from __future__ import annotations

import io
import json
import re
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import made_hub
import numpy as np
import pytest

import feedline

Original = Callable[..., Any]

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
Image = pytest.importorskip("PIL.Image")

CARD = "---\nconfigs:\n- config_name: a\n  default: true\n  data_files:\n  - split: train\n    path: [z*, a*]\n---\n"


def parquet(first: int, rows: int) -> bytes:
    file = io.BytesIO()
    noise = np.random.default_rng(first).integers(0, 2**62, rows).tolist()  # so that it is large
    pq.write_table(pa.table({"id": list(range(first, first + rows)), "noise": noise}), file)
    return file.getvalue()


def jpeg(value: int) -> bytes:
    file = io.BytesIO()
    noise = np.random.default_rng(value).integers(0, 256, (48, 48, 3), np.uint8)
    noise[:16, :16] = value
    Image.fromarray(noise).save(file, "PNG")
    return file.getvalue()


def tar(values: list[int]) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for value in values:
            for name, content in ((f"{value}.png", jpeg(value)), (f"{value}.cls", str(value).encode())):
                member = tarfile.TarInfo(name)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    return file.getvalue()


def csv(*values: int) -> str:
    return "id\n" + "".join(f"{value}\n" for value in values)


METADATA = "".join(f'{{"file_name": "{i}.png", "id": {i}}}\n' for i in (2, 0, 1))
# dataset: its files, options, columns of datasets, fields of feedline
CASES: dict[str, tuple[dict[str, bytes | str], dict[str, str], list[str], tuple[str, ...] | None]] = {
    "org/card": (
        {"README.md": CARD, **{f"{name}.parquet": parquet(100 * i, 100) for i, name in enumerate("abz")}},
        {},
        ["id"],
        None,
    ),
    "org/shards": (
        {f"data/train-{i:05}-of-00003.parquet": parquet(200 * i, 200) for i in range(3)}
        | {"data/extra_one-00000-of-00001.parquet": parquet(0, 3), "other.parquet": parquet(9, 9)},
        {},
        ["id"],
        None,
    ),
    "org/folders": (
        {f"{folder}/{i}.csv": csv(len(folder) * 10 + i) for folder in ("train2017", "val2017") for i in range(12)},
        {"split": "validation"},
        ["id"],
        None,
    ),
    "org/files": ({"train.csv": csv(1, 2), "my-train-1.csv": csv(3), "extra.csv": csv(4)}, {}, ["id"], None),
    "org/both": ({"train_test.csv": csv(1, 2)}, {"split": "test"}, ["id"], None),
    "org/twice": ({"train-train.csv": csv(1, 2), "train.csv": csv(3)}, {}, ["id"], None),
    "org/all": ({"Train.csv": csv(1), "Test.csv": csv(2), ".x.csv": csv(3), "__y/z.csv": csv(4)}, {}, ["id"], None),
    "org/lines": ({"a.jsonl": '{"id": 1}\n{"id": 2}\n', "b.jsonl": '{"id": 3}\n', "c.csv": csv(9)}, {}, ["id"], None),
    "org/images": (
        {f"train/{label}/{i}.png": jpeg(10 * i + n) for n, label in enumerate(("b", "a", "a-b")) for i in range(3)},
        {},
        ["image", "label"],
        None,
    ),
    "org/metadata": (
        {**{f"train/{i}.png": jpeg(i) for i in range(4)}, "train/metadata.jsonl": METADATA},
        {},
        ["image", "id"],
        ("image=file_name", "id"),
    ),
    "org/tars": ({"train-0.tar": tar([3, 1]), "train-1.tar": tar([2])}, {}, ["png", "cls"], None),
}


def options_of(name: str) -> dict[str, str]:
    return {"split": "train", **CASES[name][1]}


def rows_of(name: str) -> list[list[Any]]:
    fields = CASES[name][3]
    dataset = feedline.open(f"hf://datasets/{name}", fields=fields or tuple(CASES[name][2]), **options_of(name))
    shown = []
    for i in range(len(dataset)):
        sample = dataset[i]
        values = [getattr(sample, field) for field in dataset.schema]
        shown.append([np.asarray(v)[:, 0, 0].tolist() if np.ndim(v) == 3 else np.asarray(v).tolist() for v in values])
    return shown


def test_rows_and_requests(original: Original, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "feedline"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with made_hub.serve() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        for name, case in CASES.items():
            hub.repository(name, case[0])
        given = [[name, options_of(name), CASES[name][2]] for name in CASES]
        read = original("tables", "read_hub.py", hub.url, tmp_path / "datasets", json.dumps(given))
        assert read["card"] == [CARD]
        theirs: dict[str, int] = {}
        case = ""
        for request in hub.requests:
            if found := re.fullmatch(r"/case/(\d+/\w+)", request.path):
                case = found[1]
            else:
                theirs[case] = theirs.get(case, 0) + 1
        counts: dict[str, tuple[int, int, int]] = {}
        for number, name in enumerate(CASES):
            hub.requests.clear()
            rows = rows_of(name)
            counts[name] = (len(hub.requests), theirs[f"{number}/streaming"], theirs[f"{number}/plain"])
            assert rows == read["streaming"][number] == read["plain"][number], name
    # revision, listing and, if there is one, card; then one request per small file, two per large one
    assert {name: ours for name, (ours, _, _) in counts.items()} == {
        "org/card": 3 + 2 * 3,
        "org/shards": 2 + 2 * 3 + 3,  # files of more than one read
        "org/folders": 2 + 12,
        "org/files": 2 + 2,
        "org/both": 2 + 1,
        "org/twice": 2 + 3,
        "org/all": 2 + 2,
        "org/lines": 2 + 2,
        "org/images": 2 + 2 * 9,
        "org/metadata": 2 + 1 + 2 * 3,
        "org/tars": 2 + 2 * 2 + 7,
    }
    for name, (ours, streaming, plain) in counts.items():
        assert ours < streaming, (name, counts)
        assert ours <= plain or name == "org/tars", (name, counts)  # it copies whole tars
