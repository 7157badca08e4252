# SPDX-License-Identifier: Apache-2.0
"""Trains a small convolutional network through Feedline, on the CPU."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import nn

from feedline.data import sources

from ..imagenet import IMAGENET_MEAN, IMAGENET_STD

_SIDE = 64  # pixels: an epoch of 200 photos then takes about a second
_BATCH_SIZE = 20
_SEED = 0


class Epoch(NamedTuple):
    """One epoch's mean loss, its duration, and the time for which the training loop waited for data."""

    loss: float
    seconds: float
    waited_s: float


def small_net(classes: int) -> nn.Module:
    """Three convolutions that each halve the resolution, and a linear layer on their mean output."""
    layers: list[nn.Module] = []
    channels = 3
    for width in (16, 32, 64):
        layers += [nn.Conv2d(channels, width, 3, stride=2, padding=1), nn.BatchNorm2d(width), nn.ReLU()]
        channels = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


def train(source: str, epochs: int, done: Callable[[int], object] = lambda epochs: None) -> list[Epoch]:
    """Trains on class folders with random crops and flips; calls ``done(1)`` after each epoch."""
    dataset = (
        sources.open(source)
        .random_resized_crop(_SIDE, scale=(0.3, 1.0))
        .random_horizontal_flip()
        .normalize(IMAGENET_MEAN, IMAGENET_STD)
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(_SEED)
        net = small_net(len(dataset.classes))
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)
    batch_size = max(2, min(_BATCH_SIZE, len(dataset)))  # BatchNorm needs two samples
    history = []
    with dataset.loader(batch_size, shuffle=True, seed=_SEED, drop_last=True) as loader:
        for _ in range(epochs):
            waited, started = _waited(loader), time.perf_counter()
            losses = [_step(net, optimizer, image, label) for image, label in loader]
            seconds = time.perf_counter() - started
            history.append(Epoch(sum(losses) / len(losses), seconds, _waited(loader) - waited))
            done(1)
    return history


def _step(net: nn.Module, optimizer: torch.optim.Optimizer, image: Any, label: Any) -> float:
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(net(image), label)
    loss.backward()
    optimizer.step()
    return float(loss.item())


def _waited(loader: Any) -> float:
    return float(loader.stats()["stages"]["consumer"]["starved_s"])
