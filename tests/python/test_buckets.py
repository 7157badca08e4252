# SPDX-License-Identifier: Apache-2.0
"""Batches of samples of like length: buckets, token budgets, ranks, resume."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import feedline


def data_of(lengths: list[int]) -> feedline.Dataset:
    """Sample i is as many i as its length says."""
    return feedline.arrays(
        text=feedline.ragged(numpy.repeat(numpy.arange(len(lengths)), lengths), lengths, pad_value=-1),
        label=numpy.arange(len(lengths)),
    )


def drawn_lengths(count: int, longest: int = 128, seed: int = 0) -> list[int]:
    drawn = 1 + numpy.random.default_rng(seed).exponential(longest / 5, count).astype(int)
    return numpy.minimum(drawn, longest).tolist()


def all_ranks(lengths: list[int], world: int, **options: Any) -> list[list[Any]]:
    """Per rank, its batches."""
    data = data_of(lengths)
    return [list(data.loader(rank=rank, world_size=world, output="numpy", **options)) for rank in range(world)]


def padding(batches: list[Any]) -> float:
    """Share of the numbers that are no sample's."""
    return 1 - sum(batch.text_length.sum() for batch in batches) / sum(batch.text.size for batch in batches)


@settings(deadline=None, max_examples=60)
@given(
    lengths=st.lists(st.integers(1, 64), min_size=8, max_size=120),
    world=st.sampled_from([1, 2, 3, 4, 8]),
    inner=st.sets(st.integers(1, 63), max_size=3),
    batch_size=st.integers(1, 6),
    max_tokens=st.none() | st.integers(64, 400),
    shuffle=st.booleans(),
    uneven=st.sampled_from(["pad", "drop", "exact"]),
    drop_last=st.booleans(),
)
def test_ranks_have_the_same_shapes_and_together_every_sample_once(
    lengths, world, inner, batch_size, max_tokens, shuffle, uneven, drop_last
):
    bounds = [*sorted(inner), 64]
    ranks = all_ranks(
        lengths,
        world,
        batch_size=batch_size,
        buckets=bounds,
        max_tokens=max_tokens,
        shuffle=shuffle,
        seed=5,
        uneven=uneven,
        drop_last=drop_last,
        num_workers=2,
    )
    seen = Counter(int(label) for batches in ranks for batch in batches for label in batch.label)
    for step in range(max(len(batches) for batches in ranks)):
        there = [batches[step] for batches in ranks if step < len(batches)]
        shapes = {batch.text.shape for batch in there}
        last = step + 1 == max(len(batches) for batches in ranks)
        assert (len(shapes) == 1 and len(there) == world) or (last and uneven == "exact")
        for rows, bound in shapes:
            assert bound in bounds
            whole = min(batch_size, max_tokens // bound) if max_tokens else batch_size
            assert rows == whole or (last and not drop_last and rows < whole) or (last and bound == 64)
        for batch in there:
            for row, length, label in zip(batch.text, batch.text_length, batch.label, strict=True):
                assert length == lengths[label]
                assert (row[:length] == label).all()
                assert (row[length:] == -1).all()
    rest = world * (min(batch_size, max_tokens // 64) if max_tokens else batch_size)
    left_out = set(range(len(lengths))) - set(seen)
    twice = sum(count - 1 for count in seen.values())
    assert len(left_out) < (rest if drop_last else world if uneven == "drop" else 1)
    assert twice < (world if uneven == "pad" and not drop_last else 1)


def test_buckets_pad_less_and_a_token_budget_keeps_batches_even():
    data, options = data_of(drawn_lengths(2000)), {"shuffle": True, "seed": 1, "output": "numpy"}
    plain = list(data.loader(16, **options))
    bucketed = list(data.loader(16, buckets=6, **options))
    budgeted = list(data.loader(buckets=6, max_tokens=2048, **options))
    assert padding(bucketed) < padding(plain) / 2
    assert padding(budgeted) < padding(plain) / 2
    assert len({batch.text.shape[1] for batch in bucketed}) <= 6
    sizes = sorted(batch.text.size for batch in budgeted[:-1])
    assert sizes[0] > 0.9 * 2048
    assert sizes[-1] <= 2048


def test_batch_size_is_a_cap_of_a_token_budget():
    loader = data_of(drawn_lengths(500)).loader(20, buckets=[16, 128], max_tokens=512, shuffle=True, output="numpy")
    assert {batch.text.shape for batch in list(loader)[:-1]} == {(20, 16), (4, 128)}


def test_every_epoch_mixes_other_batches_of_all_buckets():
    loader = data_of(drawn_lengths(400)).loader(8, buckets=[8, 24, 128], shuffle=True, output="numpy")
    epochs = [[(batch.text.shape[1], batch.label.tolist()) for batch in loader] for _ in range(3)]
    bounds = [[bound for bound, _ in epoch] for epoch in epochs]
    assert bounds[0] != bounds[1] != bounds[2]
    assert all(sorted(epoch) != epoch for epoch in bounds)
    assert Counter(bounds[0]) == Counter(bounds[1])  # the same number of steps, always
    # which short samples fill up the longest bucket is not always the same
    lengths = drawn_lengths(400)
    up = [
        {label for bound, labels in epoch for label in labels if bound == 24 and lengths[label] <= 8}
        for epoch in epochs
    ]
    assert up[0] != up[1] or up[1] != up[2]


def test_unshuffled_buckets_come_shortest_first():
    lengths = drawn_lengths(100)
    batches = list(data_of(lengths).loader(8, buckets=[8, 24, 128], output="numpy"))
    bounds = [batch.text.shape[1] for batch in batches]
    assert bounds == sorted(bounds)
    assert batches[0].label.tolist() == [i for i, length in enumerate(lengths) if length <= 8][:8]


def test_threads_change_nothing():
    def run(threads: int) -> list[bytes]:
        data = data_of(drawn_lengths(700))
        loader = data.loader(buckets=5, max_tokens=600, shuffle=True, seed=3, num_workers=threads, output="numpy")
        return [batch.text.tobytes() + batch.label.tobytes() for _ in range(2) for batch in loader]

    assert run(1) == run(2) == run(4)


@pytest.mark.parametrize("world", [1, 2])
def test_resuming_at_every_batch_gives_the_rest(world):
    lengths = drawn_lengths(90)
    options = {"buckets": [8, 24, 128], "max_tokens": 300, "shuffle": True, "seed": 4, "output": "numpy"}

    def loader(rank: int) -> feedline.Loader:
        return data_of(lengths).loader(rank=rank, world_size=world, num_workers=1, **options)

    for rank in range(world):
        running = loader(rank)
        for _ in running:
            pass
        epoch = iter(running)  # the second one
        whole = [batch.text.tobytes() for batch in epoch]
        again = loader(rank)
        again.set_epoch(1)
        for done, _batch in enumerate(again, start=1):
            resumed = loader(rank)
            resumed.load_state_dict(json.loads(json.dumps(again.state_dict())))
            if done < len(whole):
                assert [batch.text.tobytes() for batch in resumed] == whole[done:]


def test_resuming_out_of_order_delivers_the_rest_once():
    lengths = drawn_lengths(200)
    options = {"buckets": 4, "max_tokens": 300, "shuffle": True, "output": "numpy", "in_order": False}
    loader = data_of(lengths).loader(num_workers=3, **options)
    seen = []
    for batch, _ in zip(loader, range(9), strict=False):
        seen += batch.label.tolist()
    resumed = data_of(lengths).loader(num_workers=2, **options)
    resumed.load_state_dict(json.loads(json.dumps(loader.state_dict())))
    # the tenth batch was taken from the loader before zip() ended
    rest = [label for batch in resumed for label in batch.label.tolist()]
    assert len(set(seen) & set(rest)) == 0
    assert len(set(seen) | set(rest)) == len(seen) + len(rest)


def test_a_state_resumes_with_other_ranks_where_rows_over_all_ranks_stay_the_same():
    lengths = drawn_lengths(300)

    def loader(rank: int, world: int) -> feedline.Loader:
        options = {"buckets": [8, 24, 128], "shuffle": True, "seed": 9, "output": "numpy", "uneven": "exact"}
        return data_of(lengths).loader(12 // world, rank=rank, world_size=world, **options)

    whole = [sorted(batch.label.tolist()) for batch in loader(0, 1)]
    first = loader(0, 2)
    for _batch, _ in zip(first, range(5), strict=False):
        state = first.state_dict()
    rest = []
    for rank in range(3):
        other = loader(rank, 3)
        other.load_state_dict(state)
        rest.append([batch.label.tolist() for batch in other])
    steps = max(len(batches) for batches in rest)
    joined = [
        sorted(label for batches in rest if step < len(batches) for label in batches[step]) for step in range(steps)
    ]
    assert joined == whole[5:]


@pytest.mark.parametrize(
    "options",
    [
        {"batch_size": 8, "buckets": [8, 24, 128], "world_size": 2, "rank": 0},
        {"batch_size": 8, "buckets": [8, 32, 128]},
        {"batch_size": 8},
        {"buckets": [8, 24, 128], "max_tokens": 1024},
    ],
)
def test_a_state_of_other_buckets_is_refused(options):
    data = data_of(drawn_lengths(300))
    state = data.loader(8, buckets=[8, 24, 128], output="numpy").state_dict()
    with pytest.raises(feedline.ConfigError, match=r"the state was saved with buckets of 8 up to 8, 8 up to 24"):
        data.loader(output="numpy", **options).load_state_dict(state)
    with pytest.raises(
        feedline.ConfigError, match=r"state was saved (without|with) buckets.*the loader was created with buckets"
    ):
        data.loader(8, buckets=[8, 24, 128], output="numpy").load_state_dict(
            data.loader(output="numpy", **options).state_dict()
        )


def test_a_state_inside_a_batch_is_damaged():
    loader = data_of(drawn_lengths(300)).loader(8, buckets=[8, 24, 128], output="numpy")
    state = loader.state_dict()
    state["position"] = 3
    with pytest.raises(feedline.ConfigError, match="the state is damaged"):
        loader.load_state_dict(state)
    state["position"] = 8
    loader.load_state_dict(state)


def test_documents_come_in_buckets(tmp_path):
    tokens = numpy.random.default_rng(0).integers(0, 30, 5000).astype("uint8")
    tokens.tofile(tmp_path / "t.bin")
    data = feedline.tokens(tmp_path / "t.bin", window=64, dtype="uint8", separator=0, documents="apart")
    batches = list(data.loader(buckets=4, max_tokens=512, shuffle=True, output="numpy"))
    assert sum(int(batch.length.sum()) for batch in batches) == sum(len(sample.x) for sample in data)
    for batch in batches:
        assert batch.x.shape == batch.y.shape
        assert batch.x.shape[1] % 8 == 0
        assert batch.x.size <= 512


def test_a_sample_is_as_long_as_its_longest_field():
    data = feedline.arrays(
        a=feedline.ragged([[1], [1, 2], [1], [1, 2]]), b=feedline.ragged([[1] * 9, [1], [1], [1] * 3])
    )
    batches = list(data.loader(1, buckets=[4, 12], output="numpy"))
    assert [(batch.a.shape, batch.b.shape) for batch in batches] == [((1, 4), (1, 4))] * 3 + [((1, 12), (1, 12))]


def test_the_plan_names_its_buckets():
    text = data_of([1, 2, 30]).loader(2, buckets=[8, 32], output="numpy").explain()
    assert "bucket     up to 8: 2 samples, batches of 2" in text
    assert "bucket     up to 32: 1 samples, batches of 2" in text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "pass batch_size, or buckets and max_tokens"),
        ({"max_tokens": 100}, "max_tokens needs buckets"),
        ({"batch_size": 2, "buckets": 0}, "buckets must be from 1"),
        ({"batch_size": 2, "buckets": []}, "buckets is empty"),
        ({"batch_size": 2, "buckets": [8, 8, 64]}, "bucket bounds must be above 0 and ascending; 8 follows 8"),
        ({"batch_size": 2, "buckets": [64, 8]}, "8 follows 64"),
        ({"batch_size": 2, "buckets": [8, 29]}, "longest sample has a length of 30, but the last bucket ends at 29"),
        ({"batch_size": 2, "buckets": [0, 64]}, "a bucket bound must be from 1"),
        ({"batch_size": 2, "buckets": 1.5}, "buckets must be an integer"),
        ({"buckets": [8, 64], "max_tokens": 63}, "max_tokens=63 is too small for any sample of the bucket up to 64"),
        ({"batch_size": 2**62, "buckets": 2}, r"more than 2\^48 samples"),
        ({"batch_size": 2, "buckets": 2, "shuffle": "shards"}, 'buckets do not support shuffle="shards"'),
        ({"batch_size": 100, "buckets": [8, 64], "memory_budget": 1000}, "one batch needs"),
        ({"batch_size": 2, "buckets": 2, "on_error": "skip"}, 'on_error="skip" does not support'),
    ],
)
def test_wrong_buckets_are_refused_by_name(options, words):
    with pytest.raises(feedline.ConfigError, match=words):
        data_of([1, 2, 30]).loader(output="numpy", **options)


def test_buckets_are_for_samples_of_different_lengths_of_one_dataset():
    with pytest.raises(
        feedline.ConfigError, match=r'buckets need samples of different lengths; all samples of "arrays"'
    ):
        feedline.arrays(x=numpy.zeros((5, 2))).loader(2, buckets=2, output="numpy")
    with pytest.raises(feedline.ConfigError, match="buckets do not support mixtures"):
        feedline.mix([data_of([1, 2]), data_of([3])]).loader(2, buckets=2, output="numpy")
