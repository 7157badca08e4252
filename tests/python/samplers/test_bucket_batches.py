# SPDX-License-Identifier: Apache-2.0
"""Batches of samples of similar length: the guarantees for every rank and step, with random lengths."""

from __future__ import annotations

import collections

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from feedline import BucketBatchSampler, ConfigError, DataLoader


def by_rank(lengths, ranks, epoch=0, **more):
    found = []
    for rank in range(ranks):
        sampler = BucketBatchSampler(lengths, num_replicas=ranks, rank=rank, **more)
        sampler.set_epoch(epoch)
        found.append((sampler, list(sampler)))
        assert len(found[-1][1]) == len(sampler)
    return found


@settings(max_examples=80, deadline=None)
@given(
    lengths=st.lists(st.integers(0, 60), min_size=1, max_size=80),
    ranks=st.integers(1, 4),
    batch_size=st.none() | st.integers(1, 9),
    max_tokens=st.none() | st.integers(60, 300),
    buckets=st.integers(1, 6),
    shuffle=st.booleans(),
    uneven=st.sampled_from(["pad", "exact"]),
    drop_last=st.booleans(),
)
def test_ranks_have_the_same_shapes_and_every_sample_comes(lengths, ranks, batch_size, max_tokens, **more):
    if batch_size is None and max_tokens is None:
        batch_size = 4
    found = by_rank(lengths, ranks, batch_size=batch_size, max_tokens=max_tokens, **more)
    bounds = found[0][0].bounds
    times = collections.Counter(index for _, batches in found for batch in batches for index in batch)
    assert set(times) <= set(range(len(lengths)))
    largest = max(found[0][0].rows) * ranks
    if not more["drop_last"]:
        assert set(times) == set(range(len(lengths)))
    assert len(lengths) - len(times) < (largest if more["drop_last"] else 1)
    repeats = sum(times.values()) - len(times)
    assert repeats == 0 if more["uneven"] == "exact" or more["drop_last"] else repeats < ranks
    for _, batches in found:
        for batch in batches:
            bound = next(bound for bound in bounds if bound >= max(lengths[index] for index in batch))
            assert len(batch) <= (batch_size or len(batch))
            assert max_tokens is None or len(batch) * bound <= max_tokens or len(batch) == 1
    if more["uneven"] == "pad":
        assert len({len(batches) for _, batches in found}) == 1
        for step in zip(*(batches for _, batches in found), strict=True):
            assert len({len(batch) for batch in step}) == 1


def test_a_batch_is_of_one_bucket_or_of_what_the_shorter_one_had_left():
    lengths = np.arange(400) % 100
    ((sampler, batches),) = by_rank(lengths, 1, batch_size=8, buckets=[10, 50, 99])
    mixed = 0
    for batch in batches:
        buckets = {int(np.searchsorted(sampler.bounds, lengths[index])) for index in batch}
        mixed += len(buckets) > 1
    assert mixed <= len(sampler.bounds) and len(batches) == 50


def test_orders_differ_by_epoch_and_seed_and_are_sorted_without_shuffling():
    lengths = np.random.default_rng(1).integers(1, 500, 300)

    def of(**more):
        return by_rank(lengths, 1, batch_size=10, **more)[0][1]

    assert of() == of() != of(epoch=1) != of(seed=1)
    longest = [max(lengths[index] for index in batch) for batch in of(shuffle=False, buckets=[50, 100, 200, 500])]
    bounds = [next(b for b in (50, 100, 200, 500) if b >= length) for length in longest]
    assert bounds == sorted(bounds)


def test_a_loader_counts_its_epochs_and_resumes_in_the_middle():
    lengths = np.random.default_rng(1).integers(1, 90, 50)

    def make():
        return DataLoader(
            range(50), batch_sampler=BucketBatchSampler(lengths, max_tokens=200), collate_fn=list, num_workers=0
        )

    loader = make()
    first = list(loader)
    iterator = iter(loader)
    begun = [next(iterator), next(iterator)]
    state = loader.state_dict()
    assert "torch" not in state["randomness"]
    rest = list(iterator)
    assert begun + rest != first and sorted(sum(map(len, part)) for part in (first, begun + rest)) == [50, 50]
    resumed = make()
    resumed.load_state_dict(state)
    assert list(resumed) == rest


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({}, "batch_size, max_tokens"),
        ({"batch_size": 0}, "batch_size"),
        ({"max_tokens": 5}, "too small for a sample"),
        ({"batch_size": 2, "buckets": [5]}, "sample 2 has length 9"),
        ({"batch_size": 2, "buckets": [9, 5]}, "ascending"),
        ({"batch_size": 2, "buckets": 0}, "buckets"),
        ({"batch_size": 2, "uneven": "some"}, "uneven"),
    ],
)
def test_what_cannot_be_is_refused(more, words):
    with pytest.raises(ConfigError, match=words):
        BucketBatchSampler([1, 5, 9], **more)


def test_lengths_must_be_integers():
    with pytest.raises(ConfigError, match="lengths"):
        BucketBatchSampler([1.5, 2.0], batch_size=2)
