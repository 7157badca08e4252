# SPDX-License-Identifier: Apache-2.0
"""State dicts of loader() and tuned settings."""

import json
from typing import Any

import made_parquet
import numpy as np

import feedline
from messages.expressions import expressions, functions
from messages.samples import Samples


def _restored(loader: feedline.Loader, **changes: Any) -> None:
    loader.load_state_dict({**loader.state_dict(), **changes})


def _into(saved: feedline.Loader, other: feedline.Loader) -> None:
    other.load_state_dict(saved.state_dict())


def _loader(s: Samples, **options: Any) -> feedline.Loader:
    return s.numbers.loader(2, output="numpy", **options)


def _an_unknown_version(s: Samples) -> None:
    _restored(_loader(s), version=99)


def _a_seed_that_is_text(s: Samples) -> None:
    _restored(_loader(s), seed="x")


def _a_negative_epoch(s: Samples) -> None:
    _restored(_loader(s), epoch=-1)


def _a_position_outside_the_epoch(s: Samples) -> None:
    _restored(_loader(s), position=10**6)


def _another_seed(s: Samples) -> None:
    _into(_loader(s, shuffle=True, seed=1), _loader(s, shuffle=True, seed=2))


def _shuffled_and_not(s: Samples) -> None:
    _into(_loader(s, shuffle=True), _loader(s))


def _another_repeat(s: Samples) -> None:
    _into(_loader(s, repeat=2), _loader(s))


def _another_dataset(s: Samples) -> None:
    _into(s.small.loader(2, output="numpy"), s.images.take(3).resize((8, 8)).loader(2, output="numpy"))


def _changed_samples(s: Samples) -> None:
    other = feedline.arrays(x=np.zeros((6, 2), np.float32), y=np.zeros(6, np.int64))
    _into(_loader(s), other.loader(2, output="numpy"))


def _weights_and_none(s: Samples) -> None:
    _into(_loader(s, weights=[1] * 6), _loader(s))


def _other_weights(s: Samples) -> None:
    _into(_loader(s, weights=[1] * 6), _loader(s, weights=[1, 2, 3, 4, 5, 6]))


def _other_fidelity(s: Samples) -> None:
    fast = s.images.decode(fidelity="fast").resize((8, 8))
    _into(fast.loader(2, output="numpy"), s.small.loader(2, output="numpy"))


def _other_buckets(s: Samples) -> None:
    _into(s.lengths.loader(2, output="numpy", buckets=[3, 6]), s.lengths.loader(2, output="numpy", buckets=[6]))


def _buckets_and_none(s: Samples) -> None:
    _into(s.lengths.loader(2, output="numpy", buckets=[3, 6]), s.lengths.loader(2, output="numpy"))


def _a_sampler_with_another_order(s: Samples) -> None:
    orders = iter([[0, 1, 2, 3], [3, 2, 1, 0]])

    class Changing:
        def __iter__(self) -> Any:
            return iter(next(orders))

        def __len__(self) -> int:
            return 4

    saved = _loader(s, sampler=Changing())
    next(iter(saved))
    state = saved.state_dict()
    again = _loader(s, sampler=Changing())
    again.load_state_dict(state)
    next(iter(again))


def _a_mixture_of_other_datasets(s: Samples) -> None:
    two = feedline.mix([s.small, s.small])
    three = feedline.mix([s.small, s.small, s.small])
    _into(two.loader(2, output="numpy"), three.loader(2, output="numpy"))


def _an_order_of_files_instead_of_row_groups(s: Samples) -> None:
    rows = [{"n": i} for i in range(6)]
    dataset = feedline.open(s.write("a.parquet", made_parquet.file_of(rows, per_group=2)))
    loader = dataset.loader(2, shuffle="shards", output="numpy")
    state = loader.state_dict()
    del state["dataset"]["blocks"]
    loader.load_state_dict(state)


# ---- tuned settings ----


def _settings(s: Samples, content: object, **options: Any) -> None:
    text = content if isinstance(content, str) else json.dumps(content)
    feedline.load_settings(s.write("settings.json", text), **options)


def _settings_that_are_missing(s: Samples) -> None:
    feedline.load_settings("here/none.json")


def _settings_without_json(s: Samples) -> None:
    _settings(s, "no json")


def _settings_of_another_kind(s: Samples) -> None:
    _settings(s, {"a": 1})


def _settings_of_a_later_version(s: Samples) -> None:
    _settings(s, {"feedline_settings": 99})


def _settings_of_a_version_that_is_text(s: Samples) -> None:
    _settings(s, {"feedline_settings": "x"})


def _settings_without_arguments(s: Samples) -> None:
    _settings(s, {"feedline_settings": 1})


def _settings_that_are_larger_than_any(s: Samples) -> None:
    _settings(s, " " * 20_000_000)


def _settings_with_nan(s: Samples) -> None:
    _settings(s, '{"feedline_settings": NaN}')


_SAVED = {"feedline_settings": 1, "machine": {}, "data": {}}


def _settings_of_a_script_for_a_source(s: Samples) -> None:
    _settings(s, {**_SAVED, "arguments": {"DataLoader": {"num_workers": 2}}}, for_="loader")


def _settings_of_a_source_for_a_script(s: Samples) -> None:
    _settings(s, {**_SAVED, "arguments": {"loader": {"num_workers": 2}}})


def _settings_of_feedline_for_torch(s: Samples) -> None:
    saved = {**_SAVED, "use": "feedline", "arguments": {"DataLoader": {"num_workers": 2}}}
    _settings(s, saved, for_="torch.DataLoader")


def _settings_without_workers(s: Samples) -> None:
    _settings(s, {**_SAVED, "arguments": {"DataLoader": {"batch_size": 2}}})


def _settings_with_an_unknown_argument(s: Samples) -> None:
    _settings(s, {**_SAVED, "arguments": {"DataLoader": {"num_workers": 2, "speed": 9}}})


def _settings_with_a_number_as_text(s: Samples) -> None:
    _settings(s, {**_SAVED, "arguments": {"DataLoader": {"num_workers": "2"}}})


def _settings_that_prefetch_without_workers(s: Samples) -> None:
    _settings(s, {**_SAVED, "arguments": {"DataLoader": {"num_workers": 0, "prefetch_factor": 2}}})


def _a_flag_that_is_a_number(s: Samples) -> None:
    state = _loader(s).state_dict()
    _restored(_loader(s), plan={**state["plan"], "shuffle": 1})


CASES = {
    **expressions("""
        numbers.loader(2, output="numpy").load_state_dict({})
        numbers.loader(2, output="numpy").load_state_dict(None)
        numbers.loader(2, output="numpy").load_state_dict("state")
        numbers.loader(2, output="numpy").load_state_dict({"version": 1})
        feedline.load_settings(3)
        feedline.load_settings("here/settings.json", for_="everything")
    """),
    **functions(globals()),
}
