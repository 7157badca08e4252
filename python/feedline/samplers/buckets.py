# SPDX-License-Identifier: Apache-2.0
"""`feedline.BucketBatchSampler`: batches of samples of similar length, for map-style datasets."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from torch.utils.data import Sampler

from ..errors import ConfigError
from ..machine import ranks

_BUCKETS = 8
_MOST_BUCKETS = 2**20  # larger numbers must be a mistake: all samples of a batch come from one bucket
_Indices = npt.NDArray[np.int64]


class BucketBatchSampler(Sampler[list[int]]):
    """Batches samples of similar length, to reduce padding. Limits the size of a batch in rows, tokens or both.

    ::

        batches = feedline.BucketBatchSampler([len(text) for text in texts], max_tokens=8192)
        loader = feedline.DataLoader(dataset, batch_sampler=batches, collate_fn=pad)

    All ranks have the same number of batches. At each step, their batches are from the same bucket and have the same
    number of rows, except for the last group of the longest bucket. Samples that do not fill a batch on all ranks move
    to the next longer bucket, different ones each epoch. The order depends on `seed` and on the epoch, which Feedline's
    loaders increment.

    Args:
        lengths: length of each sample of the dataset, at least 0, in any unit, as int64 or convertible by NumPy.
        batch_size: maximum number of rows in a batch on each rank.
        max_tokens: maximum number of tokens in a batch on each rank, counted as the batch's rows times its bucket's
            upper bound. Pass `batch_size`, `max_tokens`, or both.
        buckets: the number of buckets of about equal size, or the buckets' upper bounds in ascending order. The last
            bound must be at least the length of the longest sample.
        shuffle: whether to shuffle the samples within each bucket, and the order of all batches. If False, the shortest
            samples come first.
        seed: seed of the shuffled order.
        drop_last: whether to drop the remainder of the longest bucket.
        uneven: how the remainder of the longest bucket is divided: ``"pad"`` repeats some samples, so that all ranks
            have the same number of rows; ``"exact"`` repeats nothing, so that some ranks may have one row fewer or no
            batch.
        num_replicas, rank: the number of ranks and this process's rank; by default torch.distributed's, the launcher's,
            or those of a single process, read at the first use.
        mesh, dp: a ``DeviceMesh`` and its data-parallel dimensions, in place of `num_replicas` and `rank`, as for
            `Dataset.loader`.

    Attributes:
        bounds: the buckets' upper bounds, ascending.
        epoch: epoch of the next order.

    Raises:
        ConfigError: neither `batch_size` nor `max_tokens` is given, a length exceeds all bounds, or a bucket's bound
            exceeds `max_tokens`.
    """

    def __init__(
        self,
        lengths: Sequence[int] | npt.ArrayLike,
        batch_size: int | None = None,
        max_tokens: int | None = None,
        *,
        buckets: int | Sequence[int] = _BUCKETS,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
        uneven: Literal["pad", "exact"] = "pad",
        num_replicas: int | None = None,
        rank: int | None = None,
        mesh: Any = None,
        dp: str | int | Sequence[str | int] | None = None,
    ) -> None:
        if batch_size is None and max_tokens is None:
            raise ConfigError("BucketBatchSampler: pass batch_size, max_tokens, or both")
        for name, value in (("batch_size", batch_size), ("max_tokens", max_tokens)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise ConfigError(f"BucketBatchSampler: {name} must be a positive integer, not {value!r}")
        for name, flag in (("shuffle", shuffle), ("drop_last", drop_last)):
            if not isinstance(flag, bool):
                raise ConfigError(f"BucketBatchSampler: {name} must be True or False, not {flag!r}")
        if not isinstance(uneven, str) or uneven not in ("pad", "exact"):
            raise ConfigError(f'BucketBatchSampler: uneven must be "pad" or "exact", not {uneven!r}')
        self._share = ranks.Share("BucketBatchSampler", rank, num_replicas, mesh, dp)
        self.shuffle, self.seed, self.drop_last, self.uneven, self.epoch = shuffle, seed, drop_last, uneven, 0
        of_samples = _checked(lengths)
        self.bounds = _bounds(of_samples, buckets)
        self.rows = [_rows(bound, batch_size, max_tokens) for bound in self.bounds]
        of_bucket = np.searchsorted(np.array(self.bounds), of_samples)
        self._members = [np.flatnonzero(of_bucket == bucket) for bucket in range(len(self.bounds))]
        self._counted: tuple[int, int, int] | None = None  # rank, num_replicas, number of batches

    @property
    def rank(self) -> int:
        """This process's rank, which is fixed once the first epoch has begun."""
        return self._share.place().rank

    @property
    def num_replicas(self) -> int:
        """The number of ranks that share the samples."""
        return self._share.place().world_size

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch of the next order."""
        self.epoch = epoch

    def __len__(self) -> int:
        """Returns this rank's number of batches per epoch, which is the same in every epoch."""
        rank, replicas, _ = self._share.place()
        if self._counted is None or self._counted[:2] != (rank, replicas):
            groups = self._groups(None, replicas)
            self._counted = rank, replicas, sum(1 for group, _ in groups if len(group[rank::replicas]))
        return self._counted[2]

    def __iter__(self) -> Iterator[list[int]]:
        rank, replicas, _ = self._share.begin()
        random = np.random.default_rng((self.seed, self.epoch)) if self.shuffle else None
        groups = list(self._groups(random, replicas))
        places = random.permutation(len(groups)) if random is not None else np.arange(len(groups))
        for position in places:
            group, _ = groups[int(position)]
            mine = group[rank::replicas]
            if len(mine):
                yield mine.tolist()

    def _groups(self, random: np.random.Generator | None, replicas: int) -> Iterator[tuple[_Indices, int]]:
        """Yields, for each step, the samples of all ranks and their bucket, beginning with the shortest samples."""
        left = np.empty(0, dtype=np.int64)
        for bucket, members in enumerate(self._members):
            ordered = np.concatenate([left, members if random is None else random.permutation(members)])
            size = self.rows[bucket] * replicas
            whole = len(ordered) // size * size
            for first in range(0, whole, size):
                yield ordered[first : first + size], bucket
            left = ordered[whole:]
        if len(left) and not self.drop_last:
            if self.uneven == "pad":
                missing = -len(left) % replicas
                left = np.concatenate([left, np.resize(left, missing)])
            yield left, len(self._members) - 1


