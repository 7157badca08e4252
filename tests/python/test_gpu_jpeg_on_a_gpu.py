# SPDX-License-Identifier: Apache-2.0
"""``decode(device="cuda")`` with nvJPEG on a real GPU; test_gpu_jpeg.py tests the same with simulations, pixel for
pixel.
"""

from __future__ import annotations

import re
from pathlib import Path

import made_data
import pytest

import feedline
from feedline.machine import nvjpeg

torch = pytest.importorskip("torch", reason="torch, which takes the batches, is not installed")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU"),
    pytest.mark.skipif(not nvjpeg.packaged(), reason="no nvidia-nvjpeg package is here"),
]


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_data.make_uneven_folder(tmp_path_factory.mktemp("photos"), 96)


def test_pixels_are_nearly_the_cpus(photos: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Limits that hold for another decoder of the same coefficients, but not for a wrong colour, position or size."""

    def batches(dataset: feedline.Dataset, device: str | None) -> list[torch.Tensor]:
        with (
            dataset.random_crop(96).random_horizontal_flip().loader(16, shuffle=True, epochs=2, device=device) as loader
        ):
            images = [batch[0].cpu().clone() for batch in loader]
            reported = re.search(r"by nvJPEG \S+: (\d+) images so far; the CPU decoded (\d+)", loader.explain())
            assert (reported is not None) == (device is not None) and (
                reported is None or reported.groups() == ("192", "0")
            )
            return images

    expected = torch.cat(batches(feedline.open(photos).decode(), None)).float()
    found = torch.cat(batches(feedline.open(photos).decode(device="cuda"), "cuda")).float()
    apart = (found - expected).abs()
    psnr = 10 * torch.log10(255**2 / (apart**2).mean(dim=(1, 2, 3)).clamp_min(1e-9))
    with capsys.disabled():
        print(f"nvJPEG: differences mean {apart.mean():.3f}, most {apart.max():.0f}")
        print(f"nvJPEG: PSNR mean {psnr.mean():.1f}, worst {psnr.min():.1f}")
    assert apart.mean() < 1.5 and psnr.min() > 36


def test_the_same_run_gives_the_same_pixels_and_memory_goes_round(photos: Path) -> None:
    dataset = feedline.open(photos).decode(device="cuda").random_resized_crop(96)
    epochs: list[torch.Tensor] = []
    free: list[int] = []
    for _ in range(5):
        with dataset.loader(16, shuffle=True, device="cuda", num_workers=3) as loader:
            epochs.append(torch.cat([batch[0].clone() for batch in loader]))
        torch.cuda.synchronize()
        free.append(torch.cuda.mem_get_info()[0])
    assert all(torch.equal(epochs[0], other) for other in epochs[1:])
    assert free[-1] >= free[1] - (128 << 20)


def test_a_damaged_photo_is_a_bad_sample(photos: Path, tmp_path: Path) -> None:
    root = tmp_path / "photos" / "class"
    root.mkdir(parents=True)
    for i, file in enumerate(sorted(photos.rglob("*.jpg"))[:12]):
        data = file.read_bytes()
        (root / f"{i:02}.jpg").write_bytes(data[: len(data) // 2] if i == 5 else data)
    dataset = feedline.open(root.parent).decode(device="cuda").random_crop(96)
    with dataset.loader(4, on_error="replace", device="cuda") as loader:
        assert sum(len(batch[0]) for batch in loader) == 12
        assert {bad.key for bad in loader.errors} == {dataset.key(5)}
