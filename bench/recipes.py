# SPDX-License-Identifier: Apache-2.0
"""`tools/bench --recipes`: measures common training pipelines from JPEGs to batches, with Feedline and with the stock
loader.

    python bench/recipes.py PHOTOS [--rounds 3] [--images 640] [--only RECIPE...] [--json FILE] [--environments DIR]

Every pipeline runs in a separate process with two workers, in interleaved rounds, every second one backwards; goals are
medians of ratios within a round. PHOTOS has class folders; `--images` of the photos are used, and boxes are generated
for them. With `--environments`, DALI and TurboLoader run the parts of each recipe that they support, in environments
that are created once (peers/); there are no goals for them, and a missing one is listed with its reason.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
from io import BytesIO
from pathlib import Path
from typing import Any

import measure
import numpy as np
import recipe_peers

sys.path.append(str(Path(__file__).with_name("peers")))
import environments

# Recipe: the minimum ratio to the faster of torchvision's loaders, or None; the description.
RECIPES = {
    "plain": (None, "crop, flip, normalize"),
    "torchvision": (5.0, "TrivialAugmentWide, erasing 0.1, mixup 0.2 or cutmix 1.0"),
    "timm": (5.0, "rand-m9-mstd0.5-inc1, erasing 0.25, mixup 0.8 or cutmix 1.0"),
    "dino": (10.0, "DINOv2: 2 x 224 + 8 x 96, jitter, blur, solarize"),
    "simclr": (10.0, "two views, jitter with hue, blur 23"),
    "detection": (4.0, "short side 640 to 800, flip, distortion, crop by boxes, with boxes"),
}
_LEAST_OF_PLAIN = 0.7  # minimum rate of torchvision's recipe, relative to crop, flip and normalize


def make_subset(photos: Path, count: int, folder: Path) -> Path:
    """Writes `count` of the photos as links in class folders, as files with boxes, and in a tar."""
    paths = sorted(photos.glob("*/*.jpg"))
    picked = [paths[i * len(paths) // count] for i in range(min(count, len(paths)))]
    boxes = folder / "recipe_boxes"
    boxes.mkdir()
    rng = np.random.default_rng(0)
    with (
        tarfile.open(folder / "recipe_boxes.tar", "w", format=tarfile.USTAR_FORMAT) as tar,
        tarfile.open(folder / "recipe_photos.tar", "w", format=tarfile.USTAR_FORMAT) as bare,
    ):
        for number, path in enumerate(picked):
            class_folder = folder / "photos" / path.parent.name
            class_folder.mkdir(parents=True, exist_ok=True)
            os.symlink(path.resolve(), class_folder / path.name)
            corners = np.sort(rng.uniform(0, 375, (int(rng.integers(1, 20)), 2, 2)), axis=1).reshape(-1, 4)
            files = {
                "jpg": path.read_bytes(),
                "boxes.npy": _npy(corners.astype(np.float32)),
                "labels.npy": _npy(rng.integers(0, 80, len(corners))),
            }
            for name, data in files.items():
                (boxes / f"{number:05}.{name}").write_bytes(data)
                _add(tar, f"{number:05}.{name}", data)
            _add(bare, f"{number:05}.jpg", files["jpg"])
    return folder / "photos"


def _add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(data)
    tar.addfile(member, BytesIO(data))


def _npy(values: Any) -> bytes:
    stream = BytesIO()
    np.save(stream, values)
    return stream.getvalue()


def ways_of(recipe: str, peers: dict[str, Path]) -> list[str]:
    """Returns the loaders of a recipe: timm has its own, and boxes use v2."""
    if recipe == "timm":
        ways = ["feedline", "v1"] if importlib.util.find_spec("timm") else ["feedline"]
    else:
        ways = ["feedline", "v2"] if recipe == "detection" else ["feedline", "v1", "v2"]
    return ways + [peer for peer in peers if recipe in recipe_peers.OTHERWISE[peer]]


def peers_in(folder: Path | None) -> tuple[dict[str, Path], dict[str, str]]:
    """Returns the Python of each peer, after creating missing environments, and the reasons for missing peers."""
    if folder is None:
        return {}, {}
    known, found, missing = environments.peers(), {}, {}
    for name in recipe_peers.OTHERWISE:
        try:
            found[name] = environments.ensure(known[name], folder)
        except environments.NotInstalled as error:
            missing[name] = str(error)
    return found, missing


def measured(recipe: str, way: str, photos: Path, peers: dict[str, Path]) -> dict[str, Any]:
    program = "recipe_peers.py" if way in peers else "recipe_loaders.py"
    python = str(peers.get(way, sys.executable))
    command = [python, str(Path(__file__).with_name(program)), recipe, way, str(photos)]
    printed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    found: dict[str, Any] = json.loads(printed.splitlines()[-1])
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("photos", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--images", type=int, default=640)
    parser.add_argument("--only", nargs="*", choices=list(RECIPES), default=list(RECIPES))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--environments", type=Path, help="folder of the peers' environments")
    options = parser.parse_args()
    if importlib.util.find_spec("torchvision") is None:
        print("recipes: skipped, torchvision is not installed")
        return 1
    peers, missing = peers_in(options.environments)
    results: dict[str, dict[str, list[dict[str, Any]]]] = {}
    with tempfile.TemporaryDirectory(dir=options.photos.resolve().parent) as folder:
        photos = make_subset(options.photos, options.images, Path(folder))
        for turn in range(options.rounds):
            tasks = [(recipe, way) for recipe in options.only for way in ways_of(recipe, peers)]
            for recipe, way in tasks if turn % 2 == 0 else reversed(tasks):
                found = measured(recipe, way, photos, peers)
                results.setdefault(recipe, {}).setdefault(way, []).append(found)
    status = 0 if printed(results) else 1
    for peer, reason in missing.items():
        print(f"{peer} is missing: {reason}")
    if options.json:
        record = {"command": "tools/bench --recipes", "rounds": options.rounds, "images": options.images}
        record |= {"missing": missing, "otherwise": recipe_peers.OTHERWISE}
        options.json.write_text(
            json.dumps(record | {"machine": measure.machine(), "results": results}, indent=1) + "\n"
        )
    return status


def rates(results: dict[str, dict[str, list[dict[str, Any]]]], recipe: str, way: str) -> list[float]:
    """Returns the results by round; every second round ran backwards."""
    return [one["images_per_s"] for one in results[recipe][way]]


def printed(results: dict[str, dict[str, list[dict[str, Any]]]]) -> bool:
    """Prints the table; returns True if every goal was measured and met."""
    met = True
    print(f"{'recipe':12} {'way':11} {'images/s':>9} {'CPU s/1000':>11} {'ratio':>7} {'goal':>6}")
    for recipe, ways in results.items():
        own = rates(results, recipe, "feedline")
        stock = {way: statistics.median(rates(results, recipe, way)) for way in ways if way in ("v1", "v2")}
        best = max(stock, key=stock.__getitem__) if stock else None
        for way, rounds in ways.items():
            cpu = statistics.median(one["cpu_s_per_1000_images"] for one in rounds)
            line = f"{recipe:12} {way:11} {statistics.median(rates(results, recipe, way)):9.1f} {cpu:11.2f}"
            if way != "feedline":
                ratio = statistics.median(a / b for a, b in zip(own, rates(results, recipe, way), strict=True))
                goal = RECIPES[recipe][0] if way == best else None
                line += f" {ratio:7.1f}" + (f" {goal:6.1f} {'met' if ratio >= goal else 'MISSED'}" if goal else "")
                met = met and (goal is None or ratio >= goal)
            print(line)
        met = met and (best is not None)
    if {"plain", "torchvision"} <= results.keys():
        pairs = zip(rates(results, "torchvision", "feedline"), rates(results, "plain", "feedline"), strict=True)
        share = statistics.median(a / b for a, b in pairs)
        word = "met" if share >= _LEAST_OF_PLAIN else "MISSED"
        print(f"torchvision's recipe has {share:.2f} of the rate of plain; goal {_LEAST_OF_PLAIN} {word}")
        met = met and share >= _LEAST_OF_PLAIN
    return met


if __name__ == "__main__":
    sys.exit(main())
