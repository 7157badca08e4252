# SPDX-License-Identifier: Apache-2.0
"""Edge cases of valid calls: Pillow images, tensors with replaced data, bfloat16, slices, extreme alphas."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import feedline

READ = """
import sys, feedline
loader = feedline.open(sys.argv[1]).resize((8, 8)).loader(2, output="numpy")
print(sum(len(batch.label) for batch in loader), flush=True)
"""


@pytest.mark.parametrize("kind", ["bmp", "tiff"])
def test_a_script_that_reads_images_of_pillow_ends(kind: str, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    for k in range(12):
        Image.new("RGB", (12, 10), (20 * k, 0, 0)).save(tmp_path / "a" / f"{k}.{kind}")
    done = subprocess.run([sys.executable, "-c", READ, str(tmp_path)], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "12\n"), done.stderr


@pytest.mark.parametrize(
    "change",
    [
        "x.data = x.data.half()",
        "x.data = torch.empty(0)",
        "x.data = torch.full((1000,), 2.0)",
        "x.set_(torch.empty(5))",
        "module.half()",
    ],
)
def test_rows_of_a_tensor_that_was_given_other_data_are_the_first_ones(change: str) -> None:
    torch = pytest.importorskip("torch")
    module = torch.nn.Linear(1000, 1, bias=False)
    x = module.weight = torch.nn.Parameter(torch.ones(1000), requires_grad=False)
    loader = feedline.arrays(x=x).loader(100, output="numpy")
    exec(change, {"x": x, "torch": torch, "module": module})
    others = [torch.full((1000,), 7.0) for _ in range(3)]
    assert sum(float(batch.x.sum()) for batch in loader) == 1000
    del others


def test_a_tensor_whose_memory_has_moved_is_named() -> None:
    torch = pytest.importorskip("torch")
    x = torch.arange(10.0)
    dataset = feedline.arrays(x=x)
    loader = dataset.loader(5, output="numpy")
    x.share_memory_()
    for read in (lambda: list(loader), lambda: dataset[0], lambda: list(dataset.subset([1]).loader(1))):
        with pytest.raises(feedline.ConfigError, match="the tensor 'x' was moved to other memory"):
            read()


def test_rows_of_bfloat16_as_numpy_are_float32() -> None:
    torch = pytest.importorskip("torch")
    x = torch.arange(12).reshape(6, 2).to(torch.bfloat16) / 3
    dataset = feedline.arrays(x=x, id=torch.arange(6))
    wanted = x.float().numpy()
    batches = [batch.x for batch in dataset.loader(4, output="numpy")]
    assert all(batch.dtype == np.float32 for batch in batches)
    assert np.array_equal(np.concatenate(batches), wanted)
    assert np.array_equal(dataset[3].x, wanted[3])
    mapped = dataset.map(lambda rows: rows * 2, "x").loader(6, output="numpy")
    assert np.array_equal(next(iter(mapped)).x, 2 * wanted)
    assert torch.equal(torch.cat([batch.x for batch in dataset.loader(4)]), x)


def test_slices_are_parts() -> None:
    dataset = feedline.arrays(x=np.arange(10))
    assert [row.x for row in dataset[2:8:3]] == [2, 5]
    assert [row.x for row in dataset[-2:]] == [8, 9]


@pytest.mark.parametrize("alpha", [1e300, 1e-300, float("nan"), -1.0])
@pytest.mark.parametrize("name", ["mixup", "cutmix"])
def test_an_alpha_that_cannot_be_drawn_is_refused(name: str, alpha: float) -> None:
    images = feedline.arrays(
        image=np.zeros((4, 8, 8, 3), np.uint8), label=np.arange(4), fields="image:image"
    ).center_crop(8)
    with pytest.raises(feedline.ConfigError, match=f"{name} (is the alpha of Beta|must be a finite number)"):
        images.loader(2, num_classes=4, dtype="float32", **{name: alpha})


def test_an_alpha_at_the_bound_is_drawn() -> None:
    images = feedline.arrays(
        image=np.zeros((4, 8, 8, 3), np.uint8), label=np.arange(4), fields="image:image"
    ).center_crop(8)
    for alpha in (1e-9, 1e9):
        for name in ("mixup", "cutmix"):
            batch = next(iter(images.loader(4, num_classes=4, output="numpy", dtype="float32", **{name: alpha})))
            assert np.allclose(batch.label.sum(1), 1)
