# SPDX-License-Identifier: Apache-2.0
"""Trains a small convolutional net through Feedline, on the CPU."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

import feedline

SIDE = 64  # pixels: small, so that an epoch takes seconds
BATCH_SIZE = 32


def small_net(classes: int) -> nn.Module:
    """Three convolutions that halve the picture each, and a linear layer on their mean."""
    layers: list[nn.Module] = []
    channels = 3
    for width in (16, 32, 64):
        layers += [nn.Conv2d(channels, width, 3, stride=2, padding=1), nn.BatchNorm2d(width), nn.ReLU()]
        channels = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


def train(folder: Path, epochs: int, step: Callable[[int, int, float], None]) -> list[dict[str, Any]]:
    """Trains on `folder`; calls `step(epoch, batches, loss)` after each batch. Returns one entry per epoch: mean loss,
    seconds, and seconds of them that the training loop waited for data.
    """
    torch.manual_seed(0)
    dataset = (
        feedline.open(folder)
        .random_resized_crop(SIDE, scale=(0.3, 1.0))
        .random_horizontal_flip()
        .normalize(feedline.IMAGENET_MEAN, feedline.IMAGENET_STD)
    )
    net = small_net(len(dataset.classes))
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)
    history = []
    with dataset.loader(BATCH_SIZE, shuffle=True, drop_last=True) as loader:
        for epoch in range(epochs):
            losses = []
            waited = loader.stats()["stages"]["consumer"]["starved_s"]
            started = time.perf_counter()
            for image, label in loader:
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(net(image), label)
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
                step(epoch, len(loader), losses[-1])
            history.append(
                {
                    "epoch": epoch + 1,
                    "loss": sum(losses) / len(losses),
                    "first_loss": losses[0],
                    "last_loss": losses[-1],
                    "losses": losses,
                    "seconds": time.perf_counter() - started,
                    "waited_s": loader.stats()["stages"]["consumer"]["starved_s"] - waited,
                }
            )
    return history
