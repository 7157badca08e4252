# SPDX-License-Identifier: Apache-2.0
"""Parts of a dataset: :meth:`Dataset.split` and :meth:`Dataset.subset`."""

from __future__ import annotations

import difflib
import math
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

from .. import _engine
from .._engine import Dataset as EngineDataset
from ..errors import ConfigError
from . import arguments
from .recorded_calls import Call

_LABELS = ("label", "labels", "cls", "target", "targets", "y")  # what by_class=True looks for, in this order
_NEAR = 10_000  # keys among which one is looked for that may have been meant
_ROUNDING = 1e-9  # of fractions that are to sum to 1

KeyFunction = Callable[[list[str]], Iterable[str]]


class Parts:
    """The parts of a :class:`Dataset`, which has these methods."""

    _engine: EngineDataset
    _calls: tuple[Call, ...]

    def _with(self, engine: EngineDataset) -> Self:
        raise NotImplementedError

    def split(self, *parts: float, seed: int = 0, by_class: bool | str | Sequence[int] = False) -> tuple[Self, ...]:
        """Cuts the dataset at random into parts: every sample is in exactly one of them.

        ::

            train, valid = dataset.split(0.9)                     # 9 of 10, and the rest
            train, valid, test = dataset.split(0.8, 0.1, 0.1)     # fractions that sum to 1
            train, valid = dataset.split(45_000, 5_000)           # or numbers of samples
            train, valid = dataset.split(0.9, by_class=True)      # the same share of every class

        The same seed gives the same parts on every machine, whatever the number of threads and ranks. A part keeps
        the order of the dataset and the operations so far, and takes others of its own: augment ``train`` alone. Its
        fingerprint has in it which samples it holds, so that a loader's state goes on with the same part only.
        Split first, and :meth:`cache` and :func:`mix` after. Nothing is read, but for ``by_class``.

        Args:
            parts: a fraction between 0 and 1 or a number of samples each. One alone: that part, and the rest. Of
                several, all fractions sum to 1, or all numbers to ``len(dataset)``. Fractions are rounded so that the
                parts have all samples.
            seed: other parts for another one.
            by_class: True shares every class out by the same ratio, to one sample (with three parts and more, to less
                than as many samples as parts). The class is the field ``label``, ``labels``, ``cls``, ``target``,
                ``targets`` or ``y``; or name the field. Class folders know it; of other formats every sample is read
                once. Or the classes themselves: an integer for each sample.

        Raises:
            ConfigError: parts that do not sum up, or without a sample; no such field, or not of integers; a mixture,
                or a dataset with a cache.
            DataError: with ``by_class``, a sample that cannot be read.
        """
        counts = _counts(parts, len(self._engine))
        number = arguments.integer("split", "seed", seed, low=0, high=2**64 - 1)
        classes = _classes(self._engine, by_class)
        made = tuple(self._with(part) for part in _engine.split(self._engine, counts, number, classes))
        for i, part in enumerate(made):  # with the classes, so that they are not read again
            part._calls = (
                *self._calls,
                Call("split", tuple(counts), {"seed": number, "by_class": classes or False}, i),
            )
        return made

    def subset(self, indices: Iterable[Any] | None = None, *, keys: KeyFunction | Iterable[str] | None = None) -> Self:
        """The samples at ``indices``, or called ``keys``, in their order: ``dataset.subset(range(1000))``.

        ::

            dataset.subset(keys=["apple/000.jpg", "crow/003.jpg"])
            dataset.subset(keys=lambda keys: sorted(keys, key=by_hash))      # another order
            dataset.subset(keys=lambda keys: [k for k in keys if k.startswith("val_")])

        A sample may come several times. It has the operations so far, and draws by its index in the subset. Where the
        indexes ascend, it has the shards of the dataset that they lie in, for ``shuffle="shards"``.

        Args:
            indices: integers, negative ones from the end; or a boolean for each sample, as NumPy has masks.
            keys: names of samples as :meth:`key` gives them; or a function that is called once, here, with those of
                all samples, in the dataset's order, and gives the ones that are wanted.

        Raises:
            ConfigError: none, one that is out of range, no integer; a key that no sample has, or several have; a
                mixture, or a dataset with a cache.
        """
        if (indices is None) == (keys is None):
            raise ConfigError("subset: give indices or keys")
        positions = _called(self._engine, keys) if keys is not None else _positions(indices, len(self._engine))
        part = self._with(_engine.subset(self._engine, positions))
        part._calls = (*self._calls, Call("subset", (positions,), {}))
        return part


