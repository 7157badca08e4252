# SPDX-License-Identifier: Apache-2.0
"""States of every released version resume at their samples, and states of later versions are clear errors.

`python test_released_states.py next` writes states/next.json. When a version is released, rename it to that version.
States of 0.1.0 and 0.2.0 were written in the form that these versions wrote, with later engines.
"""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import feedline

FOLDER = Path(__file__).with_name("states")
ROWS, BATCH = 53, 4
RELEASED = ("0.1.0", "0.2.0", "next")


def rows() -> feedline.Dataset:
    return feedline.arrays(y=np.arange(ROWS))


def native(**options: Any) -> Callable[[], feedline.Loader]:
    given = {"rank": 0, "world_size": 1, "shuffle": True, "seed": 23, "output": "numpy", **options}
    return lambda: rows().loader(BATCH, **given)


def mixture() -> feedline.Loader:
    other = feedline.arrays(y=np.arange(100, 130))
    mixed = feedline.mix([rows(), other], weights=[3, 1])
    return mixed.loader(BATCH, rank=0, world_size=1, shuffle=True, seed=23, output="numpy")


def drop_in(**options: Any) -> Callable[[], Any]:
    def make() -> Any:
        torch = pytest.importorskip("torch", reason="torch is not installed")
        data = torch.utils.data.TensorDataset(torch.arange(ROWS))
        return feedline.DataLoader(data, BATCH, shuffle=True, seed=23, num_workers=0, **options)

    return make


LOADERS: dict[str, Callable[[], Any]] = {
    "shuffled": native(),
    "in_order": native(shuffle=False),
    "rank_1_of_2": native(rank=1, world_size=2),
    "repeat": native(repeat=2),
    "weights": native(weights=np.arange(1.0, ROWS + 1)),
    "sampler": native(shuffle=False, sampler=list(range(0, ROWS, 2))),
    "mixture": mixture,
    "drop_in": drop_in(),
}


def values(loader: Any, batch: Any) -> list[int]:
    return [int(value) for value in (batch[0] if isinstance(batch, list | tuple) else batch)]


def rest(loader: Any) -> list[int]:
    """Returns the values of the next epoch, or the rest of one."""
    return [value for batch in loader for value in values(loader, batch)]


def records() -> list[dict[str, Any]]:
    """Returns states at several positions, with the values that follow."""
    made = []
    for name, make in LOADERS.items():
        for epoch, step in ((0, 0), (0, 3), (1, 5)):
            loader = make()
            for _ in range(epoch):
                rest(loader)
            batches = iter(loader) if step else iter(())
            for _ in range(step):
                next(batches)
            state = json.loads(json.dumps(loader.state_dict()))
            after = [value for batch in batches for value in values(loader, batch)] if step else rest(loader)
            made.append({"loader": name, "state": state, "rest": after})
    return made


def stored(version: str) -> list[dict[str, Any]]:
    path = FOLDER / f"{version}.json"
    found: list[dict[str, Any]] = json.loads(path.read_text()) if path.exists() else []
    return found


@pytest.mark.parametrize(
    ("version", "number", "name"),
    [(version, number, one["loader"]) for version in RELEASED for number, one in enumerate(stored(version))],
)
def test_a_state_resumes_at_its_samples(version: str, number: int, name: str) -> None:
    record = stored(version)[number]
    loader = LOADERS[name]()
    loader.load_state_dict(record["state"])
    assert rest(loader) == record["rest"]


def test_every_released_version_has_states() -> None:
    changelog = Path(__file__).parents[2] / "CHANGELOG.md"
    released = [line.split()[1] for line in changelog.read_text().splitlines() if line.startswith("## 0")]
    assert set(released) <= set(RELEASED), "rename states/next.json to the version that was released"
    assert all(map(stored, RELEASED))


@pytest.mark.parametrize("name", ["shuffled", "drop_in"])
def test_a_state_from_the_future_is_a_clear_error(name: str) -> None:
    loader = LOADERS[name]()
    state = loader.state_dict()
    assert state["feedline"] == feedline.__version__
    future = {**copy.deepcopy(state), "version": 99, "feedline": "7.1.0", "unknown": {"a": 1}}
    with pytest.raises(feedline.ConfigError, match=r"version 99, which Feedline 7\.1\.0 wrote.*feedline>=7\.1\.0"):
        loader.load_state_dict(future)
    del future["feedline"]
    with pytest.raises(feedline.ConfigError, match="Install a newer Feedline"):
        loader.load_state_dict(future)
    loader.load_state_dict({**state, "feedline": "7.1.0", "added_later": 1})  # additions do not change the version
    assert sorted(rest(loader)) == list(range(ROWS))


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    text = ",\n".join(json.dumps(one) for one in records())
    (FOLDER / f"{sys.argv[1]}.json").write_text(f"[\n{text}\n]\n")
