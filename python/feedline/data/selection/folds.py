# SPDX-License-Identifier: Apache-2.0
"""Assigns samples to the folds of a cross-validation."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence

from ... import _engine
from ...errors import ConfigError

_WHERE = "split"


def assigned(
    size: int,
    folds: int,
    seed: int,
    classes: Sequence[int] | None,
    groups: Sequence[Hashable] | None,
    names: Sequence[str] = (),
) -> list[int]:
    """Returns the fold of every sample, from 0 to ``folds - 1``. The same arguments produce the same folds on every
    machine.

    Without groups, fold sizes differ by at most one sample; with classes, so does each class's number of samples per
    fold. Groups are not split. From largest to smallest, each group is assigned to the fold that makes the class
    distribution most even, as in scikit-learn's StratifiedGroupKFold, or, without classes, to the fold with the fewest
    samples. `names`: names of the classes, for messages.

    Raises:
        ConfigError: there are fewer samples, samples of a class, or groups than folds.
    """
    for name, values in (("by_class", classes), ("groups", groups)):
        if values is not None and len(values) != size:
            raise ConfigError(f"{_WHERE}: {name} has {len(values)} values for {size} samples; pass one per sample")
    if size < folds:
        raise ConfigError(
            f"{_WHERE}: k_fold={folds} needs at least {folds} samples, but the dataset has {size}; use fewer folds"
        )
    order = [
        int(i)
        for i in _engine.sample_order(
            samples=size, shard_ends=[], shuffle=True, shard_window=0, seed=seed, epoch=0, begin=0, count=size
        )
    ]
    if groups is not None:
        return _of_groups(order, folds, classes, groups)
    if classes is not None:
        for value, count in sorted(Counter(classes).items()):
            if count < folds:
                fewer = f"use at most {count} folds, or " if count > 1 else ""
                name = f" ({names[value]!r})" if 0 <= value < len(names) else ""
                raise ConfigError(
                    f"{_WHERE}: class {value}{name} has {count} sample{'s' * (count > 1)}, too few for k_fold={folds} "
                    f"with by_class; {fewer}leave the class out with filter()"
                )
        order.sort(key=classes.__getitem__)  # stable
    fold_of = [0] * size
    for position, sample in enumerate(order):
        fold_of[sample] = position % folds
    return fold_of


def _of_groups(order: list[int], folds: int, classes: Sequence[int] | None, groups: Sequence[Hashable]) -> list[int]:
    members: defaultdict[Hashable, list[int]] = defaultdict(list)  # in the order's random order
    for sample in order:
        members[groups[sample]].append(sample)
    if len(members) < folds:
        raise ConfigError(
            f"{_WHERE}: k_fold={folds} needs at least {folds} groups, but the samples have {len(members)}; use "
            "fewer folds or smaller groups"
        )
    totals = Counter(classes)
    counts: list[Counter[int]] = [Counter() for _ in range(folds)]  # samples of each class in each fold
    sizes = [0] * folds
    fold_of = [0] * len(order)
    for samples in sorted(members.values(), key=len, reverse=True):  # stable
        if classes is None:
            best = sizes.index(min(sizes))
        else:
            added = Counter(map(classes.__getitem__, samples))

            def unevenness(fold: int, added: Counter[int] = added) -> tuple[float, int]:
                # how much the group would raise the sum over classes of the squared shares of the folds
                return (
                    sum(n * (2 * counts[fold][one] + n) / totals[one] ** 2 for one, n in added.items()),
                    sizes[fold],
                )

            best = min(range(folds), key=unevenness)
            counts[best].update(added)
        sizes[best] += len(samples)
        for sample in samples:
            fold_of[sample] = best
    return fold_of
