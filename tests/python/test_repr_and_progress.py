# SPDX-License-Identifier: Apache-2.0
"""The representation of datasets, loaders and statistics in a notebook or a terminal, and the progress bar of an
epoch.
"""

from __future__ import annotations

import io
import pickle
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import made_data
import pytest

import feedline
from feedline.loader import progress
from feedline.loader.statistics import Statistics


class Cells(HTMLParser):
    """Returns the text of every cell; fails if elements are not closed in the right order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.cells: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag != "br":
            self.open.append(tag)
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("td", "th"):
            self.cells[-1] += data


@pytest.fixture
def dataset(tmp_path: Path) -> feedline.Dataset:
    """21 images in 3 classes, in a folder whose name contains HTML characters."""
    made_data.make_folder(tmp_path / "<b>photos&", per_class=7)
    return feedline.open(tmp_path / "<b>photos&").resize((8, 8))


def test_a_dataset_is_shown_with_its_fields_and_escaped(dataset: feedline.Dataset) -> None:
    shown = dataset._repr_html_()
    cells = Cells(shown).cells
    assert cells[cells.index("source") + 1] == dataset.source and "<b>" not in shown
    assert cells[cells.index("samples") + 1] == "21"
    assert cells[cells.index("classes") + 1] == f"3: {', '.join(dataset.classes)}"
    assert cells[cells.index("image") + 1 :][:3] == ["uint8", "3 x 8 x 8", "stack"]


def test_a_dataset_whose_images_differ_is_shown_too(dataset: feedline.Dataset) -> None:
    unsized = feedline.open(dataset.source)
    cells = Cells(unsized._repr_html_()).cells
    assert "3 x -1 x -1" in cells


def test_a_loader_reports_what_it_gives_and_shows_its_stages(dataset: feedline.Dataset) -> None:
    loader = dataset.loader(4, output="numpy")
    assert repr(loader) == "<feedline.Loader of 6 batches of 4: image uint8 (3, 8, 8), label int64 (); epoch 0>"
    assert "uint8 (3, 8, 8)" in Cells(loader._repr_html_()).cells
    assert "storage" not in Cells(loader._repr_html_()).cells, "nothing has run"
    assert sum(len(batch.label) for batch in loader) == 21
    cells = Cells(loader._repr_html_()).cells
    assert cells[cells.index("consumer") + 1] == "6" and cells[cells.index("samples") + 1] == "21"
    loader.close()
    assert repr(loader) == "<feedline.Loader of 6 batches, closed>" and "closed" in loader._repr_html_()


@pytest.fixture
def table(folder: Path, tmp_path: Path) -> feedline.Dataset:
    """A CSV of images and labels with a caption, and with a number that no field reads."""
    paths = sorted(folder.rglob("*.jpg"))
    rows = [f"{path},{i},text {i},{i / 2}" for i, path in enumerate(paths)]
    (tmp_path / "table.csv").write_text("\n".join(["image,label,caption,x", *rows]) + "\n")
    fields = ("image", "label", "caption:text")
    return feedline.open(tmp_path / "table.csv", fields=fields).collate("list", fields="image")


def test_reprs_show_fields_and_columns_that_were_not_opened(table: feedline.Dataset) -> None:
    left = "not opened: x (numbers)"
    fields = "image uint8 (3, -1, -1), label int64 (), caption text"
    count = len(table)
    assert repr(table) == f"<feedline.Dataset {table.source!r} (table, {count} samples; {fields}; {left})>"
    loader = table.loader(4, output="numpy")
    assert f" batches of 4: {fields}; {left}; epoch 0>" in repr(loader)
    cells = Cells(loader._repr_html_()).cells
    assert cells[:8] == [
        "image",
        "uint8 (3, -1, -1)",
        "label",
        "int64 ()",
        "caption",
        "text",
        "not opened",
        "x (numbers)",
    ]
    called: list[int] = []
    mapped = table.map(lambda label: called.append(label), "label")
    assert "map(" in repr(mapped) and not called, "only the schema calls functions"


def test_batches_and_samples_show_shapes_and_not_pixels(table: feedline.Dataset) -> None:
    sample = table[0]
    shape = sample.image.shape
    left = "; not opened: x (numbers))"
    assert repr(sample) == f"Batch(image=uint8 {shape}, label=0, caption='text 0'{left}"
    batch = next(iter(table.loader(4, output="numpy")))
    expected = f"image=list of 4: uint8 {shape}, ..., label=int64 (4,) [0, 1, 2, 3], caption=list of 4: 'text 0', ..."
    assert repr(batch) == f"Batch({expected}{left}"
    cells = Cells(batch._repr_html_()).cells
    assert cells[2:4] == ["label", "int64 (4,) [0, 1, 2, 3]"] and cells[-2:] == ["not opened", "x (numbers)"]
    many = next(iter(table.loader(9, output="numpy")))
    assert "label=int64 (9,)," in repr(many), "values of long vectors are left out"


def test_batches_and_samples_are_instances_of_the_public_type(table: feedline.Dataset) -> None:
    batch = next(iter(table.loader(4, output="numpy")))
    assert isinstance(batch, feedline.Batch) and isinstance(table[0], feedline.Batch)
    again = pickle.loads(pickle.dumps(batch))
    assert isinstance(again, feedline.Batch) and again._fields == ("image", "label", "caption")
    assert again.label.tolist() == batch.label.tolist()


def test_a_torch_batch_shows_dtype_and_device() -> None:
    torch = pytest.importorskip("torch")
    from feedline.loader import shown_fields

    assert shown_fields.short(torch.zeros(2, 3, dtype=torch.bfloat16)) == "bfloat16 (2, 3)"
    assert shown_fields.short(torch.zeros(2, device="meta")) == "float32 (2,) on meta"


def test_statistics_are_a_dict_and_read_as_a_table() -> None:
    stage = {"items": 1200, "items_per_s": 600.0, "busy_s": 1.5, "starved_s": 0.25, "blocked_s": 0.0}
    values = {"threads": 2, "wall_s": 2.0, "held_bytes": 3 << 20, "samples_per_s": 600.04, "cache": None}
    latency = {"p50": 0.5, "p99": None}
    stats = Statistics({**values, "stages": {"decode": {**stage, "latency_ms": latency}}})
    assert dict(stats)["stages"]["decode"]["busy_s"] == 1.5
    head, heads, row = repr(stats).split("\n")
    assert head == "<feedline stats: threads 2, wall 2.00 s, held_bytes 3.0 MiB, samples_per_s 600.0"
    assert heads.split() == ["stage", "items", "items/s", "busy", "starved", "blocked", "p50", "p99"]
    assert row.split() == ["decode", "1,200", "600.0", "1.50", "s", "0.25", "s", "0.00", "s", "0.50", "ms>"]
    assert Cells(stats._repr_html_()).cells[-8:] == [
        "decode", "1,200", "600.0", "1.50 s", "0.25 s", "0.00 s", "0.50 ms", "",
    ]  # fmt: skip


def test_progress_goes_through_an_epoch(dataset: feedline.Dataset) -> None:
    drawn = io.StringIO()
    loader = dataset.loader(4, output="numpy")
    bar = loader.progress(file=drawn, mininterval=0, colour=None)
    assert (len(bar), bar.total, bar.initial) == (6, 6, 0)
    seen = 0
    for batch in bar:
        seen += len(batch.label)
        bar.set_postfix(loss=f"{seen:.1f}")
    assert seen == 21 and loader.epoch == 1
    last = drawn.getvalue().rstrip("\n").rsplit("\r", 1)[-1]
    assert re.search(r"epoch 0: 100%.* 6/6 .*batch/s, [\d,]+ samples/s, waiting \d+%, loss=21\.0\]", last), last


def test_progress_continues_where_a_state_was_taken(dataset: feedline.Dataset) -> None:
    loader = dataset.loader(4, output="numpy", shuffle=True)
    batches = iter(loader)
    for _ in range(5):
        next(batches)
    again = dataset.loader(4, output="numpy", shuffle=True)
    again.load_state_dict(loader.state_dict())
    bar = again.progress(file=io.StringIO())
    assert (bar.initial, bar.total) == (5, 6)
    assert [len(batch.label) for batch in bar] == [1] and bar.n == 6
    assert again.progress(file=io.StringIO()).initial == 0, "the next epoch begins at its beginning"


def test_the_share_of_waiting_is_that_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A simulated clock: a batch takes 3 s to arrive and 1 s to train on; the last one ends the loader."""
    now = [0.0]
    monkeypatch.setattr(progress, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    given = [0]

    def batches() -> Any:
        for number in range(4):
            now[0] += 3
            given[0] += 10
            yield number

    timed = progress.Timed(batches(), lambda: given[0])
    assert timed.postfix() == ""
    for _ in timed:
        now[0] += 1
    assert (timed.waited_s, timed.postfix()) == (12.0, "2 samples/s, waiting 75%")


def test_only_the_first_rank_shows_a_bar(dataset: feedline.Dataset) -> None:
    ranks = [dataset.loader(4, output="numpy", rank=rank, world_size=2) for rank in range(2)]
    assert [loader.progress(file=io.StringIO()).disable for loader in ranks] == [False, True]
    assert sum(len(batch.label) for batch in ranks[1].progress()) == 11


def test_without_tqdm_progress_reports_what_is_missing(
    dataset: feedline.Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.raises(feedline.ConfigError, match="pip install tqdm"):
        dataset.loader(4, output="numpy").progress()


def test_the_drop_in_has_them_as_well() -> None:
    torch = pytest.importorskip("torch")
    data = torch.utils.data.TensorDataset(torch.arange(20))
    loader = feedline.DataLoader(data, batch_size=4)
    assert repr(loader) == "<feedline.DataLoader of 5 batches: TensorDataset, batch_size=4, num_workers=0>"
    batches = iter(loader)
    next(batches), next(batches)
    assert Cells(loader._repr_html_()).cells[:4] == ["epoch", "0", "batches", "2"]
    again = feedline.DataLoader(data, batch_size=4)
    again.load_state_dict(loader.state_dict())
    drawn = io.StringIO()
    bar = again.progress(file=drawn)
    assert (bar.initial, bar.total) == (2, 5)
    assert torch.cat([batch[0] for batch in bar]).tolist() == list(range(8, 20)) and bar.n == 5
    assert "waiting" in drawn.getvalue() and "samples/s" not in drawn.getvalue()

    class Stream(torch.utils.data.IterableDataset):  # type: ignore[type-arg,misc]
        def __iter__(self) -> Any:
            return iter(range(3))

    stream = feedline.DataLoader(Stream())
    assert repr(stream) == "<feedline.DataLoader of batches: Stream, batch_size=1, num_workers=0>"
    assert len(list(stream.progress(file=io.StringIO()))) == 3
