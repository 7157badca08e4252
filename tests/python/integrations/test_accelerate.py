# SPDX-License-Identifier: Apache-2.0
"""Accelerate's `prepare` recreates loaders from their attributes. The losses equal those with torch's loader."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("accelerate", reason="Accelerate is not installed (tools/test --integrations installs it)")

import accelerate_runs
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from tiny_training import Points, run_two_ranks

import feedline


def compare(runs):
    """Every run with Feedline delivers the same samples as torch."""
    names = [name.removesuffix(": torch's") for name in runs if name.endswith(": torch's")]
    assert len(names) == 9
    for name in names:
        expected = runs[f"{name}: torch's"]
        assert runs[f"{name}: ours"] == expected, name
        assert runs[f"{name}: ours, remade as ours"] == expected, name


@pytest.fixture(autouse=True)
def no_state_left():
    yield
    AcceleratorState._reset_state(True)


def test_prepare_trains_to_the_same_losses():
    runs = accelerate_runs.every_run()
    compare(runs)
    usual = runs["usual, 0 workers: torch's"]
    assert len(usual["losses"]) == 14 and usual["losses"][-1] < usual["losses"][0]
    assert [len(batches) for batches in (usual["samples"], usual["skipped"])] == [14, 5]


def test_prepare_trains_to_the_same_losses_on_two_ranks(tmp_path):
    ranks = run_two_ranks(Path(accelerate_runs.__file__), tmp_path)
    for runs in ranks:
        compare(runs)
    uneven = [rank["uneven, 0 workers: ours"]["samples"] for rank in ranks]
    first_epoch = [*uneven[0][:4], *uneven[1][:3]]
    assert sorted(i for batch in first_epoch for i in batch) == list(range(50))


def test_what_feedline_adds_goes_through_prepare_where_loaders_are_remade_as_feedlines():
    """If Accelerate recreates a loader from its attributes, only torch's arguments are kept, and the class with its
    state.
    """
    with accelerate_runs.remaking(feedline.DataLoader):
        loader = Accelerator(cpu=True).prepare(feedline.DataLoader(Points(), batch_size=8, num_workers=2))
        iterator = iter(loader)
        next(iterator), next(iterator)
        saved = loader.state_dict()
        rest = [batch["index"] for batch in iterator]
        loader.load_state_dict(saved)
        assert torch.equal(torch.cat([batch["index"] for batch in loader]), torch.cat(rest))
