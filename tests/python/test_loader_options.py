# SPDX-License-Identifier: Apache-2.0
"""A loader's options: each as it was given, and loaders like another that are made of them."""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np
import pytest

import feedline
from feedline.data.loader_options import LoaderOptions
from feedline.profiler.process_copies import remake_of

GIVEN: dict[str, Any] = {
    "batch_size": 4,
    "shuffle": True,
    "seed": 3,
    "drop_last": True,
    "num_workers": 1,
    "memory_budget": "2 MiB",
    "on_error": "skip",
    "error_budget": 2,
    "rank": 1,
    "world_size": 2,
    "uneven": "drop",
    "epochs": 2,
    "layout": "NHWC",
    "output": "numpy",
    "timeout": 60,
}


def test_every_argument_is_the_option_of_its_name(train: feedline.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[LoaderOptions] = []
    monkeypatch.setattr(LoaderOptions, "make_loader", lambda options, _: made.append(options))
    names = [name for name in inspect.signature(feedline.Dataset.loader).parameters if name != "self"]
    given = {name: object() for name in names}
    train.loader(**given)  # type: ignore[arg-type]
    assert made[0]._asdict() == given


def test_options_do_not_change(train: feedline.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[LoaderOptions] = []
    monkeypatch.setattr(LoaderOptions, "make_loader", lambda options, _: made.append(options))
    train.loader(**GIVEN)
    with pytest.raises(AttributeError):
        made[0].num_workers = 2  # type: ignore[misc]


def test_a_loader_that_is_rebuilt_differs_in_its_threads_alone(train: feedline.Dataset) -> None:
    with train.loader(**GIVEN) as loader, remake_of(loader)(3) as other:
        assert (loader.stats()["threads"], other.stats()["threads"]) == (1, 3)
        assert len(loader) == len(other) == 2 * 2
        assert loader.state_dict() == other.state_dict()
        for one, two in zip(loader, other, strict=True):
            assert one._fields == two._fields and len(one.image) == 4
            for mine, its in zip(one, two, strict=True):
                assert isinstance(its, np.ndarray)
                np.testing.assert_array_equal(mine, its)
        assert _without_threads(loader.explain()) == _without_threads(other.explain())


def _without_threads(explained: str) -> list[str]:
    return [line for line in explained.splitlines() if "thread" not in line]


def test_a_warning_of_no_batches_names_the_line_that_made_the_loader(train: feedline.Dataset) -> None:
    with pytest.warns(UserWarning, match="an epoch has no batch: 21 samples .* batch_size=22") as caught:
        train.loader(22, drop_last=True, output="numpy")
    assert caught[0].filename == __file__


def test_no_batches_in_endless_epochs_are_refused(train: feedline.Dataset) -> None:
    """Otherwise next() would go from epoch to epoch for ever."""
    with pytest.raises(feedline.ConfigError, match=r"21 samples .* batch_size=22.*epochs=math"):
        train.loader(22, drop_last=True, epochs=math.inf, output="numpy")
    with pytest.raises(feedline.ConfigError, match="over 3 ranks"):
        train.loader(8, drop_last=True, epochs=math.inf, rank=1, world_size=3, output="numpy")
