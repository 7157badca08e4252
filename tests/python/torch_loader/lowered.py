# SPDX-License-Identifier: Apache-2.0
"""Helpers for the tests of lowered loaders: comparing with torch's loader, and checking that the engine was used."""

from __future__ import annotations

import random

import numpy as np
import torch
from torch.utils.data import DataLoader as TorchLoader

from feedline import DataLoader
from feedline.torch_loader.lowering.plan import plan_lowering
from feedline.torch_loader.native.plans import ArrayPlan, ImagePlan, PrefixPlan, Reason
from feedline.torch_loader.options.settings import Settings


def plan_of(loader) -> str:
    return {ArrayPlan: "arrays", ImagePlan: "images", PrefixPlan: "prefix", Reason: "python"}[
        type(plan_lowering(Settings.of(loader), loader._progress))
    ]


def numbers(value) -> list:
    return value.tolist() if isinstance(value, torch.Tensor) else list(value)


def assert_same(ours, theirs) -> None:
    """Compares structures, types and integers; float32 may differ by the last bit of a pixel before normalization."""
    assert type(ours) is type(theirs)
    if isinstance(ours, torch.Tensor):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        if ours.dtype == torch.float32:
            last_bit = (torch.nextafter(theirs.abs(), torch.tensor(torch.inf)) - theirs.abs()).clamp(min=2.0**-22)
            assert bool(((ours - theirs).abs() <= last_bit).all()), float((ours - theirs).abs().max())
        else:
            assert torch.equal(ours, theirs)
    elif isinstance(ours, np.ndarray):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        assert np.array_equal(ours, theirs)
    elif isinstance(ours, (list, tuple)):
        assert len(ours) == len(theirs)
        for mine, other in zip(ours, theirs, strict=True):
            assert_same(mine, other)
    elif isinstance(ours, dict):
        assert_same(list(ours.items()), list(theirs.items()))
    else:
        assert ours == theirs


def assert_same_epochs(dataset, *, plan: str, epochs: int = 1, workers: int = 0, **options) -> None:
    """Feedline's loader over `dataset`, planned as `plan`, returns the same as torch's in this process."""
    torch.manual_seed(5)
    ours = DataLoader(dataset, num_workers=workers, **options)
    assert plan_of(ours) == plan, ours.explain()
    found = [list(ours) for _ in range(epochs)]
    after = random_states()
    if plan == "images":
        rows = sum(len(images) for batches in found for images, _ in batches)
        assert (ours._progress.native_rows, ours._progress.native_misses) == (rows, 0)
    torch.manual_seed(5)
    theirs = TorchLoader(dataset, **options)
    assert_same(found, [list(theirs) for _ in range(epochs)])
    assert after == random_states()


def random_states() -> tuple:
    return torch.get_rng_state().numpy().tobytes(), random.getstate(), str(np.random.get_state())


def error_of(call):
    """Returns the type of the exception that `call` raises."""
    try:
        call()
    except Exception as error:
        return type(error)
    return None
