# SPDX-License-Identifier: Apache-2.0
"""The pipelines of examples/recipes run, and produce the inputs of their methods."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

import feedline
from feedline import presets

RECIPES = Path(__file__).parents[2] / "examples" / "recipes"
SHAPES = {
    "simclr": ["image_0: float32 (4, 3, 224, 224)", "image_1: float32 (4, 3, 224, 224)"],
    "byol": ["online: float32 (4, 3, 224, 224)", "target: float32 (4, 3, 224, 224)"],
    "moco": ["query: float32 (4, 3, 224, 224)", "key: float32 (4, 3, 224, 224)"],
    "dino": [
        "global_a: float32 (4, 3, 224, 224)", "global_b: float32 (4, 3, 224, 224)", "local: float32 (4, 8, 3, 96, 96)",
    ],
}  # fmt: skip


def test_every_recipe_is_here():
    if not RECIPES.is_dir():
        pytest.skip("examples/recipes is not beside the tests")
    assert {path.stem for path in RECIPES.glob("*.py")} == {*SHAPES, "shown", "train_resnet18"}


@pytest.mark.parametrize("recipe", SHAPES)
def test_a_recipe_gives_its_views(folder: Path, recipe: str):
    if not RECIPES.is_dir():
        pytest.skip("examples/recipes is not beside the tests")
    command = [sys.executable, str(RECIPES / f"{recipe}.py"), str(folder)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout.splitlines()
    assert printed[: len(SHAPES[recipe]) + 1] == [*SHAPES[recipe], "label: int64 (4,)"]
    views = {line.split(":")[0] for line in printed if ": random_resized_crop crop" in line}
    fields = [line.split(":")[0] for line in SHAPES[recipe]]
    assert views == {name for name in fields if name != "local"} | {
        f"local[{i}]" for i in range(8) if "local" in fields
    }
    assert any("views of an image from one read" in line for line in printed)


def test_a_network_is_trained_both_ways(folder: Path, tmp_path: Path):
    pytest.importorskip("torchvision", reason="torchvision, the stock way, is not installed")
    command = [sys.executable, str(RECIPES / "train_resnet18.py"), str(folder), "--seeds", "2", "--steps", "2"]
    report = tmp_path / "runs.json"
    small = ["--side", "32", "--shorter", "40", "--batch-size", "4", "--num-workers", "1", "--json", str(report)]
    printed = subprocess.run([*command, *small], capture_output=True, text=True, check=True, timeout=300).stdout
    runs, compared = printed.splitlines()[:4], printed.splitlines()[4:]
    assert [line.split(":")[0] for line in runs] == [
        f"seed {i}, {way}" for i in (0, 1) for way in ("stock", "Feedline")
    ]
    accuracies = [float(line.split("accuracy ")[1].split(",")[0]) for line in runs]
    means = {
        line.split()[1]: float(line.split()[2]) for line in compared if line.startswith("accuracy") and "±" in line
    }
    for way, found in (("stock", accuracies[::2]), ("Feedline", accuracies[1::2])):
        assert means[way] == pytest.approx(sum(found) / 2, abs=0.0011)
    first, last = (b - a for a, b in zip(accuracies[::2], accuracies[1::2], strict=True))
    (apart,) = (line for line in compared if line.startswith("accuracy  of Feedline minus that of stock: "))
    low, high = (float(number) for number in apart.split("95 % of ")[1].split(" to "))
    assert (low + high) / 2 == pytest.approx((first + last) / 2, abs=0.0021)
    # Student's t for two degrees of freedom
    assert (high - low) / 2 == pytest.approx(12.706 * abs(first - last) / 2, rel=0.05, abs=0.015)
    assert json.loads(report.read_text())["compared"] == compared


def test_the_examples_that_are_presets_as_well_are_the_same(folder: Path, monkeypatch: pytest.MonkeyPatch):
    if not RECIPES.is_dir():
        pytest.skip("examples/recipes is not beside the tests")
    monkeypatch.syspath_prepend(str(RECIPES))
    for name in ("simclr", "dino"):
        example = importlib.import_module(name).train(feedline.open(folder))
        assert example.operations == getattr(presets, name)(folder).dataset.operations, name


def test_the_page_has_what_explain_reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """And the page has a picture of each recipe: a section without its explanation or picture fails here."""
    tool, page = RECIPES.parents[1] / "tools" / "recipe_pictures.py", RECIPES.parents[1] / "docs" / "recipes.md"
    if not tool.is_file() or not page.is_file():
        pytest.skip("the tool and its page are not beside the tests")
    pytest.importorskip("skimage", reason="scikit-image, whose photos it takes, is not installed")
    monkeypatch.syspath_prepend(str(tool.parent))
    pictures = importlib.import_module("recipe_pictures")
    found = pictures.recipes(pictures.made_folder(tmp_path), pictures.made_tar(tmp_path / "boxes.tar"))
    explanations = {name: pictures.explained(found[name][0]) for name in pictures.EXPLAINED}
    text = page.read_text()
    assert text == pictures.with_explanations(text, explanations), "run tools/recipe_pictures.py"
    assert all(len(explanation.splitlines()) > 3 for explanation in explanations.values())
    assert all(f"pictures/recipe-{name}.jpg" in text for name in found)
