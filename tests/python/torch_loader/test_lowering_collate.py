# SPDX-License-Identifier: Apache-2.0
"""collate_fn functions that wrap torchvision's MixUp and CutMix, and timm's fast_collate: recognised, with the same
results.
"""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.utils.data
from lowered import assert_same, assert_same_epochs, error_of, plan_of
from torch.utils.data import DataLoader as TorchLoader
from torch.utils.data import default_collate

from feedline import ConfigError, DataLoader, _engine

vision = pytest.importorskip("torchvision")
v1, v2 = pytest.importorskip("torchvision.transforms"), pytest.importorskip("torchvision.transforms.v2")

CLASSES = 7
mixup = v2.MixUp(alpha=0.2, num_classes=CLASSES)
cutmix = v2.CutMix(alpha=1.0, num_classes=CLASSES)
either = v2.RandomChoice([mixup, cutmix])


def collate_with_global_names(batch: Any) -> Any:
    """As in torchvision's gallery."""
    return either(*default_collate(batch))


def collate_in_two_steps(samples: Any) -> Any:
    x, y = default_collate(samples)
    return cutmix(x, y)


def collate_in_three_steps(samples: Any) -> Any:
    x, y = default_collate(samples)
    x, y = mixup(x, y)
    return x, y


def closed_over(mixer: Any) -> Callable[[Any], Any]:
    """As in torchvision's references."""

    def collate_fn(batch: Any) -> Any:
        return mixer(*default_collate(batch))

    return collate_fn


def with_default(batch: Any, mixer: Any = mixup) -> Any:
    return mixer(*default_collate(batch))


def with_two_defaults(batch: Any, mixer: Any = mixup, other: Any = cutmix) -> Any:
    return mixer(*default_collate(batch))


def with_mixer_first(mixer: Any, batch: Any) -> Any:
    images, labels = default_collate(batch)
    images, labels = mixer(images, labels)
    return images, labels


def with_both_given(samples: Any, *, together: Any, mixer: Any = None) -> Any:
    x, y = together(samples)
    return mixer(x, y)


class Collate:
    """As a callable object, and with a method."""

    def __init__(self, mixer: Any) -> None:
        self.mixer, self.together = mixer, default_collate

    def __call__(self, batch: Any) -> Any:
        return self.mixer(*self.together(batch))

    def one_after_the_other(self, samples: Any) -> Any:
        images, labels = default_collate(samples)
        images, labels = self.mixer(images, labels)
        return images, labels

    @property
    def changing(self) -> Any:
        return self.mixer

    def by_a_property(self, batch: Any) -> Any:
        return self.changing(*default_collate(batch))


class OfClass(Collate):
    mixer = either

    def __init__(self) -> None:
        self.together = default_collate


class Hiding(Collate):
    def __getattribute__(self, name: str) -> Any:
        return plain_mixer if name == "mixer" else super().__getattribute__(name)


KNOWN: dict[str, tuple[Callable[[Any], Any], str]] = {
    "global names": (collate_with_global_names, "collate_with_global_names: MixUp or CutMix"),
    "closure, mixup": (closed_over(mixup), "collate_fn: MixUp"),
    "closure, cutmix": (closed_over(cutmix), "collate_fn: CutMix"),
    "closure, one of one": (closed_over(v2.RandomChoice([cutmix])), "collate_fn: CutMix"),
    "weights": (closed_over(v2.RandomChoice([mixup, cutmix], p=[3, 1])), "collate_fn: MixUp or CutMix"),
    "lambda": (lambda b: either(*default_collate(b)), "<lambda>: MixUp or CutMix"),
    "by module": (lambda b: either(*torch.utils.data.default_collate(b)), "<lambda>: MixUp or CutMix"),
    "by another module": (lambda b: mixup(*torch.utils.data.dataloader.default_collate(b)), "<lambda>: MixUp"),
    "one list": (lambda b: either(default_collate(b)), "<lambda>: MixUp or CutMix"),
    "two steps": (collate_in_two_steps, "collate_in_two_steps: CutMix"),
    "three steps": (collate_in_three_steps, "collate_in_three_steps: MixUp"),
    "a default": (with_default, "with_default: MixUp"),
    "two defaults": (with_two_defaults, "with_two_defaults: MixUp"),
    "a partial": (functools.partial(with_default, mixer=cutmix), "with_default: CutMix"),
    "a partial of a partial": (
        functools.partial(functools.partial(with_mixer_first), either),
        "with_mixer_first: MixUp",
    ),
    "a partial of names": (
        functools.partial(with_both_given, together=default_collate, mixer=cutmix),
        "with_both_given: CutMix",
    ),
    "an object": (Collate(mixup), "Collate: MixUp"),
    "an object, of a class": (OfClass(), "OfClass: MixUp or CutMix"),
    "a method": (Collate(cutmix).one_after_the_other, "Collate: CutMix"),
    "a partial of a method": (functools.partial(Collate(mixup).one_after_the_other), "Collate: MixUp"),
    "another alpha": (closed_over(v2.MixUp(alpha=1.7, num_classes=CLASSES + 2)), "collate_fn: MixUp"),
}


