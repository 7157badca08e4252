# SPDX-License-Identifier: Apache-2.0
"""The loop of the scripts in this folder: batches of bytes are copied to the GPU, and matrices are multiplied there."""

from __future__ import annotations

from collections.abc import Iterator

import torch

BATCH = 64 << 20  # bytes: some ms over any link
STEPS = 80


def loader(batch: torch.Tensor) -> Iterator[torch.Tensor]:
    return iter(torch.utils.data.DataLoader([batch] * STEPS, batch_size=None, collate_fn=lambda sample: sample))


def network(side: int = 2048, dtype: torch.dtype = torch.float32) -> tuple[torch.nn.Parameter, torch.optim.Optimizer]:
    weight = torch.nn.Parameter(torch.ones(side, side, device="cuda", dtype=dtype))
    return weight, torch.optim.SGD([weight], lr=0.0)


def step(weight: torch.nn.Parameter, optimizer: torch.optim.Optimizer, turns: int = 1) -> None:
    for _ in range(turns):
        (weight @ weight).sum().backward()
    optimizer.step()
