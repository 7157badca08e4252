# SPDX-License-Identifier: Apache-2.0
"""Random numbers for ``ds[i]``: drawn as in epoch 0, or from torch's generator inside a DataLoader.

A torch DataLoader requests samples only by index. If every read used epoch 0's draws, every epoch of a training run
would silently have the same crops. Therefore, each sample that is read inside a torch DataLoader draws one number from
torch's generator, as torchvision's transforms do. The draws differ in every epoch and are reproducible with
``torch.manual_seed``. A thread-local flag records that a loader is reading.
"""

from __future__ import annotations

import contextlib
import contextvars
import sys
from collections.abc import Iterator

# Prefixes of the names of random operations.
_RANDOM = (
    "random_", "color_jitter", "auto_augment", "rand_augment", "trivial_augment_wide", "aug_mix", "timm_",
    "gaussian_blur", "elastic_transform", "scale_jitter", "add_noise", "speed_perturbation",
)  # fmt: skip
_RANDOM_ARGUMENTS = (
    "interpolation=random", "random_scale_prob=", "random_aspect_prob=",
    "random=True", 'sampling="random"', 'sampling="segments"',
)  # fmt: skip
_loader_reads = contextvars.ContextVar("feedline_loader_reads", default=False)  # thread-local


def is_random(operation: str) -> bool:
    """Whether an operation, given as an item of :attr:`Dataset.operations`, is random."""
    is_seeded = operation.startswith("map(") and operation.endswith("seeded=True)")
    if any(argument in operation for argument in _RANDOM_ARGUMENTS):
        return True
    if operation.startswith("views("):  # operations with several chains
        return any(f".{name}" in operation for name in _RANDOM)
    return is_seeded or operation.partition("(")[0].startswith(_RANDOM)


@contextlib.contextmanager
def by_a_loader() -> Iterator[None]:
    """Context manager that marks reads in this thread as made by a loader."""
    before = _loader_reads.set(True)
    try:
        yield
    finally:
        _loader_reads.reset(before)


def wanted() -> bool:
    """Whether a loader is reading, that is, inside :func:`by_a_loader` or a torch worker process."""
    if _loader_reads.get():
        return True
    data = sys.modules.get("torch.utils.data")  # without torch there is no worker process
    return data is not None and data.get_worker_info() is not None


def number() -> int:
    """Returns the next 63-bit number from torch's generator in this process."""
    import torch

    return int(torch.empty((), dtype=torch.int64).random_().item())
