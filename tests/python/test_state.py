# SPDX-License-Identifier: Apache-2.0
"""A run that is resumed at any point continues like the uninterrupted one: saved at every step, restored in another
loader.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Options, training

import feedline

EPOCHS = 2
OPTIONS: dict[str, Any] = {"batch_size": 4, "shuffle": True, "seed": 23, "output": "numpy"}


def run(loader: feedline.Loader, epochs: int) -> list[list[bytes]]:
    return [[b"".join(field.tobytes() for field in batch) for batch in loader] for _ in range(epochs)]


def through_json(state: dict[str, Any]) -> dict[str, Any]:
    text = json.dumps(state)
    assert len(text) < 1024
    again: dict[str, Any] = json.loads(text)
    return again


@pytest.fixture
def whole(train: feedline.Dataset) -> list[list[bytes]]:
    with train.loader(**OPTIONS) as loader:
        return run(loader, EPOCHS)


def states_of(loader: feedline.Loader) -> list[tuple[int, int, dict[str, Any]]]:
    """Returns (epoch, batches delivered, state) before the first batch, after every batch, and after every epoch."""
    states = [(0, 0, through_json(loader.state_dict()))]
    for epoch in range(EPOCHS):
        for step, _ in enumerate(loader, 1):
            states.append((epoch, step, through_json(loader.state_dict())))
        states.append((epoch + 1, 0, through_json(loader.state_dict())))
    return states


def check_resumes(make: Callable[[], feedline.Loader], whole: list[list[bytes]], states: list[Any]) -> None:
    """A state saved after an epoch's last batch continues with the next epoch, not with an empty one."""
    for epoch, step, state in states:
        wanted = [rest for rest in ([whole[epoch][step:], *whole[epoch + 1 :]] if epoch < EPOCHS else []) if rest]
        with make() as loader:
            loader.load_state_dict(state)
            rest = run(loader, len(wanted))
        assert rest == wanted, f"resumed in epoch {epoch} after {step} batches"


def test_resume_at_every_step(train: feedline.Dataset, whole: list[list[bytes]], config: Options) -> None:
    extra = config(train, 4)
    with train.loader(**OPTIONS, **extra) as loader:
        states = states_of(loader)
    assert len(states) == 1 + EPOCHS * (len(whole[0]) + 1)
    check_resumes(lambda: train.loader(**OPTIONS, **extra), whole, states)


def test_resume_with_other_threads_and_other_storage(
    train: feedline.Dataset, whole: list[list[bytes]], tars: list[Path]
) -> None:
    with train.loader(**OPTIONS, num_workers=1) as loader:
        states = states_of(loader)
    check_resumes(lambda: train.loader(**OPTIONS, num_workers=3), whole, states[::3])
    tar = training(feedline.open(tars))
    with tar.loader(**OPTIONS) as loader:
        states = states_of(loader)
    check_resumes(lambda: tar.loader(**OPTIONS), whole, states[::3])


def test_resume_of_a_resume(train: feedline.Dataset, whole: list[list[bytes]]) -> None:
    """A new process after every single batch."""
    state = None
    seen: list[bytes] = []
    for _ in range(EPOCHS * len(whole[0])):
        with train.loader(**OPTIONS) as loader:
            if state is not None:
                loader.load_state_dict(state)
            batch = next(iter(loader))
            seen.append(b"".join(field.tobytes() for field in batch))
            state = through_json(loader.state_dict())
    assert seen == [batch for epoch in whole for batch in epoch]


def test_restoring_into_a_running_loader(train: feedline.Dataset, whole: list[list[bytes]]) -> None:
    with train.loader(**OPTIONS) as loader:
        iterator = iter(loader)
        next(iterator)
        state = loader.state_dict()
        next(iterator)
        next(iterator)
        loader.load_state_dict(state)
        with pytest.raises(feedline.Error, match="load_state_dict"):
            next(iterator)
        assert run(loader, 1) == [whole[0][1:]]


