# SPDX-License-Identifier: Apache-2.0
"""Batches on a real GPU, with torch: their contents, their timing, and the release of their memory.

test_gpu.py tests the same with a simulated CUDA driver, which detects every broken rule; here, the loader is used with
a real driver and torch's own streams, graphs and kernels.
"""

from __future__ import annotations

import gc
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import made_data
import numpy as np
import pytest

import feedline

torch = pytest.importorskip("torch", reason="torch, which takes the batches, is not installed")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU"),
]
ROWS, WIDTH, BATCH = 256, 100_000, 16  # 6.4 MB per batch, so that premature overwriting is visible
LONG = 20_000_000  # cycles: about 10 ms


@pytest.fixture(scope="module")
def wide() -> feedline.Dataset:
    values = np.repeat(np.arange(ROWS, dtype=np.float32)[:, None], WIDTH, axis=1)
    return feedline.arrays(x=values, y=np.arange(ROWS))


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_data.make_uneven_folder(tmp_path_factory.mktemp("photos"), 48)


def augmented(folder: Path) -> feedline.Dataset:
    cropped = feedline.open(folder).random_resized_crop(96).random_horizontal_flip()
    return cropped.normalize(feedline.IMAGENET_MEAN, feedline.IMAGENET_STD)


def equal(ours: Any, theirs: Any) -> bool:
    return bool(ours.dtype == theirs.dtype and ours.shape == theirs.shape and torch.equal(ours.cpu(), theirs))


MIXES: dict[str, dict[str, Any]] = {
    "apart": {},
    "whole": {"mixup": 0.4, "cutmix": 1.0},
    "rows": {"mixup": 0.4, "cutmix": 1.0, "mix_mode": "elem"},
}


@pytest.mark.parametrize("mixed", MIXES)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "uint8"])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_photos_are_the_hosts(photos: Path, dtype: str, layout: str, mixed: str) -> None:
    dataset = augmented(photos)
    if dtype == "uint8":
        if mixed != "apart":
            pytest.skip("bytes are not mixed")
        dataset = feedline.open(photos).random_resized_crop(96)
    options: dict[str, Any] = {"batch_size": 8, "shuffle": True, "seed": 3, "dtype": dtype, "layout": layout}
    options |= MIXES[mixed]
    if dtype == "bfloat16" and mixed != "apart":
        pytest.skip("bfloat16 is mixed on the GPU alone")
    with dataset.loader(**options) as loader:
        expected = [tuple(field.clone() for field in batch) for batch in loader]
    with dataset.loader(**options, device="cuda") as loader:
        assert ("on the device" in loader.explain()) == (dtype != "uint8")
        found = list(loader)
    assert len(found) == len(expected) == 6
    for ours, theirs in zip(found, expected, strict=True):
        assert all(field.is_cuda for field in ours)
        assert all(equal(one, other) for one, other in zip(ours, theirs, strict=True))


