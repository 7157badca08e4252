# SPDX-License-Identifier: Apache-2.0
"""Arguments of wrong types for every public function: each is accepted, or refused by an error of Feedline's."""

from __future__ import annotations

import contextlib
import inspect
import math
import random
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import torch

import feedline

from .sources import SOURCES

VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 2, 3.0, 1.5, -0.5, math.nan, math.inf, -math.inf, 2**31, 2**63, 2**64, 10**30),
    *("", "x", "auto", "8 GiB", "\x00", "ü" * 300, b"x", bytearray(b"x"), Path("x"), 1j, Decimal(2), Fraction(1, 2)),
    *([], [1], [1, 2], (1, 2), (0.5, "x"), [None], [[1]], {}, {"x": 1}, {1}, range(3), object(), len, int),
    *(np.int64(3), np.float32(0.5), np.bool_(True), np.array(2), np.array([1, 2]), np.array([]), np.str_("x")),
    *(torch.tensor(2), torch.tensor([1.0, 2.0]), torch.float16, torch.device("cpu"), np.dtype("f4"), "float32"),
]

# Methods that read or write a lot, and those without arguments.
_NOT_CALLED = {"show", "measure_decode", "inspect", "explain", "loader"}


def methods() -> list[str]:
    names = [name for name in dir(feedline.Dataset) if not name.startswith("_") and name not in _NOT_CALLED]
    return [name for name in names if callable(getattr(feedline.Dataset, name))]


def _some(rng: random.Random, function: Callable[..., Any]) -> dict[str, Any]:
    """One to three of the function's arguments, each with any value."""
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    names = [name for name, one in inspect.signature(function).parameters.items() if one.kind in kinds]
    names = [name for name in names if name not in ("self", "device", "allow_commands")]
    return {name: rng.choice(VALUES) for name in rng.sample(names, min(len(names), rng.choice((1, 1, 2, 3))))}


def _required(function: Callable[..., Any]) -> dict[str, Any]:
    """Valid values for arguments without a default."""
    sound = {"size": 8, "fn": len, "form": "list", "window": 2, "kernel_size": 3, "sharpness_factor": 2.0}
    sound |= {"degrees": 5, "bits": 4, "threshold": 9, "padding": 1, "mean": (0.5,) * 3, "std": (0.5,) * 3, "index": 0}
    return {name: value for name, value in sound.items() if name in inspect.signature(function).parameters}


def run(rng: random.Random, root: Path, scratch: Path) -> None:
    name = rng.choice([name for name, source in SOURCES.items() if not source.damaged])
    dataset = SOURCES[name].open(root)
    door = rng.choice(("loader", "loader", "operation", "operation", "DataLoader", "function"))
    # a relative path may be written to
    with contextlib.chdir(scratch), contextlib.suppress(feedline.Error):
        if door == "loader":
            _first_batch(dataset.loader(**{"batch_size": 4, **_some(rng, dataset.loader)}))
        elif door == "operation":
            method = getattr(dataset, rng.choice(methods()))
            made = _called(method, {**_required(method), **_some(rng, method)})
            if isinstance(made, feedline.Dataset):
                _first_batch(made.collate("list").loader(4, output="numpy"))
        elif door == "DataLoader":
            _drop_in(rng)
        else:
            _function(rng, root)


def _called(function: Callable[..., Any], given: dict[str, Any]) -> Any:
    try:
        inspect.signature(function).bind(**given)
    except TypeError:
        return None  # a required argument is missing
    try:
        return function(**given)
    except (IndexError, TypeError):
        if "index" in given:
            return None  # of sample(), encoded() and key(), as for lists
        raise


def _function(rng: random.Random, root: Path) -> None:
    function, sound = rng.choice(
        [
            (feedline.open, {"source": root / "folder"}),
            (feedline.tokens, {"source": root / "tokens.bin", "window": 6, "dtype": "uint16"}),
            (feedline.mix, {"datasets": [feedline.arrays(x=np.arange(5))]}),
            (feedline.ragged, {"values": np.arange(6), "lengths": [1, 2, 3]}),
            (feedline.BucketBatchSampler, {"lengths": [1, 2, 3, 4], "batch_size": 2}),
        ]
    )
    made = function(**{**sound, **_some(rng, function)})
    if isinstance(made, feedline.Dataset):
        _first_batch(made.collate("list").loader(4, output="numpy") if len(made) else None)


def _drop_in(rng: random.Random) -> None:
    """Arguments that torch also has may end as in torch."""
    names = ("seed", "on_error", "error_budget", "memory_budget", "lower", "worker_method", "uneven", "stall_timeout")
    given = {name: rng.choice(VALUES) for name in rng.sample((*names, "central_batching", "prefetch_epochs"), 2)}
    _first_batch(feedline.DataLoader(list(range(9)), batch_size=2, **given))


def _first_batch(loader: Any) -> None:
    if loader is not None:
        next(iter(loader), None)
