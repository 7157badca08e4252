# SPDX-License-Identifier: Apache-2.0
"""Labels, targets and class counts of a dataset, without decoding."""

from __future__ import annotations

from pathlib import Path

import numpy
import pytest

import feedline
from feedline.errors import ConfigError


def test_labels_of_class_folders_are_in_the_order_of_samples(folder: Path):
    ds = feedline.open(folder)
    assert ds.labels.dtype == numpy.int64
    assert ds.labels.tolist() == [ds[i].label for i in range(len(ds))]
    assert ds.class_counts() == {"apple": 7, "birch": 7, "crow": 7}


def test_labels_of_a_subset_are_those_of_its_samples(folder: Path):
    part = feedline.open(folder).subset([20, 0, 8])
    assert part.labels.tolist() == [2, 0, 1]
    assert part.subset([0]).class_counts() == {"apple": 0, "birch": 0, "crow": 1}


def test_targets_of_a_table_are_its_numbers(tmp_path: Path):
    (tmp_path / "t.csv").write_text("label,age\n3,40\n3,5\n-1,7\n")
    ds = feedline.open(tmp_path / "t.csv")
    assert ds.targets("age").tolist() == [40, 5, 7]
    assert ds.class_counts() == {"-1": 1, "3": 2}


def test_a_dataset_without_a_label_is_an_error_that_names_its_fields(tmp_path: Path):
    (tmp_path / "t.csv").write_text("age,height\n3,40\n")
    ds = feedline.open(tmp_path / "t.csv")
    with pytest.raises(ConfigError, match="the fields are age, height"):
        ds.labels  # noqa: B018
    with pytest.raises(ConfigError, match="no field 'weight'"):
        ds.targets("weight")
