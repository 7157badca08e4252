# SPDX-License-Identifier: Apache-2.0
"""What the random operations of ``ds[i]`` draw from: epoch 0, or the generator of the loader that reads it.

A loader of torch's kind asks a dataset for samples by their number alone. If those were always epoch 0's, every epoch
of a training run would have the same crops, and nothing would say so. So inside such a loader a sample draws one number
from torch's generator, as torchvision's transforms do: other numbers in every epoch, the same ones after the same
``torch.manual_seed``. Threads: what a loader reads is marked per thread.
"""

from __future__ import annotations

import contextlib
import contextvars
import sys
from collections.abc import Iterator

# How the names of operations begin that draw.
_RANDOM = (
    "random_", "color_jitter", "auto_augment", "rand_augment", "trivial_augment_wide", "aug_mix", "timm_",
    "gaussian_blur", "elastic_transform", "scale_jitter",
)  # fmt: skip
_RANDOM_ARGUMENTS = ("interpolation=random", "random_scale_prob=", "random_aspect_prob=")
_loader_reads = contextvars.ContextVar("feedline_loader_reads", default=False)  # each thread has its own


def is_random(operation: str) -> bool:
    """Whether an operation, as :attr:`Dataset.operations` describes it, draws."""
    is_seeded = operation.startswith("map(") and operation.endswith("seeded=True)")
    if any(argument in operation for argument in _RANDOM_ARGUMENTS):
        return True
    if operation.startswith("views("):  # of several chains
        return any(f".{name}" in operation for name in _RANDOM)
    return is_seeded or operation.partition("(")[0].startswith(_RANDOM)


@contextlib.contextmanager
def by_a_loader() -> Iterator[None]:
    """Around what a loader reads in this thread."""
    before = _loader_reads.set(True)
    try:
        yield
    finally:
        _loader_reads.reset(before)


def wanted() -> bool:
    """Whether a loader reads: :func:`by_a_loader`, or a worker of torch's."""
    if _loader_reads.get():
        return True
    data = sys.modules.get("torch.utils.data")  # without it there is no such worker
    return data is not None and data.get_worker_info() is not None


def number() -> int:
    """The next number of torch's generator in this process, 63 bits."""
    import torch

    return int(torch.empty((), dtype=torch.int64).random_().item())
