# SPDX-License-Identifier: Apache-2.0
"""k-fold splits, filters, take and repeat."""

from __future__ import annotations

import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import made_data
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import feedline
from feedline.data.selection import folds

LABELS = np.repeat(np.arange(3), (50, 31, 20))


def labelled() -> feedline.Dataset:
    return feedline.arrays(x=np.arange(len(LABELS)), label=LABELS)


def xs(dataset: feedline.Dataset) -> list[int]:
    return [int(dataset[i].x) for i in range(len(dataset))]


@pytest.mark.parametrize("by_class", [False, True])
def test_folds_are_disjoint_and_complete(by_class: bool) -> None:
    parts = [labelled().split(k_fold=5, fold=i, by_class=by_class) for i in range(5)]
    for train, valid in parts:
        assert sorted(xs(train) + xs(valid)) == list(range(101))
        assert len(valid) in (20, 21)
    assert sorted(x for _, valid in parts for x in xs(valid)) == list(range(101))
    if by_class:
        for _, valid in parts:
            counts = Counter(LABELS[xs(valid)].tolist())
            assert [counts[0], counts[2]] == [10, 4]
            assert counts[1] in (6, 7)


def test_the_seed_sets_the_folds() -> None:
    one, same, other = (xs(labelled().split(k_fold=4, fold=2, by_class=True, seed=seed)[1]) for seed in (1, 1, 2))
    assert one == same != other


def test_classes_and_groups_in_every_form() -> None:
    dataset = labelled()
    by_name = xs(dataset.split(k_fold=3, fold=0, by_class="label")[1])
    assert by_name == xs(dataset.split(k_fold=3, fold=0, by_class=LABELS)[1])
    groups = np.arange(101) // 4
    texts = [f"patient {group}" for group in groups]
    assert xs(dataset.split(k_fold=3, fold=1, groups=groups)[1]) == xs(dataset.split(k_fold=3, fold=1, groups=texts)[1])


@given(
    sizes=st.lists(st.integers(1, 12), min_size=6, max_size=60),
    count=st.integers(2, 6),
    classes=st.booleans(),
    seed=st.integers(0, 3),
)
@settings(max_examples=60, deadline=None)
def test_groups_stay_whole(sizes: list[int], count: int, classes: bool, seed: int) -> None:
    groups = [group for group, size in enumerate(sizes) for _ in range(size)]
    labels = [group % 3 for group in groups] if classes else None
    fold_of = folds.assigned(len(groups), count, seed, labels, groups)
    assert len({(group, fold) for group, fold in zip(groups, fold_of, strict=True)}) == len(sizes)
    assert set(fold_of) == set(range(count))
    if labels is None:
        loads = Counter(fold_of)
        assert max(loads.values()) - min(loads.values()) <= max(sizes)


def test_classes_are_as_even_as_scikit_learns() -> None:
    model_selection = pytest.importorskip("sklearn.model_selection")
    rng = np.random.default_rng(2)
    groups = np.repeat(np.arange(80), rng.integers(1, 15, 80))
    shares = rng.dirichlet([0.6, 0.3, 0.1], 80)
    labels = np.array([rng.choice(3, p=shares[group]) for group in groups])

    def unevenness(fold_of: np.ndarray) -> float:
        counts = np.array([np.bincount(labels[fold_of == i], minlength=3) for i in range(5)])
        return float((counts / counts.sum(axis=0)).std(axis=0).mean())

    theirs = np.zeros(len(groups), int)
    splitter = model_selection.StratifiedGroupKFold(5)
    for i, (_, valid) in enumerate(splitter.split(groups, labels, groups)):
        theirs[valid] = i
    ours = np.array(folds.assigned(len(groups), 5, 0, labels.tolist(), groups.tolist()))
    assert unevenness(ours) < max(2 * unevenness(theirs), 0.02)