def _counts(parts: Sequence[Any], size: int) -> list[int]:
    if len(parts) == 1 and arguments.is_sequence(parts[0]):
        parts = list(parts[0])
    if not parts:
        raise ConfigError("split: say how large the parts are: split(0.9), or split(0.8, 0.1, 0.1)")
    integers = [isinstance(part, bool) or hasattr(part, "__index__") for part in parts]
    if all(integers):
        counts = [arguments.integer("split", "a part", part, low=1, high=size) for part in parts]
        return [*counts, size - counts[0]] if len(counts) == 1 else counts
    if any(integers):
        raise ConfigError("split: give fractions or numbers of samples, not both")
    shares = [arguments.real("split", "a part", part) for part in parts]
    for share in shares:
        if not 0 < share < 1:
            raise ConfigError(f"split: a fraction must be between 0 and 1, not {share!r}")
    if len(shares) == 1:
        shares.append(1 - shares[0])
    if abs(math.fsum(shares) - 1) > _ROUNDING * len(shares):
        raise ConfigError(f"split: the fractions sum to {math.fsum(shares):g}, not to 1")
    ends = [round(math.fsum(shares[: i + 1]) * size) for i in range(len(shares) - 1)] + [size]
    counts = [end - begin for begin, end in zip([0, *ends], ends, strict=False)]
    for share, count in zip(shares, counts, strict=True):
        if count < 1:
            raise ConfigError(f"split: {share:g} of {size} samples is none")
    return counts


def _classes(engine: EngineDataset, by_class: Any) -> list[int]:
    """What each sample is of; empty: all are alike."""
    if isinstance(by_class, str):
        return _engine.numbers(engine, by_class)
    if isinstance(by_class, bool):
        return _engine.numbers(engine, _label(engine)) if by_class else []
    if not arguments.is_sequence(by_class):
        raise ConfigError(f"split: by_class must be True, a field or an integer for each sample, not {by_class!r}")
    classes = [_integer("split", "a class", value) for value in by_class]
    if not classes:
        raise ConfigError("split: by_class has no class; give one for each sample")
    return classes


def _label(engine: EngineDataset) -> str:
    names = [name for name, *_ in engine.roles()]
    for name in _LABELS:
        if name in names:
            return name
    raise ConfigError(f"split: which of the fields {', '.join(names)} is the class? by_class=NAME says so")


def _called(engine: EngineDataset, keys: KeyFunction | Iterable[str]) -> list[int]:
    """The samples of these keys."""
    own = [engine.key(i) for i in range(len(engine))]
    wanted = keys(own.copy()) if callable(keys) else keys
    if isinstance(wanted, str | bytes) or not arguments.is_iterable(wanted):
        raise ConfigError(f"subset: keys must be names of samples, or a function that gives some, not {wanted!r}")
    places = {key: i for i, key in enumerate(own)}
    shared = {key for key, count in Counter(own).items() if count > 1} if len(places) < len(own) else set()
    positions = []
    for key in wanted:
        if not isinstance(key, str):
            raise ConfigError(f"subset: a key must be text, as Dataset.key() gives it, not {key!r}")
        if key not in places:
            near = difflib.get_close_matches(key, own[:_NEAR], 1)
            hint = f"; there is {near[0]!r}" if near else ""
            raise ConfigError(f"subset: no sample is called {key!r}{hint}")
        if key in shared:
            raise ConfigError(f"subset: several samples are called {key!r}; choose them by indices")
        positions.append(places[key])
    return positions


def _positions(indices: Any, size: int) -> list[int]:
    if isinstance(indices, str | bytes) or not arguments.is_iterable(indices):
        raise ConfigError(f"subset: indices must be integers, not {indices!r}")
    given = list(indices.tolist()) if hasattr(indices, "tolist") else list(indices)
    if given and all(isinstance(value, bool) for value in given):
        if len(given) != size:
            raise ConfigError(f"subset: {len(given)} booleans were given for {size} samples")
        return [i for i, chosen in enumerate(given) if chosen]
    positions = [_integer("subset", "an index", value) for value in given]
    for position in positions:
        if not -size <= position < size:
            raise ConfigError(f"subset: sample {position} is out of range: the dataset has {size}")
    return [position % size for position in positions]


def _integer(where: str, name: str, value: Any) -> int:
    try:
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise ConfigError(f"{where}: {name} must be an integer, not {value!r}") from None
