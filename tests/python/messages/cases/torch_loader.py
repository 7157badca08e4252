# SPDX-License-Identifier: Apache-2.0
"""feedline.DataLoader, its states, samplers and worker pools."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

import feedline
from messages.expressions import expressions, functions
from messages.samples import Samples

NEEDS = ("torch",)


def _into(saved: Any, other: Any, batches: int = 1) -> None:
    for _ in itertools.islice(saved, batches):
        pass
    other.load_state_dict(saved.state_dict())
    next(iter(other))


def _stream() -> Any:
    from torch.utils.data import IterableDataset

    class Stream(IterableDataset):
        def __iter__(self) -> Any:
            return iter(range(8))

    return Stream()


class Fails:
    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> int:
        if index > 0:
            raise ValueError(f"row {index} is bad")
        return index


def _a_state_of_a_stream_in_a_list(s: Samples) -> None:
    _into(feedline.DataLoader(_stream()), feedline.DataLoader([1, 2, 3]))


def _a_state_with_another_number_of_samplers(s: Samples) -> None:
    from torch.utils.data import BatchSampler, SequentialSampler

    batches = BatchSampler(SequentialSampler([1, 2, 3]), 1, False)
    _into(feedline.DataLoader([1, 2, 3]), feedline.DataLoader([1, 2, 3], batch_sampler=batches))


def _a_state_of_a_sampler_that_changed(s: Samples) -> None:
    orders = iter(([0, 1, 2], [2, 1, 0]))

    class Changing:
        def __iter__(self) -> Any:
            return iter(next(orders))

        def __len__(self) -> int:
            return 3

    sampler = Changing()
    _into(feedline.DataLoader([1, 2, 3], sampler=sampler), feedline.DataLoader([1, 2, 3], sampler=sampler))


def _a_state_of_a_sampler_with_an_epoch(s: Samples) -> None:
    sampler = feedline.DistributedSampler([1, 2, 3, 4], 2, 0)
    _into(feedline.DataLoader([1, 2, 3, 4], sampler=sampler), feedline.DataLoader([1, 2, 3, 4], shuffle=True))


def _a_state_of_a_stateful_dataset(s: Samples) -> None:
    class Stateful(list):  # type: ignore[type-arg]
        def state_dict(self) -> dict[str, int]:
            return {"a": 1}

        def load_state_dict(self, state: Any) -> None:
            pass

    _into(feedline.DataLoader(Stateful([1, 2, 3])), feedline.DataLoader([1, 2, 3]))


def _a_state_of_other_workers_of_a_stream(s: Samples) -> None:
    loader = feedline.DataLoader(_stream(), num_workers=1, worker_method="thread")
    _into(loader, feedline.DataLoader(_stream(), num_workers=2, worker_method="thread"))


def _a_state_of_another_class(s: Samples) -> None:
    feedline.DataLoader([1, 2]).load_state_dict(s.numbers.loader(2, output="numpy").state_dict())


def _more_bad_samples_than_the_budget_of_a_dataset(s: Samples) -> None:
    for _ in feedline.DataLoader(Fails(), on_error="skip", error_budget=1):
        pass


def _a_dataset_without_good_samples(s: Samples) -> None:
    class Bad(Fails):
        def __getitem__(self, index: int) -> int:
            raise ValueError(f"row {index} is bad")

    for _ in feedline.DataLoader(Bad(), on_error="replace"):
        pass


def _a_bad_sample(s: Samples) -> None:
    for _ in feedline.DataLoader(Fails()):
        pass


def _lowering_that_is_required(s: Samples) -> None:
    feedline.DataLoader(Fails(), lower="require")


def _a_sampler_of_another_rank(s: Samples) -> None:
    sampler = feedline.DistributedSampler([0] * 6, 2, 1)
    s.numbers.loader(2, output="numpy", sampler=sampler, rank=0, world_size=2).__iter__()


def _a_random_sampler_without_generator_on_two_ranks(s: Samples) -> None:
    from torch.utils.data import RandomSampler

    s.numbers.loader(2, output="numpy", sampler=RandomSampler(s.numbers), rank=0, world_size=2).__iter__()


def _a_profile_of_negative_steps(s: Samples) -> None:
    feedline.profile("here/profile", wait=-1)


def _a_profile_of_no_steps(s: Samples) -> None:
    feedline.profile("here/profile", active=0)


def _a_mesh_that_is_none(s: Samples) -> None:
    feedline.DistributedSampler([1, 2], mesh="mesh")


def _a_cell_without_a_time(s: Samples) -> None:
    from feedline.notebook.magic import _seconds

    _seconds("soon")


def _a_meter_of_another_loader(s: Samples) -> None:
    from feedline.integrations.meter import Meter

    Meter([1, 2])


def _a_list_of_lambdas(s: Samples) -> None:
    feedline.shared([lambda: 1])


def _a_pickled_dataset_with_a_lambda(s: Samples) -> None:
    import pickle

    pickle.dumps(s.small.map(lambda image: np.asarray(image), "image"))


def _map_processes_with_a_lambda(s: Samples) -> None:
    s.small.map(lambda image: image, "image", processes=2)


def _a_skip_with_a_sampler_that_has_a_state(s: Samples) -> None:
    class Stateful:
        def __iter__(self) -> Any:
            return iter([0, 1])

        def __len__(self) -> int:
            return 2

        def state_dict(self) -> dict[str, int]:
            return {}

        def load_state_dict(self, state: Any) -> None:
            pass

    feedline.DataLoader([1, 2], sampler=Stateful()).skip(1)


def _a_state_of_unordered_batches_for_skipping(s: Samples) -> None:
    saved = feedline.DataLoader(range(8), num_workers=2, in_order=False, worker_method="thread")
    state = saved.state_dict()
    other = feedline.DataLoader(range(8), on_error="skip")
    other.load_state_dict({**state, "waiting": [1], "delivered": 1, "in_order": False})
    next(iter(other))


CASES = {
    **expressions("""
        feedline.DataLoader([1, 2], num_workers="many")
        feedline.DataLoader([1, 2], num_workers=-1)
        feedline.DataLoader([1, 2], num_workers=1.5)
        feedline.DataLoader([1, 2], num_workers=10**6)
        feedline.DataLoader([1, 2], seed="x")
        feedline.DataLoader([1, 2], seed=True)
        feedline.DataLoader([1, 2], device="tpu:x")
        feedline.DataLoader([1, 2], device=-1)
        feedline.DataLoader([1, 2], on_error="ignore")
        feedline.DataLoader([1, 2], error_budget=-1)
        feedline.DataLoader([1, 2], memory_budget="much")
        feedline.DataLoader([1, 2], lower="always")
        feedline.DataLoader([1, 2], settings=3)
        feedline.DataLoader([1, 2], settings="here/none.json")
        feedline.DataLoader([1, 2], settings=write("a.json", "text"))
        feedline.DataLoader([1, 2], worker_method="fiber")
        feedline.DataLoader([1, 2], pool=3)
        feedline.DataLoader([1, 2], pool=feedline.WorkerPool())
        feedline.DataLoader([1, 2], pool=feedline.WorkerPool(), num_workers=1, worker_method="thread")
        feedline.DataLoader([1, 2], pool=feedline.WorkerPool(), num_workers=1, persistent_workers=False)
        feedline.DataLoader([1, 2], central_batching="yes")
        feedline.DataLoader([1, 2], uneven="drop")
        feedline.DataLoader([1, 2], stall_timeout=-1)
        feedline.DataLoader([1, 2], stall_timeout="long")
        feedline.DataLoader([1, 2]).set_epoch(-1)
        feedline.DataLoader([1, 2]).set_epoch(1.5)
        feedline.DataLoader([1, 2]).set_epoch("1")
        feedline.DataLoader([1, 2]).set_epoch(True)
        feedline.DataLoader([1, 2]).set_epoch(2**63)
        feedline.DataLoader([1, 2]).load_state_dict(3)
        feedline.DataLoader([1, 2]).load_state_dict(None)
        feedline.DataLoader([1, 2]).load_state_dict({"a": 1})
        feedline.DataLoader([1, 2]).skip(-1)
        feedline.DataLoader([1, 2]).skip("two")
        feedline.DataLoader([1, 2]).skip(1.5)
        feedline.DataLoader([1, 2]).broadcast("transform.size", 3)
        feedline.BucketBatchSampler([1, 2])
        feedline.BucketBatchSampler([1, 2], 0)
        feedline.BucketBatchSampler([1, 2], max_tokens=-1)
        feedline.BucketBatchSampler([1, -2], 2)
        feedline.BucketBatchSampler(["a"], 2)
        feedline.BucketBatchSampler([1, 2], 2, shuffle=1)
        feedline.BucketBatchSampler([1, 2], 2, uneven="drop")
        feedline.BucketBatchSampler([1, 2], 2, buckets=0)
        feedline.BucketBatchSampler([1, 2], 2, buckets="many")
        feedline.BucketBatchSampler([1, 2], 2, buckets=[2, 1])
        feedline.BucketBatchSampler([1, 9], 2, buckets=[2, 4])
        feedline.BucketBatchSampler([1, 9], max_tokens=4, buckets=[4, 9])
        feedline.DistributedSampler([1, 2], "two", 0)
        feedline.DistributedSampler(3, 2, 0)
        feedline.DistributedSampler([1, 2], 2, 0, drop_last="no")
        feedline.DistributedSampler([1, 2], 2, 0, dp="dp")
    """),
    **functions(globals()),
}
