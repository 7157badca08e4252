# SPDX-License-Identifier: Apache-2.0
"""Formats and operations that Python functions define."""

from __future__ import annotations

import functools
import importlib
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import feedline
from feedline.data import plugins


class Lines:
    """Samples of a text file, read by index."""

    def __init__(self, source: str) -> None:
        self._lines = Path(source).read_text().splitlines()

    def __len__(self) -> int:
        return len(self._lines)

    def __getitem__(self, index: int) -> dict[str, object]:
        return {"text": self._lines[index], "length": len(self._lines[index])}


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    formats, operations = dict(plugins._formats), dict(plugins._operations)
    feedline.format("lines", extensions=["lines"])(Lines)
    feedline.operation(name="test_scale")(scale)
    yield
    plugins._formats.clear(), plugins._operations.clear()
    plugins._formats.update(formats), plugins._operations.update(operations)


def scale(value: np.ndarray, factor: int = 2) -> np.ndarray:
    return value * factor


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    path = tmp_path / "words.lines"
    path.write_text("a\nbird\ncrow\n")
    return path


def test_samples_are_read_by_index_in_any_order(lines: Path) -> None:
    dataset = feedline.open(lines)
    assert len(dataset) == 3 and dataset[1].text == "bird" and dataset[1].length == 4
    batches = list(dataset.loader(batch_size=2, shuffle=True, seed=1, output="numpy"))
    assert sorted(word for batch in batches for word in batch.text) == ["a", "bird", "crow"]


def test_a_pickled_dataset_opens_its_source_again(lines: Path) -> None:
    dataset = feedline.open(str(lines))
    assert pickle.loads(pickle.dumps(dataset))[2].text == "crow"
    assert __name__ in plugins.needed(dataset._calls[0].options).modules  # type: ignore[union-attr]
    assert __name__ not in str(feedline.arrays(x=np.arange(3)).__reduce__())


def test_columns_and_datasets_may_be_returned() -> None:
    feedline.format("test_columns")(lambda source: {"x": np.arange(int(source))})
    assert [row.x for row in feedline.open("4", format="test_columns")] == [0, 1, 2, 3]
    feedline.format("test_dataset")(lambda source: feedline.arrays(y=np.ones((2, 3))))
    assert feedline.open("any", format="test_dataset")[0].y.shape == (3,)


@pytest.mark.parametrize(
    ("made", "message"),
    [(7, "returned int; return a Dataset"), ([], "found no samples in 'any'")],
)
def test_other_results_are_errors(made: object, message: str) -> None:
    feedline.format("test_wrong")(lambda source: made)
    with pytest.raises(feedline.ConfigError, match=message):
        feedline.open("any", format="test_wrong")


def test_names_and_extensions_are_unique() -> None:
    with pytest.raises(feedline.ConfigError, match="the format 'tar' exists already"):
        feedline.format("tar")(Lines)
    with pytest.raises(feedline.ConfigError, match="the format 'lines' exists already"):
        feedline.format("lines")(scale)
    with pytest.raises(feedline.ConfigError, match="the extension 'lines' belongs to the format 'lines'"):
        feedline.format("test_other", extensions=["lines"])(scale)
    with pytest.raises(feedline.ConfigError, match="the operation 'test_scale' exists already"):
        feedline.operation(name="test_scale")(Lines)
    with pytest.raises(feedline.ConfigError, match="without a dot"):
        feedline.format("test_dot", extensions=[".x"])
    with pytest.raises(feedline.ConfigError, match="reads files with the extension 'parquet'"):
        feedline.format("test_parquet", extensions=["parquet"])(Lines)
    with pytest.raises(feedline.ConfigError, match="the format 'lines' exists already"):
        feedline.format("lines")(functools.partial(Lines))