def test_a_state_is_of_what_was_delivered_not_of_what_was_prepared(train: feedline.Dataset) -> None:
    with train.loader(**OPTIONS) as loader:
        iterator = iter(loader)
        next(iterator)
        assert loader.state_dict()["position"] == OPTIONS["batch_size"]


def test_resume_with_skipped_samples(tmp_path: Path) -> None:
    """Refills come from the end of the order: a resumed run does not deliver samples that are used up."""
    import made_data

    root = made_data.make_folder(tmp_path / "train")
    for name in ("apple/001.jpg", "birch/003.jpg", "crow/006.jpg"):
        (root / name).write_bytes(b"not an image")
    dataset = training(feedline.open(root))
    options = {**OPTIONS, "on_error": "skip"}
    with dataset.loader(**options) as loader:
        whole = run(loader, EPOCHS)
    with dataset.loader(**options) as loader:
        states = states_of(loader)
    check_resumes(lambda: dataset.loader(**options), whole, states)


def test_completion_order_resumes_without_loss(tmp_path: Path) -> None:
    """In whatever order batches are delivered, the samples before and after the interruption together make up the
    epoch.
    """
    import made_data

    root = made_data.make_folder(tmp_path / "train")
    big = made_data.encoded(made_data.photo(1, 2400, 2400), quality=95)
    for name in ("apple/000.jpg", "apple/004.jpg", "birch/002.jpg"):  # later batches overtake those of these three
        (root / name).write_bytes(big)
    dataset = feedline.open(root).resize((16, 16))
    options: dict[str, Any] = {"batch_size": 1, "in_order": False, "num_workers": 3, "output": "numpy"}
    overtaken = 0
    for stop in range(1, 15):
        seen: list[int] = []
        with dataset.loader(**options, memory_budget="60 KB") as loader:
            iterator = iter(loader)
            for _ in range(stop):
                next(iterator)
                seen += loader.last_samples
            state = through_json(loader.state_dict())
        overtaken += bool(state["delivered"])
        with dataset.loader(**options) as loader:
            loader.load_state_dict(state)
            for _ in loader:
                seen += loader.last_samples
        assert sorted(seen) == list(range(21))
    assert overtaken, "no batch overtook another: this test has shown nothing"


def test_states_of_something_else_are_refused(train: feedline.Dataset, folder: Path, tmp_path: Path) -> None:
    import made_data

    with train.loader(**OPTIONS) as loader:
        next(iter(loader))
        state = loader.state_dict()
    other = training(feedline.open(made_data.make_folder(tmp_path / "other", per_class=5)))
    refusals = {
        "dataset": other.loader(**OPTIONS),
        "seed": train.loader(**{**OPTIONS, "seed": 24}),
        "shuffle": train.loader(**{**OPTIONS, "shuffle": False}),
    }
    for reason, loader in refusals.items():
        with loader, pytest.raises(feedline.ConfigError, match=reason):
            loader.load_state_dict(state)


@pytest.mark.parametrize(
    "damage",
    [
        lambda s: {**s, "version": 4},
        lambda s: {**s, "version": 1},
        lambda s: {**s, "version": True},
        lambda s: {k: v for k, v in s.items() if k != "epoch"},
        lambda s: {**s, "fingerprint": 7},
        lambda s: {**s, "fingerprint": "zz"},
        lambda s: {**s, "position": -1},
        lambda s: {**s, "position": 2.0},
        lambda s: {**s, "position": 22},
        lambda s: {**s, "left_out": 22},
        lambda s: {**s, "plan": {**s["plan"], "shuffle": "yes"}},
        lambda s: {**s, "dataset": None},
        lambda s: {**s, "delivered": [None]},
        lambda s: {**s, "delivered": [[9, 8]]},
        lambda s: {**s, "delivered": [[20, 30]]},
        lambda s: {},
        lambda s: None,
    ],
)
def test_damaged_states_are_refused(train: feedline.Dataset, damage: Callable[[Any], Any]) -> None:
    with train.loader(**OPTIONS) as loader, pytest.raises(feedline.ConfigError, match="load_state_dict"):
        loader.load_state_dict(damage(loader.state_dict()))


