# SPDX-License-Identifier: Apache-2.0
"""Chains without a dataset: the operations of one, in the order in which they were called, checked at the call."""

import pytest

import feedline
from feedline.data.ops.augmentations import Augmentations


def test_a_chain_has_the_operations_that_were_called_in_their_order():
    chain = feedline.chain().random_resized_crop(96).random_horizontal_flip(p=0.25).random_solarize(128)
    assert len(chain) == 3
    names = [operation.split("(")[0] for operation in chain.operations]
    assert names == ["random_resized_crop", "random_horizontal_flip", "random_solarize"]
    assert repr(chain).startswith("feedline.chain().random_resized_crop(96, 96")


def test_a_chain_is_not_changed_by_what_is_made_of_it():
    start = feedline.chain().resize(64)
    start.center_crop(32)
    assert len(start) == 1
    assert len(feedline.chain()) == 0


def test_a_chain_describes_its_operations_as_a_dataset_does(folder):
    def with_operations(start):
        return (
            start.resize(80, interpolation="bicubic")
            .random_crop(64, padding=2)
            .rand_augment()
            .normalize([0.5] * 3, [0.5] * 3)
        )

    assert with_operations(feedline.chain()).operations == with_operations(feedline.open(folder)).operations


def test_a_chain_has_every_operation_on_images_and_nothing_that_needs_samples():
    public = {name for name in dir(feedline.Chain) if not name.startswith("_")}
    assert public == {name for name in dir(Augmentations) if not name.startswith("_")} | {"operations"}


def test_a_wrong_argument_is_refused_at_the_call():
    with pytest.raises(feedline.ConfigError, match="random_posterize"):
        feedline.chain().random_posterize(9)


@pytest.mark.parametrize("operation", ["resize(8, interpolation='random')", "rand_augment()", "gaussian_blur(3)"])
def test_what_draws_is_known_by_its_words(operation):
    """ds[i] draws anew under a loader of torch's kind where anything is drawn."""
    from feedline.data import draws

    chain = eval(f"feedline.chain().{operation}")
    assert draws.is_random(chain.operations[0])
    assert draws.is_random(f"views(chain().{chain.operations[0]})")
    assert not draws.is_random(feedline.chain().resize(8).operations[0])


def test_all_random_operations_are_known_by_their_words():
    """An operation that is not recognised repeats the draws of epoch 0 in torch's loader."""
    from feedline.data import draws

    operations = {each["name"]: each["is_random"] for each in feedline._engine.operation_types()}
    words = {"clip": 'clip(frames=2, sampling="random")', "audio": "audio(rate=None)"}
    recognised = {name: draws.is_random(words.get(name, f"{name}()")) for name in operations}
    assert recognised == operations
    assert draws.is_random('clip(frames=2, sampling="segments")')
    assert not draws.is_random("clip(frames=2, start=0)")
    assert draws.is_random("audio(rate=None, duration=1, random=True)")


def test_a_crop_by_boxes_is_not_allowed_in_a_chain(folder):
    """At the call, not with the first sample."""
    crop, dataset = feedline.chain().random_iou_crop(), feedline.open(folder)
    with pytest.raises(feedline.ConfigError, match="random_apply: random_iou_crop cannot be part of a chain"):
        dataset.random_apply(crop)
    with pytest.raises(feedline.ConfigError, match="random_iou_crop: the boxes of a sample cannot follow"):
        dataset.views([crop.resize((8, 8))])