def photos_of(folder: Path, *chain: Any) -> Any:
    own = [v1.Resize((30, 20)), v1.ToTensor(), v1.Normalize([0.5, 0.4, 0.3], [0.2, 0.3, 0.4])]
    return vision.datasets.ImageFolder(folder, v1.Compose(list(chain) or own))


@pytest.mark.parametrize("name", KNOWN)
def test_a_known_function_runs_natively_and_gives_torchs_batches(folder: Path, name: str) -> None:
    collate, words = KNOWN[name]
    dataset = photos_of(folder)
    loader = DataLoader(dataset, 4, collate_fn=collate, lower="require")
    assert f"collate    {words} " in loader.explain()
    assert "torchvision draws from torch's generator" in loader.explain()
    torch.manual_seed(11)
    ours = list(loader)
    after = torch.get_rng_state()
    assert loader._progress.native_rows == len(dataset)
    torch.manual_seed(11)
    theirs = list(TorchLoader(dataset, 4, collate_fn=collate))
    assert torch.equal(after, torch.get_rng_state())
    assert [type(batch) for batch in ours] == [type(batch) for batch in theirs]
    for (images, targets), (wanted, wanted_targets) in zip(ours, theirs, strict=True):
        assert images.dtype == wanted.dtype and images.shape == wanted.shape
        # the mixed values may differ in a last bit before
        assert torch.allclose(images, wanted, rtol=0, atol=2e-6)
        assert torch.equal(targets, wanted_targets)