def test_functions_of_the_same_name_in_other_modules_do_not_replace_each_other() -> None:
    def scale(value: np.ndarray) -> np.ndarray:
        return value

    scale.__qualname__, scale.__module__ = "scale", "elsewhere"
    with pytest.raises(feedline.ConfigError, match="the operation 'test_scale' exists already"):
        feedline.operation(name="test_scale")(scale)
    scale.__module__ = __name__
    feedline.operation(name="test_scale")(scale)  # defined again, as in a notebook
    assert feedline.arrays(x=np.ones(2)).apply("test_scale", fields="x")[0].x == 1


def test_fingerprints_and_explanations_name_the_format_and_the_operation(lines: Path) -> None:
    feedline.format("test_lines")(Lines)
    dataset = feedline.open(lines)
    assert feedline.open(lines, format="test_lines").fingerprint != dataset.fingerprint
    assert "open(format='lines')" in dataset.explain()
    assert "apply('test_scale', factor=3)" in dataset.apply("test_scale", fields="length", factor=3).explain()


def test_a_function_may_have_no_module() -> None:
    def made_by_exec(value: np.ndarray) -> np.ndarray:
        return value + 1

    made_by_exec.__module__ = None  # type: ignore[assignment]
    feedline.operation(name="test_no_module")(made_by_exec)
    dataset = feedline.arrays(x=np.arange(3)).apply("test_no_module", fields="x")
    assert dataset[1].x == 2 and "made_by_exec, a Python function" in dataset.explain()


def test_a_function_without_a_name_cannot_be_pickled() -> None:
    feedline.operation(name="test_lambda")(lambda value: value)
    with pytest.raises(feedline.ConfigError, match=r"was given a lambda .*define it with def or class at module level"):
        pickle.dumps(feedline.arrays(x=np.arange(3)).apply("test_lambda", fields="x"))


PROGRAM = """
import pickle, sys
sys.path.insert(0, sys.argv[1])
dataset = pickle.load(sys.stdin.buffer)
print(dataset[1].text.tolist() if hasattr(dataset[1].text, "tolist") else dataset[1].text)
"""
MODULE = """
import feedline

@feedline.format("test_other_process", extensions=["other"])
def open_other(source):
    return [{"text": line.strip()} for line in open(source)]

@feedline.operation
def test_doubled(value, times=2):
    return value * times
"""


def test_another_process_imports_the_module_of_a_format_and_of_an_operation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "test_module_of_extensions.py").write_text(MODULE)
    (tmp_path / "words.other").write_text("a\nbird\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("test_module_of_extensions")
    dataset = feedline.open(tmp_path / "words.other").apply("test_doubled", fields="text", times=3)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    done = subprocess.run(command, input=pickle.dumps(dataset), capture_output=True, env=environment)
    assert done.stdout.decode().strip() == "birdbirdbird", done.stderr.decode()


def test_other_arguments_of_open_are_refused(lines: Path) -> None:
    with pytest.raises(feedline.ConfigError, match="fields= is not supported for 'lines'"):
        feedline.open(lines, fields="text")


def test_an_operation_is_applied_with_its_arguments() -> None:
    dataset = feedline.arrays(x=np.arange(6).reshape(3, 2))
    applied = dataset.apply("test_scale", fields="x", factor=5)
    assert applied[2].x.tolist() == [20, 25]
    assert pickle.loads(pickle.dumps(applied))[1].x.tolist() == [10, 15]


def test_batched_and_seeded_operations() -> None:
    @feedline.operation(name="test_batched", batched=True)
    def batched(values: np.ndarray) -> np.ndarray:
        assert values.shape == (1, 2)
        return values + 1

    @feedline.operation(seeded=True)
    def test_noise(value: np.ndarray, *, rng: np.random.Generator) -> np.ndarray:
        return value + rng.integers(1, 1000)

    dataset = feedline.arrays(x=np.zeros((3, 2), np.int64))
    assert dataset.apply("test_batched", fields="x")[0].x.tolist() == [1, 1]
    noisy = dataset.apply("test_noise", fields="x")
    assert noisy[0].x[0] > 0 and noisy[0].x.tolist() == noisy[0].x.tolist()
