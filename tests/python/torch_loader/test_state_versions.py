# SPDX-License-Identifier: Apache-2.0
"""States that were saved before version 2 of the format resume as before."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
import torch
from stateful_cases import Plain, Positioned

from feedline import ConfigError, DataLoader

SAVED = json.loads((Path(__file__).parent / "states_of_version_1.json").read_text())
REST = {
    "shuffled": [[22, 9, 11, 7], [18, 16, 3, 12], [14, 15, 0, 19], [21, 17, 2]],
    "end": [[13, 6, 0, 19], [8, 17, 5, 4], [14, 22, 15, 3], [1, 16, 7, 10], [2, 18, 21, 11], [12, 9, 20]],
    "stream": [[9, 11, 13, 15], [16, 18, 20, 22], [17, 19, 21]],
}


def loader(name):
    generator = torch.Generator().manual_seed(8)  # different from that of the state
    if name == "stream":
        return DataLoader(
            Positioned(), 4, num_workers=2, collate_fn=lambda batch: [at for at, _ in batch], generator=generator
        )
    more = {} if name == "shuffled" else {"generator": generator}
    return DataLoader(Plain(), 4, shuffle=True, collate_fn=list, **more)


@pytest.mark.parametrize("name", REST)
def test_a_state_of_version_1_resumes(name):
    """`REST` are the batches that the release that wrote the states delivered."""
    assert SAVED[name]["version"] == 1
    resumed = loader(name)
    resumed.load_state_dict(copy.deepcopy(SAVED[name]))
    assert list(resumed) == REST[name]


def test_a_state_of_a_later_version_is_refused():
    with pytest.raises(ConfigError, match="version 3"):
        loader("end").load_state_dict({**SAVED["end"], "version": 3})
