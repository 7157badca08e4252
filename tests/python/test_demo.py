# SPDX-License-Identifier: Apache-2.0
"""What tools/demo measures and shows, on a few pictures: the script itself runs for minutes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def demo(monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("torch")
    if not (ROOT / "examples/demo/demo.py").is_file():
        pytest.skip("not in a checkout")
    for folder in ("bench", "examples/demo"):
        monkeypatch.syspath_prepend(str(ROOT / folder))
    yield pytest.importorskip("demo")
    for name in ("demo", "measure", "processes", "pack", "photos", "training"):
        sys.modules.pop(name, None)


def test_the_demo_measures_every_loader(demo, folder, tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "BATCH_SIZE", 4)
    pack = sys.modules["pack"]
    pack.pack(folder, tmp_path)
    from rich.progress import Progress

    with Progress(disable=True) as bar:
        rows = demo.measure_loaders(folder, pack.brace_list(tmp_path), epochs=1, threads=1, bar=bar)
    assert [row["label"] for row in rows] == ["stock DataLoader", "Feedline, folder", "Feedline, tar"]
    assert all(row["images_per_s"] > 0 and row["first_batch_s"] > 0 and row["bare_bytes"] > 0 for row in rows)
