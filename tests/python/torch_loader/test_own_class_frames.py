# SPDX-License-Identifier: Apache-2.0
"""Users' classes over pandas frames: values have the types and errors of pandas, however the class looks them up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from torch.utils.data import DataLoader as TorchLoader
from torch.utils.data import Dataset, Subset

from feedline import DataLoader
from feedline.torch_loader.lowering.own_code import frames
from feedline.torch_loader.lowering.own_code.sample_code import sample_code

pandas = pytest.importorskip("pandas")
transforms = pytest.importorskip("torchvision.transforms")

from lowered import assert_same, plan_of  # noqa: E402

COUNT = 6
CHAIN = transforms.Compose([transforms.CenterCrop(8), transforms.ToTensor()])


class Frame(Dataset):
    def __init__(self, frame):
        self.df, self.series, self.transform = frame, frame["number"], CHAIN

    def __len__(self):
        return len(self.df)


class ByNumber(Frame):
    def __getitem__(self, i):
        image = Image.open(self.df.iloc[i, 0]).convert("RGB")
        return self.transform(image), self.df.iloc[i, 1], self.df.iloc[i, -1], self.df.iat[i, 2], self.df.iloc[i, 3]


class ByLabel(Frame):
    def __getitem__(self, i):
        image = Image.open(self.df.loc[i, "path"]).convert("RGB")
        return self.transform(image), self.df.at[i, "number"], self.df.loc[i, "flag"], self.df.loc[i, "text"]


class ByRow(Frame):
    def __getitem__(self, i):
        row = self.df.iloc[i]
        image = Image.open(row.path).convert("RGB")
        return (
            self.transform(image),
            row["number"],
            row.share,
            row["flag"],
            row["text"],
            row.name,
            row["size"],
            row.size,
        )


class ByLabelledRow(Frame):
    def __getitem__(self, i):
        path, number = self.df.loc[i]["path"], self.df.loc[i].number
        return self.transform(Image.open(path).convert("RGB")), number, self.df.loc[i]["when"]


class BySeries(Frame):
    def __getitem__(self, i):
        image = Image.open(self.df["path"][i]).convert("RGB")
        return (
            self.transform(image),
            self.series[i],
            self.df.flag.iloc[i],
            self.df["share"].at[i],
            self.df.number.iat[i],
        )


class OfNumbers(Frame):
    """Rows of integers and floats convert the integers to floats."""

    def __init__(self, frame):
        super().__init__(frame)
        self.paths, self.numbers = list(frame["path"]), frame[["number", "share"]]
        self.integers = frame[["number", "size"]]

    def __getitem__(self, i):
        row, integers = self.numbers.iloc[i], self.integers.iloc[i]
        return self.transform(Image.open(self.paths[i]).convert("RGB")), row.number, row["share"], integers["size"]


KINDS = [ByNumber, ByLabel, ByRow, ByLabelledRow, BySeries, OfNumbers]


@pytest.fixture
def table(tmp_path: Path) -> Any:
    for number in range(COUNT):
        pixels = np.random.default_rng(number).integers(0, 256, (9, 10, 3), np.uint8)
        Image.fromarray(pixels).save(tmp_path / f"{number}.png")
    frame = pandas.DataFrame({"path": sorted(map(str, tmp_path.iterdir())), "number": np.arange(COUNT) * 10})
    frame["share"] = np.arange(COUNT, dtype=np.float32) / 7
    frame["flag"] = frame["number"] > 20
    frame["when"] = pandas.Timestamp("2026-01-01") + pandas.to_timedelta(frame["number"], unit="D")
    frame["size"] = np.arange(COUNT, dtype=np.uint8)
    frame["text"] = ["a", None, "", "b", "c", "d"]
    return frame


def samples(loader: Any) -> list[Any]:
    return [sample for batch in loader for sample in batch]


def assert_as_torch(dataset: Any) -> None:
    """All values have the types of the class's own."""
    loader = DataLoader(dataset, 2, collate_fn=list)
    assert plan_of(loader) == "prefix", loader.explain()
    ours, theirs = samples(loader), samples(TorchLoader(dataset, 2, collate_fn=list))
    assert_same(repr([sample[1:] for sample in ours]), repr([sample[1:] for sample in theirs]))
    assert [[type(value) for value in sample] for sample in ours] == [[type(v) for v in sample] for sample in theirs]
    assert_same([sample[0] for sample in ours], [sample[0] for sample in theirs])


