# SPDX-License-Identifier: Apache-2.0
"""Prints the result of a recipe for a folder of photos."""

from __future__ import annotations

import argparse
from collections.abc import Callable

import feedline


def main(train: Callable[[feedline.Dataset], feedline.Dataset]) -> None:
    """Prints the shapes of the first batch, the values drawn for the first sample, and the operations that run."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", help="photos in class folders, or tars")
    parser.add_argument("--batch-size", type=int, default=4)
    arguments = parser.parse_args()
    dataset = train(feedline.open(arguments.folder))
    with dataset.loader(arguments.batch_size, shuffle=True, seed=0, output="numpy") as loader:
        batch = next(iter(loader))
    for name, field in zip(batch._fields, batch, strict=True):
        print(f"{name}: {field.dtype} {field.shape}")
    for one in dataset.draw(0):
        print(f"{one.view or 'all'}: {one.operation} {one.name} {one.values}")
    print(dataset.explain(), end="")
