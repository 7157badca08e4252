# SPDX-License-Identifier: Apache-2.0
"""Lightning recreates a loader to insert its own sampler. The losses equal those with torch's loader."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("lightning", reason="Lightning is not installed (tools/test --integrations installs it)")

import lightning_runs
from lightning.pytorch.utilities.data import _update_dataloader
from tiny_training import Points, run_two_ranks
from torch.utils.data import DistributedSampler

import feedline


def test_fit_and_predict_give_the_same_losses_and_samples():
    for options, runs in lightning_runs.every_run(1).items():
        assert runs["feedline"] == runs["torch"], options
        assert runs["feedline"]["losses"][-1] < runs["feedline"]["losses"][0]
        predicted = [i for batch in runs["feedline"]["predictions"] for i in batch]
        assert predicted == list(range(13))  # also with drop_last, which Lightning removes


def test_fit_gives_the_same_losses_on_two_ranks_with_a_sampler_put_in(tmp_path):
    ranks = run_two_ranks(Path(lightning_runs.__file__), tmp_path)
    for runs in ranks:
        for options, by_loader in runs.items():
            assert by_loader["feedline"] == by_loader["torch"], options
            assert by_loader["feedline"]["sampler"] == "DistributedSampler"
    seen = [i for rank in ranks for batch in rank["{}"]["feedline"]["samples"][:4] for i in batch]
    assert sorted(seen) == list(range(50))


def test_a_rebuilt_loader_keeps_what_feedline_adds():
    given = {
        "seed": 7,
        "on_error": "skip",
        "error_budget": 3,
        "memory_budget": 1 << 20,
        "worker_method": "thread",
        "prefetch_epochs": True,
        "stall_timeout": 9.0,
        "snapshot_every_n_steps": None,
        "lower": "never",
        "device": "cpu",
    }
    loader = feedline.DataLoader(Points(), 8, num_workers=2, persistent_workers=True, **given)
    remade = _update_dataloader(loader, DistributedSampler(Points(), 2, 0))
    assert type(remade) is feedline.DataLoader and type(remade.sampler) is DistributedSampler
    assert {name: getattr(remade, name) for name in given} == given
    assert len(list(remade)) == 4


def test_a_seeded_order_stays_that_of_its_seed_in_a_rebuilt_loader():
    loader = feedline.DataLoader(Points(), 8, shuffle=True, seed=7)
    remade = _update_dataloader(loader, loader.sampler)
    orders = [[batch["index"].tolist() for batch in each] for each in (loader, remade, loader, remade)]
    assert orders[0] == orders[1] != orders[2] == orders[3]