def test_values_and_types(table: Any) -> None:
    for frame in (table, table.astype({"path": object, "text": object, "number": np.int16})):
        for kind in KINDS:
            dataset = kind(frame)
            assert_as_torch(dataset)
            assert_as_torch(Subset(dataset, np.array([5, 1])))
    assert_as_torch(ByNumber(table.astype({"number": "Int64", "flag": "category"})))


def test_columns_are_looked_up_without_rows(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    inner = frames.Column.__call__

    def noted(column: Any, index: Any) -> Any:
        calls.append(index)
        return inner(column, index)

    monkeypatch.setattr(frames.Column, "__call__", noted)
    for kind, count in ((ByNumber, 5), (ByLabel, 4), (ByRow, 6), (ByLabelledRow, 2), (BySeries, 5)):
        code = sample_code(kind(table))
        calls.clear()
        code.row(3)
        assert calls == [3] * count, kind
    code = sample_code(OfNumbers(table))
    calls.clear()
    code.row(2)
    assert calls == []  # the rows' floats and wider integers differ from the columns'


@pytest.mark.parametrize(
    "labels", [range(1, COUNT + 1), range(0, 2 * COUNT, 2), list(range(COUNT))[::-1], list("abcdef")]
)
def test_labels_that_are_not_positions(table: Any, labels: Any) -> None:
    table.index = pandas.Index(labels)
    for kind in (ByNumber, ByRow, OfNumbers):
        assert_as_torch(kind(table))
    for kind in (ByLabel, ByLabelledRow, BySeries):
        dataset = kind(table)
        for index in range(COUNT):
            try:
                theirs = dataset[index]
            except KeyError:
                with pytest.raises(KeyError):
                    samples(DataLoader(Subset(dataset, [index]), 1, collate_fn=list))
                continue
            (ours,) = samples(DataLoader(Subset(dataset, [index]), 1, collate_fn=list))
            assert repr(ours[1:]) == repr(theirs[1:])


def test_indices_that_are_not_positions(table: Any) -> None:
    for kind in (ByNumber, ByRow):
        assert_as_torch(Subset(kind(table), [-1, 0]))
    for kind, error in ((ByNumber, IndexError), (ByRow, IndexError), (ByLabel, KeyError), (BySeries, KeyError)):
        loader = DataLoader(Subset(kind(table), [0, COUNT]), 1, collate_fn=list)
        iterator = iter(loader)
        next(iterator)
        with pytest.raises(error):
            next(iterator)


def test_unused_rows_raise_their_errors(table: Any) -> None:
    class Unused(Frame):
        def __getitem__(self, i):
            row = self.df.iloc[i + 1]  # noqa: F841
            return self.transform(Image.open(self.df["path"][i]).convert("RGB")), self.df["number"][i]

    loader = DataLoader(Unused(table), 1)
    iterator = iter(loader)
    for _ in range(COUNT - 1):
        next(iterator)
    with pytest.raises(IndexError):
        next(iterator)


@pytest.mark.parametrize("collate", [None, list])
def test_changes_between_epochs(table: Any, collate: Any) -> None:
    class Small(Frame):
        def __getitem__(self, i):
            row = self.df.iloc[i]
            return (
                self.transform(Image.open(row.path).convert("RGB")),
                row["number"],
                self.df.iloc[i, 2],
                self.series[i],
            )

    dataset = Small(table)
    loader = DataLoader(dataset, 2, collate_fn=collate)
    changes = [
        lambda: table.__setitem__("number", table["number"] + 1),
        lambda: table.iloc.__setitem__((3, 1), -5),
        lambda: table.loc.__setitem__((2, "share"), 0.5),
        lambda: setattr(dataset, "df", table.iloc[::-1]),
        lambda: table.drop(columns="number", inplace=True),
    ]
    for change in changes[:-1]:
        change()
        assert_same(list(loader), list(TorchLoader(dataset, 2, collate_fn=collate)))
    dataset.df = table
    changes[-1]()
    with pytest.raises(KeyError, match="number"):
        list(loader)


def test_classes_of_frames(table: Any) -> None:
    class Own(pandas.DataFrame):  # type: ignore[misc]
        pass

    loader = DataLoader(ByNumber(Own(table)), 2)
    assert plan_of(loader) == "python"
    twice = pandas.concat([table, table[["number"]]], axis=1)
    dataset = ByNumber(table)
    dataset.df = twice
    assert_as_torch(dataset)
