# SPDX-License-Identifier: Apache-2.0
"""Methods of :class:`Dataset` that select samples: splits, folds, subsets, filters and repetitions."""

from __future__ import annotations

import difflib
import math
import operator
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Self

from ... import _engine
from ..._engine import Dataset as EngineDataset
from ...errors import ConfigError
from .. import arguments
from ..recorded_calls import Call
from . import folds, stored_values
from .labels import label_field

if TYPE_CHECKING:
    from ..memory.table_values import TableValues

_NEAR = 10_000  # maximum number of keys searched for a similar name
_ROUNDING = 1e-9  # tolerance for the sum of fractions

KeyFunction = Callable[[list[str]], Iterable[str]]


class Splits:
    """The methods of :class:`Dataset` that select samples."""

    _engine: EngineDataset
    _table: TableValues | None
    _calls: tuple[Call, ...]

    def _with(self, engine: EngineDataset) -> Self:
        raise NotImplementedError

    def split(
        self,
        *parts: float,
        seed: int = 0,
        by_class: bool | str | Sequence[int] = False,
        k_fold: int | None = None,
        fold: int | None = None,
        groups: str | Iterable[Hashable] | None = None,
    ) -> tuple[Self, ...]:
        """Splits the dataset at random into disjoint parts that together contain every sample.

        ::

            train, valid = dataset.split(0.9)                     # 9 of 10, and the rest
            train, valid, test = dataset.split(0.8, 0.1, 0.1)     # fractions that sum to 1
            train, valid = dataset.split(45_000, 5_000)           # or numbers of samples
            train, valid = dataset.split(0.9, by_class=True)      # the same share of every class
            for i in range(5):                                    # k-fold cross-validation
                train, valid = dataset.split(k_fold=5, fold=i, by_class=True, groups="patient")

        The same seed produces the same parts on every machine, for any number of threads and ranks. A part keeps the
        order and the operations of the dataset, and later operations apply only to that part, so ``train`` can be
        augmented separately. The part's fingerprint depends on its samples, so a loader's state resumes only with the
        same part. Call :meth:`cache` and :func:`mix` after splitting. Only ``by_class`` reads samples.

        Args:
            parts: fractions between 0 and 1 or numbers of samples. If only one is given, the result is a part of that
                size and a part with the other samples. Several fractions must sum to 1, several numbers to
                ``len(dataset)``. Fractions are rounded so that the parts contain all samples.
            seed: random seed of the split.
            by_class: True splits every class by the same ratio, with an error of at most one sample; with three or more
                parts, the error is smaller than the number of parts. The class is the field ``label``, ``labels``,
                ``cls``, ``target``, ``targets`` or ``y``; or pass the name of a field or of a table's column. It is
                read as by :meth:`targets`. The classes can also be passed as one integer for each sample.
            k_fold: number of folds for cross-validation, at least 2; returns two parts, for training and validation.
                Each sample is in the validation part of exactly one fold.
            fold: the fold of the validation part, from 0 to ``k_fold - 1``.
            groups: with ``k_fold``, the name of a field or of a table's column with numbers or text, or one value for
                each sample; samples with the same value stay in the same fold. With ``by_class``, each fold has about
                the same share of every class.

        Raises:
            ConfigError: the parts have the wrong sum, or one is empty; the field does not exist or is not an integer;
                or the dataset is a mixture or has a cache. With ``k_fold``, also if ``parts`` is given, the fold does
                not exist, or there are fewer samples, samples of a class (without ``groups``) or groups than folds.
            DataError: with ``by_class`` or ``groups``, a sample cannot be read.
        """
        if groups is None and self._has_several_patches():
            raise ConfigError(
                "split: patches of one volume would be in several parts; split the volumes first, then crop them"
            )
        if k_fold is not None:
            return self._fold(parts, k_fold, fold, seed, by_class, groups)
        if fold is not None or groups is not None:
            raise ConfigError(f"split: {'groups' if fold is None else 'fold'} requires k_fold; pass k_fold=5, fold=0")
        counts = _counts(parts, len(self._engine))
        number = arguments.integer("split", "seed", seed, low=0, high=2**64 - 1)
        classes = self._classes(by_class)
        made = tuple(self._with(part) for part in _engine.split(self._engine, counts, number, classes))
        for i, part in enumerate(made):  # includes the classes, to avoid reading them again
            part._calls = (
                *self._calls,
                Call("split", tuple(counts), {"seed": number, "by_class": classes or False}, i),
            )
        return made

    def _has_several_patches(self) -> bool:
        """Returns whether several samples are patches of the same volume: their keys then end with a number."""
        if all(kind != "volume" for _, kind, *_ in self._engine.roles()):
            return False
        names = {operation.partition("(")[0] for operation in self._engine.operations()}
        return bool({"random_crop", "grid_patches"} & names and re.search(r"#[0-9]+$", self._engine.key(0)))

    def _fold(
        self, parts: Sequence[Any], k_fold: Any, fold: Any, seed: Any, by_class: Any, groups: Any
    ) -> tuple[Self, Self]:
        if parts:
            raise ConfigError(
                f"split: pass the sizes of the parts or k_fold, not both: {parts!r} and k_fold={k_fold!r}"
            )
        if fold is None:
            raise ConfigError(f"split: k_fold={k_fold!r} requires fold, from 0 to k_fold - 1")
        count = arguments.integer("split", "k_fold", k_fold, low=2)
        number = arguments.integer("split", "fold", fold, low=0, high=count - 1)
        fold_of = folds.assigned(
            len(self._engine),
            count,
            arguments.integer("split", "seed", seed, low=0, high=2**64 - 1),
            self._classes(by_class) or None,
            self._groups(groups),
            list(self._engine.classes) if by_class is True else (),
        )
        return (
            self.subset([i for i, one in enumerate(fold_of) if one != number]),
            self.subset([i for i, one in enumerate(fold_of) if one == number]),
        )

    def _classes(self, by_class: Any) -> list[int]:
        """Returns the class of each sample, or an empty list if ``by_class`` is False."""
        if isinstance(by_class, str):
            return stored_values.integers(self._engine, self._table, "split: by_class", by_class)
        if isinstance(by_class, bool):
            if not by_class:
                return []
            name = label_field("split", self._engine, "pass by_class=NAME")
            return stored_values.integers(self._engine, self._table, "split", name)
        if not arguments.is_sequence(by_class):
            raise ConfigError(f"split: by_class must be True, a field or an integer for each sample, not {by_class!r}")
        classes = [_integer("split", "a class", value) for value in by_class]
        if not classes:
            raise ConfigError("split: by_class is empty; pass a class for each sample")
        return classes

    def _groups(self, groups: Any) -> list[Hashable] | None:
        if groups is None:
            return None
        if isinstance(groups, str):
            return stored_values.column(self._engine, self._table, "split: groups", groups)
        if isinstance(groups, bytes) or not arguments.is_iterable(groups):
            raise ConfigError(f"split: groups must be a field or a value for each sample, not {groups!r:.200}")
        from ..memory.column import is_missing  # imports dataclasses

        values = list(groups.tolist()) if hasattr(groups, "tolist") else list(groups)
        for i, value in enumerate(values):
            if not isinstance(value, Hashable) or is_missing(value):
                raise ConfigError(
                    f"split: groups: the group of sample {i} is {value!r:.80}; pass a number or text for each sample"
                )
        return values

    def _selected(self, condition: Callable[[dict[str, Any]], Any]) -> list[bool]:
        try:
            return [bool(condition(row)) for row in stored_values.rows(self._engine, self._table)]
        except KeyError as error:
            why = stored_values.why_unopened(self._engine, error.args[0] if error.args else None)
            if not why:
                raise
            raise ConfigError(f"filter: {why}") from error

    def take(self, n: int) -> Self:
        """Selects the first ``n`` samples, or all samples if the dataset has fewer."""
        count = arguments.integer("take", "n", n, low=1, high=2**63 - 1)
        return self.subset(range(min(count, len(self._engine))))

    def repeat(self, n: int) -> Self:
        """Repeats all samples ``n`` times in an epoch, each time with new random draws.

        Repeating needs 8 bytes of memory per sample and repetition. To repeat each sample within a batch, see
        ``loader(repeat=)``.
        """
        size = len(self._engine)
        return self._with(_engine.repeat(self._engine, arguments.integer("repeat", "n", n, low=1, high=2**40 // size)))

    def filter(self, condition: Callable[[dict[str, Any]], Any] | Iterable[Any]) -> Self:
        """Selects samples by a mask, or by a function of their stored values; decodes nothing.

        ::

            dataset.filter(scores > 0.5)                       # one boolean per sample
            dataset.filter(lambda row: row["label"] != 3)
            dataset.filter(lambda row: row["key"].startswith("2024/"))

        Args:
            condition: one boolean for each sample, as a list, array, tensor or Series. Or a function that is called
                once for each sample, immediately, with a dict of its ``key`` and its fields that are numbers, text or
                parsed JSON (None if the sample lacks the field), and returns whether to select the sample. With a
                function, these fields are read as by :meth:`targets`. For :func:`feedline.files` and
                :func:`feedline.table`, the dict also has the table's other columns.

        Raises:
            ConfigError: the mask has the wrong length or values that are not booleans, no sample is selected, or the
                dataset is a mixture or has a cache.
            DataError: with a function, a sample cannot be read.
        """
        where, size = "filter", len(self._engine)
        mask = self._selected(condition) if callable(condition) else _mask(where, condition, size)
        chosen = [i for i, selected in enumerate(mask) if selected]
        if not chosen:
            raise ConfigError(f"{where}: no sample of {size} is selected")
        return self.subset(chosen)

    def subset(self, indices: Iterable[Any] | None = None, *, keys: KeyFunction | Iterable[str] | None = None) -> Self:
        """Selects samples by ``indices`` or ``keys``, in the given order: ``dataset.subset(range(1000))``.

        ::

            dataset.subset(keys=["apple/000.jpg", "crow/003.jpg"])
            dataset.subset(keys=lambda keys: sorted(keys, key=by_hash))      # another order
            dataset.subset(keys=lambda keys: [k for k in keys if k.startswith("val_")])

        A sample may be selected several times. The dataset's operations apply to the subset; their random draws depend
        on the index in the subset. If the indices ascend, ``shuffle="shards"`` uses the dataset's shards.

        Args:
            indices: integers, where negative indices count from the end, or one boolean for each sample, as in NumPy
                masks.
            keys: sample names as returned by :meth:`key`; or a function that is called once, immediately, with the keys
                of all samples, in the dataset's order, and returns the selected keys.

        Raises:
            ConfigError: nothing is selected, an index is out of range or not an integer, a key matches no sample or
                several, or the dataset is a mixture or has a cache.
        """
        if (indices is None) == (keys is None):
            raise ConfigError("subset: pass indices or keys")
        positions = _called(self._engine, keys) if keys is not None else _positions(indices, len(self._engine))
        part = self._with(_engine.subset(self._engine, positions))
        part._calls = (*self._calls, Call("subset", (positions,), {}))
        return part


def _counts(parts: Sequence[Any], size: int) -> list[int]:
    if len(parts) == 1 and arguments.is_sequence(parts[0]):
        parts = list(parts[0])
    if not parts:
        raise ConfigError("split: pass the sizes of the parts: split(0.9), or split(0.8, 0.1, 0.1)")
    integers = [isinstance(part, bool) or hasattr(part, "__index__") for part in parts]
    if all(integers):
        counts = [arguments.integer("split", "a part", part, low=1, high=size) for part in parts]
        return [*counts, size - counts[0]] if len(counts) == 1 else counts
    if any(integers):
        raise ConfigError("split: the parts mix fractions and numbers of samples; pass only one of the two forms")
    shares = [arguments.real("split", "a part", part) for part in parts]
    for share in shares:
        if not 0 < share < 1:
            raise ConfigError(f"split: a fraction must be between 0 and 1, not {share!r}")
    if len(shares) == 1:
        shares.append(1 - shares[0])
    if abs(math.fsum(shares) - 1) > _ROUNDING * len(shares):
        raise ConfigError(f"split: the fractions sum to {math.fsum(shares):g}; they must sum to 1")
    ends = [round(math.fsum(shares[: i + 1]) * size) for i in range(len(shares) - 1)] + [size]
    counts = [end - begin for begin, end in zip([0, *ends], ends, strict=False)]
    for share, count in zip(shares, counts, strict=True):
        if count < 1:
            raise ConfigError(f"split: {share:g} of {size} samples is an empty part")
    return counts


def _mask(where: str, condition: Any, size: int) -> list[bool]:
    if isinstance(condition, str | bytes) or not arguments.is_iterable(condition):
        raise ConfigError(f"{where}: pass a boolean for each sample or a function, not {condition!r:.200}")
    mask = list(condition.tolist()) if hasattr(condition, "tolist") else list(condition)
    if len(mask) != size:
        raise ConfigError(f"{where}: the mask has {len(mask)} values for {size} samples; pass one per sample")
    for i, value in enumerate(mask):
        if type(value) is not bool and type(value).__name__ not in ("bool_", "bool"):
            raise ConfigError(
                f"{where}: the value of sample {i} is {value!r:.80}, not a boolean; use subset() for indices"
            )
    return mask


def _called(engine: EngineDataset, keys: KeyFunction | Iterable[str]) -> list[int]:
    """Returns the indices of the samples with these keys."""
    own = [engine.key(i) for i in range(len(engine))]
    wanted = keys(own.copy()) if callable(keys) else keys
    if isinstance(wanted, str | bytes) or not arguments.is_iterable(wanted):
        raise ConfigError(f"subset: keys must be sample names, or a function that returns sample names, not {wanted!r}")
    places = {key: i for i, key in enumerate(own)}
    shared = {key for key, count in Counter(own).items() if count > 1} if len(places) < len(own) else set()
    positions = []
    for key in wanted:
        if not isinstance(key, str):
            raise ConfigError(f"subset: a key must be text, as returned by Dataset.key(), not {key!r}")
        if key not in places:
            near = difflib.get_close_matches(key, own[:_NEAR], 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ConfigError(f"subset: no sample has the key {key!r}{hint}")
        if key in shared:
            raise ConfigError(f"subset: several samples have the key {key!r}; choose them by indices")
        positions.append(places[key])
    return positions


def _positions(indices: Any, size: int) -> list[int]:
    if isinstance(indices, str | bytes) or not arguments.is_iterable(indices):
        raise ConfigError(f"subset: indices must be integers, not {indices!r}")
    given = list(indices.tolist()) if hasattr(indices, "tolist") else list(indices)
    if given and all(isinstance(value, bool) for value in given):
        if len(given) != size:
            raise ConfigError(f"subset: {len(given)} booleans were given for {size} samples; pass one per sample")
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
