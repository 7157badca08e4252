# SPDX-License-Identifier: Apache-2.0
"""Weighted mixtures of datasets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from .. import _engine
from ..errors import ConfigError
from . import arguments, recorded_calls
from .dataset import Dataset
from .source_spec import SourceSpec


def mix(
    datasets: Sequence[Dataset],
    weights: Sequence[float] | None = None,
    *,
    until: Literal["first", "last"] | None = None,
    samples: int | None = None,
) -> Dataset:
    """Mixes samples of several datasets by weight: ``feedline.mix([web, books], weights=[0.7, 0.3])``.

    After any number of samples, every dataset has contributed its share to within a few samples. The samples are the
    same on any machine and with any number of ranks; with shuffling, their positions in a batch are random. An
    exhausted dataset starts over, in a different order with shuffling, and continues across epochs: no sample is
    repeated before all other samples of the dataset have been used.

    Args:
        datasets: datasets with the same fields and operations; if the operations differ, apply them to the mixture
            instead. The mixture's indices concatenate the datasets, regardless of the weights.
        weights: relative number of samples of each dataset; 0 leaves a dataset out. None weights the datasets by size,
            so that every sample appears once per epoch.
        until: when an epoch ends: ``"first"``, before any dataset would repeat a sample; ``"last"``, when all samples
            of all datasets have been used; None, after the number of samples in ``samples``.
        samples: samples per epoch; None is the total of all datasets.

    Raises:
        ConfigError: there is no dataset, a dataset is empty, fields or operations differ, weights are negative or all
            0, or both ``until`` and ``samples`` are given.
    """
    where = "mix"
    if isinstance(datasets, Dataset) or not arguments.is_iterable(datasets):
        given = "one dataset" if isinstance(datasets, Dataset) else f"a value of type {type(datasets).__name__}"
        raise ConfigError(f"{where}: {given} was given; pass a list: mix([a, b])")
    parts = list(datasets)
    for i, part in enumerate(parts):
        if not isinstance(part, Dataset):
            raise ConfigError(
                f"{where}: item {i} of the list is a {type(part).__name__}, not a feedline.Dataset; "
                "create one with feedline.open(...), feedline.arrays(...) or feedline.tokens(...)"
            )
    if weights is not None and not arguments.is_sequence(weights):
        raise ConfigError(f"{where}: weights must be one number for each dataset, or None, not {weights!r}")
    shares = [] if weights is None else [arguments.real(where, "a weight", weight) for weight in weights]
    if weights is not None and not shares:
        raise ConfigError(f"{where}: weights is empty; pass one number for each dataset, or None")
    if until is not None:
        arguments.choice(where, "until", until, ("first", "last"))
        if samples is not None:
            raise ConfigError(f"{where}: pass until or samples, not both")
    count = 0 if samples is None else arguments.integer(where, "samples", samples, low=1, high=2**48)
    engine = _engine.mix([part._engine for part in parts], shares, until or "samples", count)
    dataset = Dataset(engine, SourceSpec(engine.source, "mix"))
    dataset._held = tuple(held for part in parts for held in part._held)
    dataset._has_parts = any(part._has_parts for part in parts)
    options = {"weights": shares or None, "until": until, "samples": samples}
    return recorded_calls.made_by(dataset, "data.mixtures:mix", (parts,), options)