def _checked(lengths: Any) -> _Indices:
    found = np.asarray(lengths)
    if found.ndim != 1 or found.dtype.kind not in "iu" or (len(found) and found.min() < 0):
        if found.size:
            raise ConfigError(
                "BucketBatchSampler: lengths must be non-negative integers, one for each sample, "
                f"not {found.tolist()!r:.80}"
            )
        found = found.reshape(0)
    return found.astype(np.int64, copy=False)


def _bounds(lengths: _Indices, buckets: int | Sequence[int]) -> list[int]:
    if isinstance(buckets, int):
        if isinstance(buckets, bool) or not 1 <= buckets <= _MOST_BUCKETS:
            raise ConfigError(
                f"BucketBatchSampler: buckets must be a number from 1 to {_MOST_BUCKETS}, or bounds, not {buckets!r}"
            )
        if not len(lengths):
            return [1]
        cuts = np.quantile(lengths, np.arange(1, buckets + 1) / buckets, method="higher")
        return sorted({max(1, int(cut)) for cut in cuts})
    try:
        bounds = [operator.index(bound) for bound in buckets]
    except TypeError:
        raise ConfigError(
            f"BucketBatchSampler: buckets must be a positive integer, or bounds as integers, not {buckets!r}"
        ) from None
    if not bounds or bounds[0] < 1 or any(low >= high for low, high in itertools.pairwise(bounds)):
        raise ConfigError(f"BucketBatchSampler: bounds of buckets must be positive and ascending, not {buckets!r}")
    if len(lengths) and lengths.max() > bounds[-1]:
        sample = int(lengths.argmax())
        raise ConfigError(
            f"BucketBatchSampler: sample {sample} has length {lengths[sample]}, but the last bound is {bounds[-1]}"
        )
    return bounds


def _rows(bound: int, batch_size: int | None, max_tokens: int | None) -> int:
    if max_tokens is None:
        assert batch_size is not None
        return batch_size
    if max_tokens < bound:
        raise ConfigError(
            f"BucketBatchSampler: max_tokens={max_tokens} is too small for a sample of the bucket with bound {bound}"
        )
    rows = max_tokens // bound
    return rows if batch_size is None else min(batch_size, rows)