def test_given_what_is_drawn_the_rows_are_torchvisions_to_the_bit() -> None:
    generator = torch.Generator().manual_seed(3)
    for rows, channels, height, width in ((2, 1, 1, 1), (3, 3, 17, 23), (8, 3, 64, 48), (5, 4, 33, 1)):
        images = torch.randn(rows, channels, height, width, generator=generator)
        labels = torch.arange(rows)
        for share in (0.0, 1.0, 0.1, 0.73, 1e-9):
            share = float(torch.tensor(share))
            ours = images.clone()
            _engine.mix_up(ours.data_ptr(), tuple(ours.shape), share)
            wanted = mixup.transform(images, {"labels": labels, "batch_size": rows, "lam": share})
            assert torch.equal(ours, wanted)
        for box in ((0, 0, width, height), (0, 0, 0, 0), (width // 3, height // 2, width, height)):
            ours = images.clone()
            _engine.cut_mix(ours.data_ptr(), tuple(ours.shape), box)
            wanted = cutmix.transform(images, {"labels": labels, "batch_size": rows, "box": box, "lam_adjusted": 1.0})
            assert torch.equal(ours, wanted)
    row = torch.zeros(1, 3, 4, 5)
    with pytest.raises(ConfigError, match="at least two rows are needed"):
        _engine.mix_up(row.data_ptr(), (1, 3, 4, 5), 0.5)
    for box in ((-1, 0, 2, 2), (0, 0, 6, 2), (3, 0, 2, 2), (0, 3, 1, 5)):
        with pytest.raises(ConfigError, match="not inside the image"):
            _engine.cut_mix(row.data_ptr(), (2, 3, 4, 5), box)


def plain_mixer(images: Any, labels: Any) -> Any:
    return images, labels


class Mine(v2.MixUp):
    pass


def generator_of_batches(batch: Any) -> Any:
    yield mixup(*default_collate(batch))


def that_changes_an_argument(batch: Any, mixer: Any = mixup) -> Any:
    mixer = cutmix
    return mixer(*default_collate(batch))


def more_is_done(batch: Any) -> Any:
    return mixup(*default_collate(batch[::-1]))


def other_order(batch: Any) -> Any:
    images, labels = default_collate(batch)
    return mixup(labels, images)


def not_there(batch: Any) -> Any:
    return undefined_mixer(*default_collate(batch))  # type: ignore[name-defined]  # noqa: F821


def hooked() -> Any:
    mixer = v2.MixUp(num_classes=CLASSES)
    mixer.register_forward_hook(lambda module, given, made: made)
    return mixer


def with_own_draw() -> Any:
    mixer = v2.MixUp(num_classes=CLASSES)
    mixer.make_params = lambda flat: {"lam": 0.5}
    return mixer


def default_collate_of_ones_own() -> Callable[[Any], Any]:
    def default_collate(batch: Any) -> Any:
        return torch.utils.data.default_collate(batch[:1])

    return lambda batch: mixup(*default_collate(batch))


UNKNOWN: dict[str, tuple[Any, str]] = {
    "another function": (plain_mixer, "collate_fn is not torch's default_collate"),
    "its own": (closed_over(plain_mixer), "it calls plain_mixer, which is not torchvision v2's MixUp"),
    "a subclass": (closed_over(Mine(num_classes=3)), "it calls Mine, which is not torchvision v2's"),
    "one of a subclass": (closed_over(v2.RandomChoice([mixup, Mine(num_classes=3)])), "it calls Mine, which is not"),
    "hooks": (closed_over(hooked()), "it calls MixUp, which is not"),
    "its own draw": (closed_over(with_own_draw()), "it calls MixUp, which is not"),
    "labels": (
        closed_over(v2.MixUp(num_classes=3, labels_getter=lambda i: i[1])),
        "has its own labels_getter",
    ),
    "a generator": (generator_of_batches, "collate_fn is not torch's default_collate"),
    "a changed argument": (that_changes_an_argument, "collate_fn is not torch's default_collate"),
    "an argument is missing": (with_mixer_first, "collate_fn is not torch's default_collate"),
    "more": (more_is_done, "collate_fn is not torch's default_collate"),
    "another order": (other_order, "collate_fn is not torch's default_collate"),
    "a name of nothing": (not_there, "collate_fn is not torch's default_collate"),
    "another default_collate": (default_collate_of_ones_own(), "collate_fn is not torch's default_collate"),
    "a partial of something else": (
        functools.partial(with_default, mixer=plain_mixer),
        "it calls plain_mixer, which is not torchvision v2's MixUp",
    ),
    "a partial that gives the batch": (
        functools.partial(with_default, batch=[], mixer=cutmix),
        "collate_fn is not torch's default_collate",
    ),
    "an object of its own": (Collate(plain_mixer), "it calls plain_mixer, which is not torchvision v2's MixUp"),
    "an object's property": (Collate(mixup).by_a_property, "collate_fn is not torch's default_collate"),
    "an object that hides": (Hiding(mixup), "collate_fn is not torch's default_collate"),
    "a partial of what is no function": (
        functools.partial(mixup, inplace=True),
        "collate_fn is not torch's default_collate",
    ),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_is_not_known_stays_in_python_and_reports_why(folder: Path, name: str) -> None:
    collate, why = UNKNOWN[name]
    loader = DataLoader(photos_of(folder), 4, collate_fn=collate)
    assert plan_of(loader) == "prefix"
    assert why in loader.explain()
    with pytest.raises(ConfigError, match="collate"):
        DataLoader(photos_of(folder), 4, collate_fn=collate, lower="require")


def test_batches_of_one_row_and_of_other_kinds_are_torchvisions(folder: Path) -> None:
    collate = closed_over(mixup)
    assert_same_epochs(photos_of(folder), plan="images", batch_size=1, collate_fn=collate)
    bytes_ = photos_of(folder, v1.Resize((30, 20)), v1.PILToTensor())
    assert_same_epochs(bytes_, plan="images", batch_size=4, collate_fn=closed_over(cutmix))
    unsized = photos_of(folder, v1.Resize(20), v1.ToTensor())
    assert plan_of(DataLoader(unsized, 4, collate_fn=collate)) == "prefix"


def test_its_errors_are_torchvisions(folder: Path) -> None:
    for mixer in (v2.MixUp(num_classes=1), v2.MixUp(), v2.RandomChoice([v2.CutMix(num_classes=1)])):
        kinds = (DataLoader, TorchLoader)
        collate = closed_over(mixer)
        found = [
            error_of(lambda kind=kind, c=collate: list(kind(photos_of(folder), 8, collate_fn=c))) for kind in kinds
        ]
        assert found[0] is found[1] is not None


def test_draws_follow_the_seed_and_no_worker(folder: Path) -> None:
    """With a seed, the batches are the same for any number of threads; without, every epoch draws again."""
    dataset, collate = photos_of(folder), closed_over(either)
    epochs = [
        [list(loader) for _ in range(2)]
        for loader in (DataLoader(dataset, 4, collate_fn=collate, num_workers=n, seed=5) for n in (0, 1, 2))
    ]
    assert_same(epochs[0], epochs[1])
    assert_same(epochs[0], epochs[2])
    assert not torch.equal(epochs[0][0][0][0], epochs[0][1][0][0])
    before = torch.get_rng_state()
    loader = DataLoader(dataset, 4, collate_fn=collate, num_workers=1)
    first, second = list(loader), list(loader)
    assert not torch.equal(first[0][0], second[0][0])
    torch.set_rng_state(before)


def test_shares_and_choices_are_torchvisions(folder: Path) -> None:
    stats = pytest.importorskip("scipy.stats")
    mixer = v2.RandomChoice([v2.MixUp(alpha=0.4, num_classes=CLASSES), cutmix], p=[0.25, 0.75])
    dataset = photos_of(folder, v1.Resize((8, 8)), v1.ToTensor())
    labels = [label for _, label in dataset.samples]
    pair = [labels.index(0), labels.index(1)]
    loader = DataLoader(dataset, batch_sampler=[pair] * 3000, collate_fn=closed_over(mixer))
    assert plan_of(loader) == "images"
    torch.manual_seed(1)
    plain = next(iter(DataLoader(dataset, batch_sampler=[pair])))[0]
    shares, kinds = [], collections.Counter()
    for images, targets in loader:
        pasted = ((images == plain) | (images == plain.roll(1, 0))).all()
        kinds[bool(pasted)] += 1
        if not pasted:
            shares.append(float(targets[0, 0]))
    assert kinds[True] == pytest.approx(0.75 * 3000, abs=4 * 24 + 60)  # a share of 0 or 1 mixes nothing
    assert (
        stats.kstest([s for s in shares if 0.01 < s < 0.99], lambda x: _within(stats.beta(0.4, 0.4), x)).pvalue > 1e-4
    )


def _within(beta: Any, x: Any) -> Any:
    return (beta.cdf(x) - beta.cdf(0.01)) / (beta.cdf(0.99) - beta.cdf(0.01))


def test_files_that_the_engine_does_not_read_are_mixed_by_python(folder: Path, tmp_path: Path) -> None:
    import shutil

    from PIL import Image

    root = Path(shutil.copytree(folder, tmp_path / "photos"))
    dataset = photos_of(root)
    path = dataset.samples[5][0]
    Image.open(path).convert("RGB").save(path, "BMP")
    collate = closed_over(either)
    torch.manual_seed(4)
    loader = DataLoader(dataset, 4, collate_fn=collate)
    ours = list(loader)
    assert loader._progress.native_misses == 1
    torch.manual_seed(4)
    for batch, wanted in zip(ours, TorchLoader(dataset, 4, collate_fn=collate), strict=True):
        assert torch.allclose(batch[0], wanted[0], rtol=0, atol=2e-6) and torch.equal(batch[1], wanted[1])


def test_timms_fast_collate_runs_natively(folder: Path) -> None:
    loader_of_timm = pytest.importorskip("timm.data.loader", reason="tools/test --integrations installs timm")
    fast = loader_of_timm.fast_collate
    bytes_ = photos_of(folder, v1.Resize((30, 20)), v1.PILToTensor())
    assert_same_epochs(bytes_, plan="images", batch_size=4, collate_fn=fast)
    assert_same_epochs(bytes_, plan="images", batch_size=4, collate_fn=fast, shuffle=True, epochs=2)
    assert "collate    fast_collate " in DataLoader(bytes_, 4, collate_fn=fast, lower="require").explain()
    assert plan_of(DataLoader(photos_of(folder), 4, collate_fn=fast)) == "prefix"