def test_groups_by_a_text_column(tmp_path: Path) -> None:
    made_data.make_folder(tmp_path / "photos", per_class=3)
    rows = [
        f'{{"image": "{path.relative_to(tmp_path)}", "patient": "p{i // 2}", "age": {30.5 + i}}}'
        for i, path in enumerate(sorted((tmp_path / "photos").rglob("*.jpg")))
    ]
    (tmp_path / "rows.jsonl").write_text("\n".join(rows))
    dataset = feedline.open(tmp_path / "rows.jsonl", fields=("image", "patient", "age"))
    seen: list[str] = []
    for i in range(3):
        train, valid = (
            set(map(patient_of(part), range(len(part)))) for part in dataset.split(k_fold=3, fold=i, groups="patient")
        )
        assert not train & valid
        seen += valid
    assert len(seen) == len(set(seen)) == -(-len(rows) // 2)
    older = dataset.filter(lambda row: row["age"] > 33 and row["patient"] != "p3")
    assert all(patient_of(older)(i) != "p3" for i in range(len(older)))
    assert len(older) == sum(30.5 + i > 33 and i // 2 != 3 for i in range(len(rows)))


def patient_of(dataset: feedline.Dataset) -> Any:
    return lambda i: dataset.resize((8, 8))[i].patient


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"k_fold": 5}, "k_fold=5 requires fold"),
        ({"fold": 0}, "fold requires k_fold"),
        ({"groups": "x"}, "groups requires k_fold"),
        ({"k_fold": 1, "fold": 0}, "k_fold must be from 2"),
        ({"k_fold": 5, "fold": 5}, "fold must be from 0 to 4, not 5"),
        ({"k_fold": 102, "fold": 0}, "k_fold=102 needs at least 102 samples, but the dataset has 101; use fewer folds"),
        (
            {"k_fold": 21, "fold": 0, "by_class": True},
            "class 2 has 20 samples, too few for k_fold=21 with by_class; use at most 20 folds, or leave",
        ),
        (
            {"k_fold": 2, "fold": 0, "by_class": [0] * 100 + [1]},
            r"class 1 has 1 sample, too few for k_fold=2 with by_class; leave the class out with filter\(\)",
        ),
        ({"k_fold": 5, "fold": 0, "groups": [0] * 101}, "needs at least 5 groups, but the samples have 1"),
        ({"k_fold": 5, "fold": 0, "groups": [0, 1]}, "groups has 2 values for 101 samples"),
        ({"k_fold": 5, "fold": 0, "groups": [0] * 100 + [None]}, "the group of sample 100 is None; pass a number"),
        ({"k_fold": 5, "fold": 0, "groups": [[1]] * 101}, r"the group of sample 0 is \[1\]; pass a number"),
        ({"k_fold": 5, "fold": 0, "by_class": [0, 1]}, "by_class has 2 values for 101 samples"),
        ({"k_fold": 5, "fold": 0, "groups": "patient"}, "no field 'patient'; the fields are x, label"),
        ({"k_fold": 5, "fold": 0, "groups": 3}, "groups must be a field or a value"),
    ],
)
def test_bad_folds(options: dict[str, Any], words: str) -> None:
    with pytest.raises(feedline.ConfigError, match=words):
        labelled().split(**options)
    with pytest.raises(feedline.ConfigError, match="or k_fold, not both"):
        labelled().split(0.5, k_fold=5, fold=0)


def test_take() -> None:
    assert xs(labelled().take(4)) == [0, 1, 2, 3]
    assert len(labelled().take(1000)) == 101
    for bad in (0, -1, 1.5):
        with pytest.raises(feedline.ConfigError, match="take: n must be"):
            labelled().take(bad)


def test_repeat() -> None:
    repeated = labelled().take(3).repeat(4)
    assert xs(repeated) == [0, 1, 2] * 4
    with repeated.loader(5, shuffle=True, output="numpy") as loader:
        assert Counter(int(x) for batch in loader for x in batch.x) == {0: 4, 1: 4, 2: 4}
    assert xs(pickle.loads(pickle.dumps(repeated))) == [0, 1, 2] * 4
    for bad in (0, 2**40, True):
        with pytest.raises(feedline.ConfigError, match="repeat: n must be"):
            labelled().repeat(bad)


def test_repetitions_have_other_random_operations() -> None:
    images = np.random.default_rng(0).integers(0, 256, (1, 40, 40, 3), dtype=np.uint8)
    repeated = feedline.arrays(image=images, fields=["image:image"]).repeat(6).random_crop(8)
    assert len({repeated[i].image.tobytes() for i in range(6)}) > 3


@pytest.mark.parametrize("form", [list, np.array])
def test_filter_by_a_mask(form: Any) -> None:
    assert xs(labelled().filter(form([i % 10 == 3 for i in range(101)]))) == list(range(3, 101, 10))


def test_filter_by_a_tensor() -> None:
    torch = pytest.importorskip("torch")
    assert xs(labelled().filter(torch.arange(101) < 2)) == [0, 1]


def test_filter_by_a_function() -> None:
    dataset = feedline.arrays(
        x=np.arange(6), label=np.arange(6) % 2, score=np.linspace(0, 1, 6), vector=np.zeros((6, 2))
    )
    rows: list[dict[str, Any]] = []
    chosen = dataset.filter(lambda row: rows.append(row) or row["label"] == 1)
    assert xs(chosen) == [1, 3, 5]
    assert [set(row) - {"key"} for row in rows] == [{"x", "label", "score"}] * 6
    assert rows[5] == {"key": dataset.key(5), "x": 5, "label": 1, "score": 1.0}
    assert xs(pickle.loads(pickle.dumps(chosen))) == [1, 3, 5]  # although the function cannot be pickled


def test_filter_class_folders_and_tars(tmp_path: Path) -> None:
    folder = made_data.make_folder(tmp_path / "folder", per_class=4)
    dataset = feedline.open(folder)
    tars = feedline.open(made_data.make_tars(folder, tmp_path / "tars", shards=2))
    for source in (dataset, tars):
        chosen = source.filter(lambda row: row["label"] == 1)
        assert len(chosen) == 4
        assert all(int(chosen.resize((8, 8))[i].label) == 1 for i in range(4))
    name = dataset.key(2)
    assert [dataset.filter(lambda row: row["key"] == name).key(0)] == [name]


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ([True] * 100, "the mask has 100 values for 101 samples"),
        ([0] * 101, r"value of sample 0 is 0, not a boolean; use subset\(\) for indices"),
        ([True] * 100 + [None], "value of sample 100 is None"),
        ([False] * 101, "no sample of 101 is selected"),
        (lambda row: False, "no sample of 101 is selected"),
        ("label == 3", "pass a boolean for each sample or a function"),
        (3, "pass a boolean for each sample or a function"),
    ],
)
def test_bad_filters(condition: Any, words: str) -> None:
    with pytest.raises(feedline.ConfigError, match=words):
        labelled().filter(condition)
