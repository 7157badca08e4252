# SPDX-License-Identifier: Apache-2.0
"""Names and arguments of other libraries raise errors that name the replacement."""

from __future__ import annotations

import inspect
import re
import traceback
from collections.abc import Callable
from typing import Any

import made_data
import pytest

import feedline
from feedline.data.ops import other_names


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> feedline.Dataset:
    return feedline.open(made_data.make_folder(tmp_path_factory.mktemp("photos")))


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("random_hflip", "random_horizontal_flip(p)"),
        ("RandomHorizontalFlip", "random_horizontal_flip(...)"),
        ("ToTensor", "normalize(mean, std)"),
        ("shuffle", "loader(batch_size, shuffle=True)"),
        ("train_test_split", "split(0.9, seed=0)"),
    ],
)
def test_a_name_of_another_library(photos: feedline.Dataset, name: str, instead: str) -> None:
    with pytest.raises(AttributeError) as raised:
        getattr(photos, name)
    shown = traceback.format_exception_only(raised.value)[-1]
    assert f"Dataset has no '{name}'; use {instead}" in shown
    assert "Did you mean" not in shown


def test_a_misspelt_name(photos: feedline.Dataset) -> None:
    with pytest.raises(AttributeError, match="'Dataset' object has no attribute 'nomalize'") as raised:
        photos.nomalize  # type: ignore[attr-defined]  # noqa: B018
    assert (raised.value.name, raised.value.obj) == ("nomalize", photos)  # Python's traceback adds the right name
    with pytest.raises(AttributeError, match="module 'feedline' has no attribute 'opne'") as raised:
        feedline.opne  # type: ignore[attr-defined]  # noqa: B018
    assert (raised.value.name, raised.value.obj) == ("opne", feedline)
    assert not hasattr(photos, "__array__")


def test_an_attribute_error_of_a_property_is_raised_unchanged(
    photos: feedline.Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feedline.Dataset, "classes", property(lambda self: self.missing))
    with pytest.raises(AttributeError, match="no attribute 'missing'"):
        photos.classes  # noqa: B018


def test_each_advice_names_a_method_with_these_parameters() -> None:
    for name, instead in other_names._INSTEAD.items():
        assert not hasattr(feedline.Dataset, name), f"{name} exists"
        for method, given in re.findall(r"\b([a-z_0-9]+)\(([^()]*)\)", instead):
            if method == "len":
                continue
            parameters = inspect.signature(getattr(feedline.Dataset, method)).parameters
            for argument in re.findall(r"(\w+)=", given):
                assert argument in parameters, f"{method}({argument}=)"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda d: d.random_flip(),
            r"random_flip: .*; for images, use random_horizontal_flip or random_v",
        ),
        (lambda d: d.random_zoom(), r"random_zoom: .*; for images, use random_affine\(0, scale=\(low, high\)\)"),
        (lambda d: d.random_gamma(), r"random_gamma: the samples have no volumes$"),
        (lambda d: d.grid_patches(8), r"grid_patches: the samples have no volumes$"),
    ],
)
def test_operations_on_volumes_refuse_images(
    photos: feedline.Dataset, call: Callable[[feedline.Dataset], Any], message: str
) -> None:
    with pytest.raises(feedline.ConfigError, match=message):
        call(photos)


def test_missing_and_unknown_arguments_name_the_operation_and_its_parameters(photos: feedline.Dataset) -> None:
    parameters = r"its parameters are \(mean, std, inplace=False, \*, fields=None\)"
    with pytest.raises(TypeError, match=rf"^normalize: missing a required argument: 'mean'; {parameters}$"):
        photos.normalize()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"^normalize: got an unexpected keyword argument 'average'; its parameters"):
        photos.normalize([0.5], [0.5], average=0)  # type: ignore[call-arg]
    with pytest.raises(feedline.ConfigError, match=r"^resize: "):
        photos.resize("large")  # type: ignore[arg-type]  # raised by the operation itself


def test_a_type_error_of_a_users_function_is_raised_unchanged(photos: feedline.Dataset) -> None:
    def fails(image: Any) -> Any:
        raise TypeError("of the function")

    with pytest.raises(Exception, match="of the function"):
        photos.resize((8, 8)).map(fails)[0]