def test_many_epochs_in_any_stream_with_slow_kernels(wide: feedline.Dataset) -> None:
    sums = []
    stream = torch.cuda.Stream()
    with wide.loader(BATCH, shuffle=True, device="cuda") as loader:
        for epoch in range(6):
            for batch in loader:
                if epoch % 2:
                    with torch.cuda.stream(stream):
                        stream.wait_stream(torch.cuda.default_stream())
                        torch.cuda._sleep(LONG // 10)
                        sums.append((batch.x.double().sum(1) - batch.y * WIDTH).abs().max())
                else:
                    torch.cuda._sleep(LONG // 10)
                    sums.append((batch.x.double().sum(1) - batch.y * WIDTH).abs().max())
                del batch  # while its kernels have not begun
            if epoch % 3 == 2:
                loader.set_epoch(epoch + 10)
    assert len(sums) == 6 * ROWS // BATCH
    assert float(torch.stack(sums).max().cpu()) == 0.0


def test_batches_are_kept_and_outlive_the_loader(wide: feedline.Dataset) -> None:
    loader = wide.loader(BATCH, device="cuda")
    held = list(loader)
    views = [batch.x[1] for batch in held]
    loader.close()
    del loader
    gc.collect()
    for number, batch in enumerate(held):
        assert batch.y.tolist() == list(range(number * BATCH, (number + 1) * BATCH))
        assert bool((batch.x == batch.y[:, None]).all())
    del held, batch
    gc.collect()
    assert [float(view.mean()) for view in views] == [number * BATCH + 1.0 for number in range(len(views))]


def test_loops_that_break_out(wide: feedline.Dataset) -> None:
    with wide.loader(BATCH, device="cuda") as loader:
        for turn in range(20):
            for number, batch in enumerate(loader):
                assert int(batch.y[0]) == number * BATCH
                if number == turn % 5:
                    break


def test_a_graph_is_captured_while_batches_arrive(wide: feedline.Dataset) -> None:
    static = torch.zeros(BATCH, WIDTH, device="cuda")
    with wide.loader(BATCH, device="cuda") as loader:
        batches = iter(loader)
        first = next(batches)
        static.copy_(first.x)
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            static.mul(2)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            doubled = static * 2
            del first  # released while a graph is captured
        for number, batch in enumerate(batches, 1):
            static.copy_(batch.x)
            graph.replay()
            assert doubled[:, 0].tolist() == [2.0 * value for value in range(number * BATCH, (number + 1) * BATCH)]


def test_a_batch_is_taken_inside_a_capture(wide: feedline.Dataset) -> None:
    with wide.loader(BATCH, device="cuda") as loader:
        batches = iter(loader)
        next(batches)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            batch = next(batches)
            total = batch.x.sum(1)
        graph.replay()
        assert torch.allclose(total, batch.y * float(WIDTH))


def test_a_thousand_epochs_take_no_more_memory() -> None:
    numbers = feedline.arrays(x=np.arange(3200, dtype=np.float32).reshape(32, 100), y=np.arange(32))
    free, resident = [], []
    with numbers.loader(8, shuffle=True, device="cuda") as loader:
        for epoch in range(1000):
            for _ in loader:
                pass
            if epoch in (100, 999):
                torch.cuda.synchronize()
                free.append(torch.cuda.mem_get_info()[0])
                resident.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    assert free[1] >= free[0] - (2 << 20)
    assert resident[1] <= resident[0] + 8 * 1024


def test_other_libraries_take_them(wide: feedline.Dataset) -> None:
    cupy = pytest.importorskip("cupy")
    with wide.loader(BATCH, device="cuda", output="dlpack") as loader:
        for number, batch in enumerate(loader):
            x, y = cupy.from_dlpack(batch.x), cupy.from_dlpack(batch.y)
            assert int(y[0]) == number * BATCH and bool((x == y[:, None]).all())


def test_the_drop_in_brings_lowered_batches_there(photos: Path) -> None:
    dataset = augmented(photos)
    for workers in (0, 2):
        options: dict[str, Any] = {"batch_size": 8, "shuffle": True, "seed": 3, "num_workers": workers}
        expected = list(feedline.DataLoader(dataset, **options))
        for extra in ({}, {"pin_memory": True}):
            loader = feedline.DataLoader(dataset, device="cuda", **options, **extra)
            for _ in range(2):
                found = list(loader)
                loader.set_epoch(0)
                assert all(field.is_cuda for batch in found for field in batch)
                assert len(found) == len(expected)
            for ours, theirs in zip(found, expected, strict=True):
                assert all(equal(one, other) for one, other in zip(ours, theirs, strict=True))


def test_the_drop_in_mends_bad_files_there(photos: Path, tmp_path: Path) -> None:
    datasets = pytest.importorskip("torchvision.datasets")
    transforms = pytest.importorskip("torchvision.transforms")
    image = pytest.importorskip("PIL.Image")
    (tmp_path / "a").mkdir()
    for number in range(8):
        picture = image.new("RGB", (64, 48), (number * 20, 9, 200))
        picture.save(tmp_path / "a" / f"{number}.jpg", "PPM" if number == 3 else "JPEG")  # only Pillow reads it
    recipe = transforms.Compose([transforms.CenterCrop(32), transforms.ToTensor()])
    folder = datasets.ImageFolder(str(tmp_path), recipe)
    (expected,) = list(feedline.DataLoader(folder, batch_size=8))
    (found,) = list(feedline.DataLoader(folder, batch_size=8, device="cuda"))
    assert found[0].is_cuda and found[1].is_cuda
    assert all(equal(one, other) for one, other in zip(found, expected, strict=True))


def test_lists_and_padded_fields() -> None:
    rows = feedline.ragged([[0, 1, 2], [3], [4, 5, 6, 7], [8]], pad_value=-1)
    with feedline.arrays(a=rows, y=np.arange(4)).loader(2, device="cuda") as loader:
        first, second = loader
    assert first.a.tolist() == [[0, 1, 2], [3, -1, -1]] and first.a.is_cuda
    assert second.a.tolist() == [[4, 5, 6, 7], [8, -1, -1, -1]] and second.a_length.tolist() == [4, 1]


def test_what_cannot_be(wide: feedline.Dataset) -> None:
    there = torch.cuda.device_count()
    with pytest.raises(feedline.ConfigError, match=f"cuda:{there} does not exist"):
        wide.loader(8, device=f"cuda:{there}")


def test_a_gpu_that_is_full(wide: feedline.Dataset) -> None:
    with wide.loader(8, device="cuda", num_workers=1) as loader:
        held = list(loader)
        filler = torch.empty(torch.cuda.mem_get_info()[0] - (64 << 20), dtype=torch.uint8, device="cuda")
        with pytest.raises(feedline.StorageError, match="CUDA_ERROR_OUT_OF_MEMORY"):
            held += [batch for _ in range(40) for batch in loader]
        del filler, held
        torch.cuda.empty_cache()
        assert len(list(loader)) == ROWS // 8


ENDS = {
    "batches in hand": "held = [batch for batch in loader]\nmore = iter(loader); next(more)\n",
    "in the middle": "next(iter(loader))\n",
    "an error": "for batch in loader: raise SystemExit(0)\n",
    "a thread": "import threading\nthread = threading.Thread(target=lambda: list(loader)); thread.start()\n",
}


@pytest.mark.parametrize("how", ENDS)
def test_processes_end(how: str) -> None:
    program = (
        "import feedline, torch, numpy as np\n"
        "data = feedline.arrays(x=np.zeros((64, 10000), np.float32), y=np.arange(64))\n"
        "loader = data.loader(8, device='cuda', num_workers=2)\n" + ENDS[how]
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_process_that_was_forked(wide: feedline.Dataset) -> None:
    wide.loader(8, device="cuda").close()
    child = os.fork()
    if child == 0:
        try:
            wide.loader(8, device="cuda", output="dlpack")
        except feedline.ConfigError as error:
            os._exit(0 if "spawn" in str(error) else 2)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_no_gpu_is_visible() -> None:
    program = (
        "import feedline, numpy as np\n"
        "data = feedline.arrays(y=np.arange(8))\n"
        "try: data.loader(8, device='cuda', output='dlpack')\n"
        "except feedline.ConfigError as error: print(error)\n"
        "print(len(list(data.loader(8, output='numpy'))))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "CUDA_VISIBLE_DEVICES" in done.stdout and done.stdout.endswith("1\n")
