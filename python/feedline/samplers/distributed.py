# SPDX-License-Identifier: Apache-2.0
"""`feedline.DistributedSampler`: torch's order divided among ranks, with every sample exactly once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from torch.utils.data.distributed import DistributedSampler as _TorchDistributedSampler

from ..errors import ConfigError
from ..machine import ranks


class DistributedSampler(_TorchDistributedSampler[Any]):
    """torch's `DistributedSampler` without padding: no sample is repeated, so metrics are the same as with a single
    process.

    The order is torch's, without the samples that torch repeats to give all ranks the same number. With `n` samples and
    `r` ranks, the first `n % r` ranks have one more sample than the other ranks, which may therefore have one batch
    fewer. Do not call a collective operation per batch unless finished ranks join it
    (`torch.distributed.algorithms.Join`). Gather the ranks' results at the end.

    Args:
        dataset, num_replicas, rank, shuffle, seed, drop_last: as in torch. ``drop_last=True`` drops the samples that do
            not divide evenly, as in torch.
        mesh, dp: a ``DeviceMesh`` and its data-parallel dimensions, in place of `num_replicas` and `rank`, as for
            :meth:`Dataset.loader`. Ranks that differ only in other dimensions, such as tensor parallelism, receive the
            same samples.

    Raises:
        ConfigError: a kind of parallelism other than data parallelism is active and neither `mesh` nor `rank` is given,
            or torch.distributed's ranks have changed between the sampler's creation and the start of an epoch.
        ValueError: raised by torch if `rank` is not below `num_replicas`.
        RuntimeError: raised by torch if `rank` or `num_replicas` is not given and cannot be determined.
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
    """Converts torch's DistributedSampler to a sampler that repeats no sample. Returns any other sampler unchanged.
    Only the exact type is converted, because a subclass may define its own order.
    """
    if type(sampler) is not _TorchDistributedSampler or sampler.drop_last:
        return sampler
    found = DistributedSampler(
        sampler.dataset, sampler.num_replicas, sampler.rank, sampler.shuffle, sampler.seed, sampler.drop_last
    )
    found.set_epoch(sampler.epoch)
    return found
