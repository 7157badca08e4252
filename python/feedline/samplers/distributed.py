# SPDX-License-Identifier: Apache-2.0
"""`feedline.DistributedSampler`: torch's order over ranks, and every sample exactly once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from torch.utils.data.distributed import DistributedSampler as _TorchDistributedSampler

from ..errors import ConfigError
from ..machine import ranks


class DistributedSampler(_TorchDistributedSampler[Any]):
    """torch's `DistributedSampler` without padding: no sample comes twice, so metrics are those of one process.

    The order is torch's, without the samples that torch repeats so that all ranks have as many. With `n` samples over
    `r` ranks the first `n % r` ranks have one more than the others, so their last batch may be one that other ranks do
    not have: no collective operation may be called for each batch, unless ranks that have ended join it
    (`torch.distributed.algorithms.Join`). Gather what each rank has found when it has ended.

    Args:
        dataset, num_replicas, rank, shuffle, seed, drop_last: torch's. ``drop_last=True`` leaves out the samples
            that do not divide evenly, as torch does.
        mesh, dp: a ``DeviceMesh`` and its data-parallel dimensions, instead of `num_replicas` and `rank`, as for
            :meth:`Dataset.loader`: tensor, context and pipeline parallel peers get the same samples.

    Raises:
        ConfigError: there is parallelism besides data parallelism and neither `mesh` nor `rank`; or torch.distributed
            has other numbers when an epoch begins than when the sampler was made.
        ValueError: torch's, of a rank that is not one of `num_replicas`.
        RuntimeError: torch's, where neither rank nor number of replicas are given or known.
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
        *,
        mesh: Any = None,
        dp: str | int | Sequence[str | int] | None = None,
    ) -> None:
        for name, value in (("num_replicas", num_replicas), ("rank", rank)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
                raise ConfigError(f"DistributedSampler: {name} must be an integer or None, not {value!r}")
        if not hasattr(dataset, "__len__") or getattr(dataset, "ndim", 1) == 0:
            raise ConfigError(f"DistributedSampler: dataset must have a length, but {type(dataset).__name__} has none")
        if not isinstance(drop_last, bool):
            raise ConfigError(f"DistributedSampler: drop_last must be True or False, not {drop_last!r}")
        self._share: ranks.Share | None = None
        if mesh is not None or dp is not None or (ranks.from_torch() and num_replicas is None and rank is None):
            self._share = ranks.Share("DistributedSampler", rank, num_replicas, mesh, dp)
            rank, num_replicas, _ = self._share.begin()
        super().__init__(dataset, num_replicas, rank, shuffle, seed, drop_last)
        if not drop_last:
            self.total_size = len(dataset)
            self.num_samples = len(range(self.rank, self.total_size, self.num_replicas))

    def __iter__(self) -> Iterator[int]:
        if self._share is not None:
            self._share.begin()
        return super().__iter__()


def exact(sampler: Any) -> Any:
    """torch's sampler over ranks as one that repeats nothing; any other as it is. Exact types alone: a subclass may
    have an order of its own."""
    if type(sampler) is not _TorchDistributedSampler or sampler.drop_last:
        return sampler
    found = DistributedSampler(
        sampler.dataset, sampler.num_replicas, sampler.rank, sampler.shuffle, sampler.seed, sampler.drop_last
    )
    found.set_epoch(sampler.epoch)
    return found