def test_a_changed_dataset_is_refused_by_what_has_changed(tmp_path: Path) -> None:
    import made_data

    root = made_data.make_folder(tmp_path / "train")

    def refusal(dataset: feedline.Dataset) -> str:
        with dataset.loader(**OPTIONS) as loader, pytest.raises(feedline.ConfigError) as caught:
            loader.load_state_dict(state)
        return str(caught.value)

    with training(feedline.open(root)).loader(**OPTIONS) as loader:
        next(iter(loader))
        state = through_json(loader.state_dict())
    image = root / "apple" / "001.jpg"
    image.rename(root / "apple" / "0015.jpg")
    assert "the numbers of samples and fields are the same" in refusal(training(feedline.open(root)))
    (root / "apple" / "0015.jpg").unlink()
    assert "samples: 21 then, 20 now" in refusal(training(feedline.open(root)))
    tars = made_data.make_tars(root, tmp_path / "tars")
    text = refusal(training(feedline.open(tars)))
    assert "the format was folder then, tar now" in text
    assert "shards: 0 then, " in text
    x = np.zeros((21, 3), np.float32)
    assert "fields: image, label then, x now" in refusal(feedline.arrays(x=x))


def version_1(state: dict[str, Any], batch_size: int, world_size: int, ahead: Sequence[int] = ()) -> dict[str, Any]:
    """A state as Feedline wrote it before version 2 of states."""
    return {
        "version": 1,
        "fingerprint": state["fingerprint"],
        "seed": state["seed"],
        "shuffle": state["plan"]["shuffle"],
        "epoch": state["epoch"],
        "batch": -(-state["position"] // (batch_size * world_size)),
        "batch_size": batch_size,
        "world_size": world_size,
        "refilled": state["left_out"],
        "ahead": list(ahead),
    }


def test_states_of_version_1_load(train: feedline.Dataset, whole: list[list[bytes]]) -> None:
    with train.loader(**OPTIONS) as loader:
        states = [(epoch, step, version_1(state, 4, 1)) for epoch, step, state in states_of(loader)]
    check_resumes(lambda: train.loader(**OPTIONS), whole, states)
    _, _, state = states[2]
    with train.loader(**OPTIONS) as loader:
        loader.load_state_dict({**state, "ahead": [3]})
        assert loader.state_dict()["delivered"] == [[12, 16]]
        with pytest.raises(feedline.ConfigError, match=r"version 1 .* out of order"):
            loader.load_state_dict({**state, "ahead": [3], "world_size": 2})


@pytest.mark.parametrize("batch_size", [1, 3, 4, 5, 21, 50])
def test_another_batch_size_continues_at_the_same_sample(train: feedline.Dataset, batch_size: int) -> None:
    """With any later batch sizes, the samples are delivered in their original order."""
    with train.loader(**OPTIONS, epochs=1) as loader:
        order: list[int] = []
        states = []
        for _ in loader:
            order += loader.last_samples
            states.append((len(order), through_json(loader.state_dict())))
    for delivered, state in states[:-1]:
        with train.loader(**{**OPTIONS, "batch_size": batch_size}, epochs=1) as loader:
            loader.load_state_dict(state)
            rest: list[int] = []
            again = None
            for _ in loader:
                rest += loader.last_samples
                again = again or (delivered + len(rest), through_json(loader.state_dict()))
        assert rest == order[delivered:]
        assert again is not None
        if again[0] < len(order):
            with train.loader(**OPTIONS, epochs=1) as loader:  # and back
                loader.load_state_dict(again[1])
                assert [sample for _ in loader for sample in loader.last_samples] == order[again[0] :]


def test_endless_epochs(train: feedline.Dataset, whole: list[list[bytes]]) -> None:
    with train.loader(**OPTIONS, epochs=math.inf) as loader:
        with pytest.raises(TypeError, match="no length"):
            len(loader)
        assert "endless" in repr(loader)
        iterator = iter(loader)
        seen = [b"".join(field.tobytes() for field in next(iterator)) for _ in range(2 * len(whole[0]))]
        assert seen == whole[0] + whole[1]
        for _ in range(5 * len(whole[0])):
            next(iterator)
        assert loader.epoch == 6


def test_set_epoch_while_the_next_is_prepared(train: feedline.Dataset, whole: list[list[bytes]]) -> None:
    """Batches that were prefetched for another epoch are dropped, and never delivered."""
    with train.loader(**OPTIONS) as loader:
        assert run(loader, 1) == [whole[0]]
        loader.set_epoch(0)
        assert run(loader, 1) == [whole[0]]
        iterator = iter(loader)
        next(iterator)
        loader.set_epoch(0)
        assert run(loader, 2) == whole


def test_another_world_size_with_the_same_global_batch(train: feedline.Dataset) -> None:
    """Two ranks with batches of 2 continue after one rank with batches of 4: together they deliver exactly the rest."""
    with train.loader(**OPTIONS) as loader:
        iterator = iter(loader)
        next(iterator)
        next(iterator)
        state = loader.state_dict()
        rest: list[int] = []
        for _ in iterator:
            rest += loader.last_samples
    seen: list[int] = []
    for rank in range(2):
        options = {**OPTIONS, "batch_size": 2, "rank": rank, "world_size": 2, "uneven": "exact"}
        with train.loader(**options) as loader:
            loader.load_state_dict(state)
            for _ in loader:
                seen += loader.last_samples
    assert sorted(seen) == sorted(rest)


def test_set_epoch_and_chained_epochs(train: feedline.Dataset, whole: list[list[bytes]]) -> None:
    with train.loader(**OPTIONS, epochs=2) as loader:
        assert len(loader) == 2 * len(whole[0])
        assert run(loader, 1) == [whole[0] + whole[1]]
    with train.loader(**OPTIONS) as loader:
        assert loader.epoch == 0
        loader.set_epoch(1)
        assert loader.epoch == 1
        assert run(loader, 1) == [whole[1]]
        loader.set_epoch(0)
        assert run(loader, 2) == whole
        for wrong in (-1, 1.5, "2", True):
            with pytest.raises(feedline.ConfigError, match="set_epoch"):
                loader.set_epoch(wrong)  # type: ignore[arg-type]


def test_a_second_iter_ends_the_first(train: feedline.Dataset, whole: list[list[bytes]]) -> None:
    with train.loader(**OPTIONS) as loader:
        first = iter(loader)
        next(first)
        second = iter(loader)
        with pytest.raises(feedline.Error, match="later iter"):
            next(first)
        assert [b"".join(f.tobytes() for f in batch) for batch in second] == whole[1]
        assert list(second) == []


def test_a_restored_loader_reports_which_epoch_comes(train: feedline.Dataset, whole: list[list[bytes]]) -> None:
    """`while loader.epoch < N` runs N epochs, wherever the run was interrupted."""
    for ranks in (1, 2):
        options = {**OPTIONS, "batch_size": 4 // ranks, "world_size": ranks, "uneven": "exact"}
        with train.loader(**options, rank=0) as loader:
            states = states_of(loader)
        for epoch, step, state in states:
            with train.loader(**options, rank=ranks - 1) as loader:
                loader.load_state_dict(state)
                assert loader.epoch == (epoch + 1 if step == len(whole[0]) else epoch)
                run(loader, EPOCHS + 1 - loader.epoch)
                assert loader.epoch == EPOCHS + 1
