# SPDX-License-Identifier: Apache-2.0
"""A loader's options as they were given, and loaders created from another loader's options."""

from __future__ import annotations

import inspect
import math
import re
from typing import Any

import numpy as np
import pytest

import feedline
from feedline import _engine
from feedline.data import loader_options
from feedline.data.packed_sequences import PackedSequences
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


def defaults() -> dict[str, Any]:
    signature = inspect.signature(feedline.Dataset.loader)
    return {name: one.default for name, one in signature.parameters.items() if name != "self"}


def test_defaults_are_the_engines() -> None:
    engine = _engine.loader_options()
    assert loader_options.engine_options(defaults()).items() <= engine.items()
    assert set(loader_options.CHECKS) <= set(engine)


def test_every_argument_has_one_use() -> None:
    resolved = {
        *("shuffle", "shuffle_window", "buckets", "device", "output", "epochs"),
        *("rank", "world_size", "mesh", "dp"),
        *("sampler", "weights", "balanced"),
    }
    assert set(defaults()) == resolved | set(loader_options.CHECKS)
    engine = set(_engine.loader_options()) - set(loader_options.CHECKS)
    assert engine == {
        *("shuffle", "shard_window", "buckets", "bucket_bounds"),
        *("rank", "world_size", "cuda_device", "sampling"),
        "most_workers",  # for torch_loader
    }


def test_arguments_of_packed_sequences_are_those_of_other_loaders() -> None:
    theirs = inspect.signature(PackedSequences.loader).parameters
    ours = inspect.signature(feedline.Dataset.loader).parameters
    own = {"batch_size", "on_error", "output", "preset"}  # required; fewer values; only here
    for name in set(theirs) - own:
        assert theirs[name] == ours[name]
    packed = feedline.arrays(tokens=feedline.ragged([np.arange(3)])).pack_sequences(8)
    with pytest.raises(feedline.ConfigError, match="loader: seed must be an integer, not None"):
        packed.loader(1, seed=None)


def test_every_argument_is_documented() -> None:
    text = inspect.cleandoc(feedline.Dataset.loader.__doc__ or "")
    section = re.search(r"(?s)Args:\n(.*?)\n\n\S", text)
    assert section is not None
    described = re.findall(r"(?m)^    (\w+(?:, \w+)*): ", section[1])
    assert [name for names in described for name in names.split(", ")] == list(defaults())


@pytest.mark.parametrize("name", [name for name, default in defaults().items() if default is not None])
def test_an_argument_with_a_default_is_not_none(train: feedline.Dataset, name: str) -> None:
    with pytest.raises(feedline.ConfigError, match=f"loader: {name} must be .*not None"):
        train.loader(**{"batch_size": 2, "output": "numpy", name: None})


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"batch_sise": 2}, "batch_sise"),
        ({"batch_size": "2"}, "loader: batch_size has the wrong type: '2'"),
        ({"on_error": "drop"}, "loader: on_error must be one of 'raise', 'skip', 'replace', not 'drop'"),
    ],
)
def test_the_engine_refuses_what_it_does_not_know(train: feedline.Dataset, options: dict[str, Any], text: str) -> None:
    with pytest.raises((TypeError, feedline.ConfigError), match=text):
        _engine.make_loader(train._engine, options)


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
    with pytest.warns(UserWarning, match="an epoch has no batches: 21 samples .* batch_size=22") as caught:
        train.loader(22, drop_last=True, output="numpy")
    assert caught[0].filename == __file__


def test_no_batches_in_endless_epochs_are_refused(train: feedline.Dataset) -> None:
    """Otherwise, next() would continue from epoch to epoch for ever."""
    with pytest.raises(feedline.ConfigError, match=r"21 samples .* batch_size=22.*epochs=math"):
        train.loader(22, drop_last=True, epochs=math.inf, output="numpy")
    with pytest.raises(feedline.ConfigError, match="over 3 ranks"):
        train.loader(8, drop_last=True, epochs=math.inf, rank=1, world_size=3, output="numpy")
