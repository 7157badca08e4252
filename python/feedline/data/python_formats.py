# SPDX-License-Identifier: Apache-2.0
"""Opens sources with formats that Python functions define (:func:`feedline.format`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from ..errors import ConfigError
from . import plugins
from .dataset import Dataset
from .memory.sequences import arrays


def open_by(name: str, source: Any, others: Sequence[str]) -> Dataset:
    """Opens a source with a format in Python. ``others``: the names of further arguments of `open`."""
    if others:
        raise ConfigError(f"open: {others[0]}= is not supported for {name!r}, a format that is defined in Python")
    made = plugins.opened(name, source)
    if isinstance(made, Dataset):
        return made
    if isinstance(made, Mapping):
        return arrays(**made)
    if not hasattr(made, "__len__") or not hasattr(made, "__getitem__"):
        raise ConfigError(
            f"open: the format {name!r} returned {type(made).__name__}; return a Dataset, a dict of columns, or an "
            "object with len() and [index]"
        )
    if len(made) == 0:
        raise ConfigError(f"open: the format {name!r} found no samples in {source!r}")
    import numpy as np

    index = f"index of {name}"  # part of the fingerprint
    return arrays(**{index: np.arange(len(made))}).map(_Samples(name, made))


class _Samples:
    """The function for :meth:`Dataset.map` that reads samples. It is not pickled: unpickling opens the source again."""

    describes_itself: ClassVar[bool] = True

    def __init__(self, name: str, samples: Any) -> None:
        self._samples = samples
        self.call = f"open(format={name!r})"
        self.runs = f"reads samples of {type(samples).__qualname__}, in Python"

    def __call__(self, fields: dict[str, Any]) -> dict[str, Any]:
        (index,) = fields.values()
        sample: dict[str, Any] = self._samples[int(index)]
        return sample
