# SPDX-License-Identifier: Apache-2.0
"""Methods of Dataset and the arguments that the engine declares for its operations agree."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import feedline
from feedline import _engine
from feedline.data.ops.operation_arguments import arguments_of, engine_values

# Operations on volumes that methods with other names append: random_crop, center_crop, grid_patches and others.
VOLUME_FORMS = {"random_patch", "center_patch", "grid_patch", "random_affine_3d", "standardize"}
TYPES = {one["name"]: one for one in _engine.operation_types() if one["name"] not in VOLUME_FORMS}
# Arguments of methods that are converted to others; torchvision's antialias and inplace have no effect.
IN_PYTHON_ONLY = {"antialias", "inplace", "device", "shear", "field", "patches", "foreground"}
IN_PYTHON_OF = {"random_affine": {"p"}, "apply": {"arguments"}}  # for volumes; the arguments of a plugin
IN_ENGINE_ONLY = {"apply": {"names", "values"}, "random_affine": {"shear_x", "shear_y"}, "random_erasing": {"noise"}}
# The method replaces the default, which is None or a number.
REPLACED = {
    ("boxes", "clamping_mode"),
    ("random_choice", "p"),
    ("random_erasing", "value"),
    ("random_iou_crop", "sampler_options"),
    ("frames", "frames"),
    ("random_flip", "axes"),
    ("random_rotate90", "axes"),
    ("frames", "times"),
    ("sanitize_bounding_boxes", "labels"),
    ("speed_perturbation", "factors"),
    ("timm_augment", "translate_pct"),
    ("timm_random_erasing", "max_aspect"),
    ("timm_random_erasing", "max_count"),
}


def parameters(name: str) -> dict[str, inspect.Parameter]:
    found = dict(inspect.signature(getattr(feedline.Dataset, name)).parameters)
    left_out = {"self", "fields"} | IN_PYTHON_ONLY | IN_PYTHON_OF.get(name, set())
    return {key: value for key, value in found.items() if key not in left_out}


@pytest.mark.parametrize("name", TYPES)
def test_methods_have_the_declared_arguments(name: str) -> None:
    declared = set(arguments_of(name)) - IN_ENGINE_ONLY.get(name, set())
    assert set(parameters(name)) == declared


@pytest.mark.parametrize("name", TYPES)
def test_defaults_are_those_of_the_engine(name: str) -> None:
    for key, parameter in parameters(name).items():
        if parameter.default is parameter.empty or (name, key) in REPLACED:
            continue
        made = engine_values(name, {key: parameter.default})[key]
        declared = arguments_of(name)[key].default
        assert made == (tuple(declared) if isinstance(declared, list) else declared), key


@pytest.fixture(scope="module")
def empty() -> Any:
    return feedline.chain()._engine


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("trim_edges", {}, 'there is no operation "trim_edges"'),
        ("trim_border", {"border": 1}, "trim_border: there is no argument 'border'"),
        ("trim_border", {"border_size": object}, "trim_border: border_size: an argument cannot be <class 'object'>"),
        ("trim_border", {"border_size": 2**70}, "trim_border: border_size"),
        ("trim_border", {"border_size": "1"}, "trim_border: border_size: a value of kind 'integer' is needed"),
        ("center_crop", {"size": [1]}, "center_crop: size: a value of kind 'size' is needed"),
        ("pad_to", {"size": (8, 8), "position": "left"}, 'pad_to: position must be one of "center", "top_left"'),
        ("random_apply", {"chain": []}, "random_apply: chain: a value of kind 'chain' is needed"),
    ],
)
def test_the_engine_refuses_other_arguments(empty: Any, name: str, values: dict[str, Any], message: str) -> None:
    with pytest.raises(feedline.ConfigError) as raised:
        empty.with_operation(name, [], values)
    assert str(raised.value).startswith(message)


def test_the_engine_takes_values_of_declared_kinds(empty: Any) -> None:
    made = empty.with_operation("resize", [], {"size": (8, 8), "max_size": None, "interpolation": "box"})
    assert made.operations() == ["resize((8, 8), interpolation=box)"]


def test_two_sizes_that_are_not_a_pair(tmp_path: Path) -> None:
    Image.new("RGB", (40, 30)).save(tmp_path / "a.png")
    images = feedline.files([tmp_path / "a.png"])
    with pytest.raises(feedline.ConfigError, match=r"pass two sizes as one pair: resize\(\(height, 32\)\)"):
        images.resize(32, 32)
    with pytest.raises(feedline.ConfigError, match=r"not 'bogus'$"):
        images.resize(32, "bogus")
