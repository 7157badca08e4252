# SPDX-License-Identifier: Apache-2.0
"""in_order=False: a state lists the batches that have not been delivered, and a run that resumes from it delivers these
first.
"""

from __future__ import annotations

import copy
import json
import multiprocessing

import pytest
import torch
from stateful_cases import GeneratorSampler
from torch.utils.data import Dataset

from feedline import ConfigError, DataLoader

SIZE = 24


class Gated(Dataset):
    """The batch of `held` is delivered when the gate is opened."""

    def __init__(self, held):
        self.held, self.gate = held, multiprocessing.Event()

    def __len__(self):
        return SIZE

    def __getitem__(self, index):
        if index == self.held:
            self.gate.wait(60)
        return int(index)


def make(dataset, workers=2, stateful=False, **more):
    if stateful:
        more["sampler"] = GeneratorSampler()
    else:
        more |= {"shuffle": True, "generator": torch.Generator().manual_seed(3)}
    return DataLoader(
        dataset, 3, num_workers=workers, in_order=workers == 0, collate_fn=list, prefetch_factor=2 if workers else None,
        **more,
    )  # fmt: skip


def interrupted(stateful=False):
    """A loader that has delivered three batches, but not the first one: the whole order, these batches, its state, the
    others.
    """
    expected = list(make(Gated(None), 0, stateful))
    dataset = Gated(expected[0][0])
    loader = make(dataset, stateful=stateful)
    iterator = iter(loader)
    seen = [next(iterator) for _ in range(3)]
    state = json.loads(json.dumps(loader.state_dict()))
    dataset.gate.set()
    return expected, seen, state, list(iterator)


@pytest.mark.parametrize("stateful", [False, True])
@pytest.mark.parametrize("workers", [2, 1, 0])
def test_every_batch_comes_once_though_some_were_overtaken(workers, stateful):
    expected, seen, state, rest = interrupted(stateful)
    expected_rest = [batch for batch in expected if batch not in seen]
    assert expected[0] not in seen and sorted(rest) == sorted(expected_rest)
    assert state["delivered"] == 3 and expected[0] in state["waiting"]
    resumed = make(Gated(None), workers, stateful)
    resumed.load_state_dict(state)
    found = list(resumed)
    assert sorted(found) == sorted(expected_rest)
    if workers < 2:
        assert found == expected_rest, "those that were overtaken come first"


def test_a_resumed_run_that_is_interrupted_again_still_waits_for_them():
    expected, seen, state, _ = interrupted()
    for _ in range(2):  # by one batch each
        dataset = Gated(expected[0][0])
        resumed = make(dataset)
        resumed.load_state_dict(copy.deepcopy(state))
        iterator = iter(resumed)
        seen.append(next(iterator))
        state = resumed.state_dict()
        assert state["waiting"][0] == expected[0]
        dataset.gate.set()
        del iterator
    last = make(Gated(None), 0)
    last.load_state_dict(state)
    assert seen + list(last) == [*seen, *(batch for batch in expected if batch not in seen)]


def test_what_fills_up_an_order_from_its_end_does_not_continue_from_within_it():
    *_, state, _ = interrupted()
    resumed = make(Gated(None), 0, on_error="skip")
    resumed.load_state_dict(state)
    with pytest.raises(ConfigError, match="in_order=False"):
        list(resumed)
