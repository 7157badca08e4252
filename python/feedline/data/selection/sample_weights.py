# SPDX-License-Identifier: Apache-2.0
"""Sample weights: the arguments `weights` and `balanced` of `Dataset.loader`, and `Loader.set_weights`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from ... import _engine
from ...errors import ConfigError
from ...loader.sampler_order import SamplerOrder
from .. import arguments
from . import stored_values
from .labels import label_field

_WHERE = "loader"


def order_of(dataset: _engine.Dataset, given: Mapping[str, Any]) -> SamplerOrder | _engine.Sampling | None:
    """Returns the order that `sampler`, `weights` or `balanced` describes; None if none of them is given.

    Raises:
        ConfigError: more than one of the arguments is given, or a value does not match the dataset.
    """
    balanced = given["balanced"]
    undersamples = isinstance(balanced, str) and balanced == "undersample"
    if not undersamples:
        arguments.flag(_WHERE, "balanced", balanced, or_word="undersample")
    names = [name for name in ("sampler", "weights") if given[name] is not None]
    names += ["balanced"] if balanced is not False else []
    if not names:
        return None
    if len(names) > 1:
        raise ConfigError(f"{_WHERE}: pass only one of {' and '.join(names)}")
    if isinstance(given["shuffle"], str):
        raise ConfigError(f'{_WHERE}: {names[0]} does not support shuffle="shards"')
    if given["sampler"] is not None:
        if given["shuffle"]:
            raise ConfigError(f"{_WHERE}: the sampler determines the order; pass sampler or shuffle, not both")
        return SamplerOrder(given["sampler"], len(dataset))
    if given["weights"] is not None:
        return of_weights(_WHERE, given["weights"], len(dataset))
    name = label_field(_WHERE, dataset, "balanced requires a field with one of these names")
    labels = stored_values.integers(dataset, None, f"{_WHERE}: balanced", name)
    if undersamples:
        return _engine.Sampling.undersample(labels)
    counts = Counter(labels)
    return _engine.Sampling.by_weight([1 / counts[label] for label in labels])


def set_weights(
    loader: _engine.Loader, dataset: _engine.Dataset, given: Mapping[str, Any], weights: list[float]
) -> None:
    """Changes the weights of a loader that was created with the arguments `given`: sample weights, or else the weights
    of a mixture's datasets.
    """
    where = "set_weights"
    if given["weights"] is not None or given["balanced"] is True:
        loader.set_sampling(of_weights(where, weights, len(dataset)))
    else:
        loader.set_mix_weights(weights)


def of_weights(where: str, weights: list[float], samples: int) -> _engine.Sampling:
    """Returns weighted sampling with one weight per sample."""
    if len(weights) != samples:
        raise ConfigError(f"{where}: one weight per sample is needed: {len(weights)} were given for {samples} samples")
    return _engine.Sampling.by_weight(weights)
