# SPDX-License-Identifier: Apache-2.0
"""Batches on a GPU, with a simulated CUDA driver: their contents, their timing, and messages if they are impossible."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import made_cuda
import numpy as np
import pytest

import feedline

STREAM_IS_THE_DEFAULT, NO_STREAM = 1, -1
IN_HOST_MEMORY, ON_A_GPU = 1, 2  # DLPack's device types


@pytest.fixture
def numbers() -> feedline.Dataset:
    return feedline.arrays(x=np.arange(240, dtype=np.float32).reshape(40, 6), y=np.arange(40))


def batches(gpu: made_cuda.Gpu, loader: feedline.Loader) -> list[list[Any]]:
    return [[gpu.take(field).content() for field in batch] for batch in loader]


@pytest.mark.parametrize("device", ["cuda", "cuda:1", 1])
def test_batches_are_there_labels_too(gpu: made_cuda.Gpu, numbers: feedline.Dataset, device: Any) -> None:
    index = 0 if device == "cuda" else 1
    with numbers.loader(8, shuffle=True, output="numpy") as loader:
        expected = [[np.array(field) for field in batch] for batch in loader]
    with numbers.loader(8, shuffle=True, device=device, output="dlpack") as loader:
        batch = next(iter(loader))
        assert batch._fields == ("x", "y")
        assert [field.__dlpack_device__() for field in batch] == [(ON_A_GPU, index)] * 2
        assert (batch.x.shape, batch.x.dtype, batch.y.dtype) == ((8, 6), "float32", "int64")
        assert gpu.take(batch.y).device == (ON_A_GPU, index)
        del batch
        loader.set_epoch(0)
        found = batches(gpu, loader)
        loader.set_epoch(1)
        assert len(batches(gpu, loader)) == 5
    for ours, theirs in zip(found, expected, strict=True):
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(one, other)


def test_the_consumers_stream_waits_and_not_the_host(gpu: made_cuda.Gpu, numbers: feedline.Dataset) -> None:
    gpu.hold(True)
    stream = gpu.stream()
    with numbers.loader(8, device="cuda", output="dlpack") as loader:
        for number, batch in enumerate(loader):
            lent = gpu.take(batch.y, stream)
            gpu.expect(stream, lent.address, 8 * number)
            assert gpu.count("waits") == 0
            del lent, batch
        assert gpu.count("pending") > 0
        gpu.finish()
        assert gpu.broken_rules == ""


def test_a_stream_is_as_the_standard_has_it(gpu: made_cuda.Gpu, numbers: feedline.Dataset) -> None:
    with numbers.loader(8, device="cuda", output="dlpack") as loader:
        x = next(iter(loader)).x
        for stream in (None, STREAM_IS_THE_DEFAULT, NO_STREAM):
            assert gpu.take(x, stream).shape == (8, 6)
        for refused in ({"stream": 0}, {"stream": -2}, {"copy": True}, {"dl_device": (IN_HOST_MEMORY, 0)}):
            with pytest.raises(BufferError):
                x.__dlpack__(**refused)
        assert gpu.take(x).device == (ON_A_GPU, 0)
        x.__dlpack__(stream=1, max_version=(1, 0), dl_device=(ON_A_GPU, 0), copy=False)


def test_arrays_in_host_memory_are_lent_too(numbers: feedline.Dataset) -> None:
    with numbers.loader(8, output="dlpack", device="cpu") as loader:
        batch = next(iter(loader))
        np.testing.assert_array_equal(np.from_dlpack(batch.y), np.arange(8))
        assert batch.x.__dlpack_device__() == (IN_HOST_MEMORY, 0)
        with pytest.raises(BufferError):
            batch.x.__dlpack__(stream=1)


def test_batches_are_kept_and_outlive_the_loader(gpu: made_cuda.Gpu, numbers: feedline.Dataset) -> None:
    loader = numbers.loader(8, device="cuda", output="dlpack")
    held = [gpu.take(batch.y) for batch in loader]
    loader.close()
    del loader
    gc.collect()
    assert np.concatenate([lent.content() for lent in held]).tolist() == list(range(40))
    del held


def test_many_epochs_take_no_more_memory(gpu: made_cuda.Gpu, numbers: feedline.Dataset) -> None:
    epochs, counts = 40, []
    with numbers.loader(8, device="cuda", output="dlpack") as loader:
        for _ in range(epochs):
            for batch in loader:
                gpu.take(batch.x)
            counts.append((gpu.count("memory"), gpu.count("pinned")))
        next(iter(loader))  # and the loop breaks out
    # the number of batches in flight depends on the threads; memory that an epoch leaked would be there 20 times
    assert counts[-1][0] <= counts[epochs // 2][0] + 5 and counts[-1][1] == counts[epochs // 2][1]


def test_padded_fields_and_lists_come_as_well(gpu: made_cuda.Gpu) -> None:
    rows = feedline.ragged([[0, 1, 2], [3], [4, 5, 6, 7], [8]], pad_value=-1)
    with feedline.arrays(a=rows, y=np.arange(4)).loader(2, device="cuda", output="dlpack") as loader:
        first = next(iter(loader))
        assert gpu.take(first.a).content().tolist() == [[0, 1, 2], [3, -1, -1]]
        assert gpu.take(first.a_length).content().tolist() == [3, 1]
        assert gpu.take(first.y).content().tolist() == [0, 1]
        del first


STATISTICS = (feedline.IMAGENET_MEAN, feedline.IMAGENET_STD)


def normalised(train: feedline.Dataset) -> feedline.Dataset:
    return train.random_horizontal_flip().normalize(*STATISTICS)


def rounded(values: Any) -> Any:
    """Returns the bits of bfloat16, rounded to nearest even."""
    bits = values.view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def viewed(dataset: feedline.Dataset) -> feedline.Dataset:
    """Two fields; one of them has several views in one array."""
    view = feedline.chain().random_resized_crop(24).normalize(*STATISTICS)
    return dataset.views(whole=view, parts=(view, 3))


CHAINS: dict[str, tuple[Any, dict[str, Any], bool]] = {  # operation, loader options, whether the GPU makes the floats
    "float32": (normalised, {}, True),
    "float16 NHWC": (normalised, {"dtype": "float16", "layout": "NHWC"}, True),
    "views": (lambda train: viewed(train), {}, True),
    "bfloat16": (lambda train: normalised(train).random_vertical_flip(), {"dtype": "bfloat16"}, True),
    "mixed whole": (normalised, {"mixup": 0.4, "cutmix": 1.0}, True),
    "mixed by rows": (normalised, {"mixup": 0.4, "cutmix": 1.0, "mix_mode": "elem", "dtype": "float16"}, True),
    "mixed to half": (normalised, {"mixup": 0.4, "mix_mode": "half", "label_smoothing": 0.1}, True),
    "float32 without normalize": (lambda train: train, {"dtype": "float32"}, True),
    "bytes": (lambda train: train, {}, False),
    "erased values": (lambda train: normalised(train).random_erasing(p=1.0), {}, False),
    "erased pixels": (lambda train: train.random_erasing(p=1.0).normalize(*STATISTICS), {}, True),
}


@pytest.mark.parametrize("chain", CHAINS)
def test_floats_that_the_gpu_makes_are_the_hosts(gpu: made_cuda.Gpu, folder: Path, chain: str) -> None:
    make, options, on_the_gpu = CHAINS[chain]
    dataset = make(feedline.open(folder).resize((40, 40)).cache("memory").random_crop(32))
    options = {"batch_size": 4, "shuffle": True, "seed": 5, "drop_last": "mix_mode" in options, **options}
    as_numbers: dict[str, Any] = {**options, "dtype": "float32"} if options.get("dtype") == "bfloat16" else options
    with dataset.loader(**as_numbers, output="numpy") as loader:
        expected = [[np.array(field) for field in batch] for batch in loader]
    with dataset.loader(**options, output="dlpack", device="cuda") as loader:
        written = [line for line in loader.explain().splitlines() if " write " in line]
        found = batches(gpu, loader)
    assert ("on the device" in written[-1]) == on_the_gpu, written
    assert (gpu.calls("cuLaunchKernel") > 0) == on_the_gpu
    assert len(found) == len(expected) >= 5
    for ours, theirs in zip(found, expected, strict=True):
        for one, other in zip(ours, theirs, strict=True):
            if other.dtype == np.float32 and options.get("dtype") == "bfloat16":
                other = rounded(other)
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)


def test_where_no_kernel_fits_the_cpu_makes_them(gpu: made_cuda.Gpu, folder: Path) -> None:
    dataset = normalised(feedline.open(folder).random_resized_crop(32))
    gpu.fail("cuDeviceGetAttribute", status=999)
    with dataset.loader(4, output="dlpack", device="cuda") as loader:
        gpu.fail(None)
        explanation = loader.explain()
        assert (
            "the CPU makes the images' floats: cuDeviceGetAttribute" in explanation
            and "on the device" not in explanation
        )
        found = batches(gpu, loader)
    with dataset.loader(4, output="numpy") as loader:
        for ours, theirs in zip(found, loader, strict=True):
            np.testing.assert_array_equal(ours[0], theirs[0])


def test_explain_reports_what_is_done_where(gpu: made_cuda.Gpu, numbers: feedline.Dataset) -> None:
    with numbers.loader(8, device="cuda:1", output="dlpack") as loader:
        delivery = next(line for line in loader.explain().splitlines() if line.startswith("delivery"))
    assert "cuda:1 (Fake GPU 1), copied from page-locked memory on a separate stream" in delivery
    with numbers.loader(8, output="numpy") as loader:
        assert "delivery   host memory, in order" in loader.explain()


def test_torch_takes_them_on_its_current_stream(
    gpu: made_cuda.Gpu, numbers: feedline.Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch.utils.dlpack") and sys.modules["torch"]

    def from_dlpack(array: Any) -> made_cuda.Lent:
        assert array.__dlpack_device__() == (ON_A_GPU, 1)
        return gpu.take(array, gpu.stream(1))

    monkeypatch.setattr(torch.version, "cuda", "12.6")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    monkeypatch.setattr(torch.utils.dlpack, "from_dlpack", from_dlpack)
    for device in ("cuda", torch.device("cuda"), torch.device("cuda:1")):
        with numbers.loader(8, device=device) as loader:
            batch = next(iter(loader))
            assert batch.y.content().tolist() == list(range(8))
            del batch


@pytest.mark.parametrize(
    ("device", "output", "words"),
    [
        ("mps", "dlpack", "not 'mps'"),
        ("cuda:x", "dlpack", "must be None"),
        (-1, "dlpack", "must be None"),
        (True, "dlpack", "must be None"),
        (1.5, "dlpack", "must be None"),
        ("cuda", "numpy", "NumPy arrays are in host memory"),
        ("cuda:2", "dlpack", "there is no cuda:2"),
    ],
)
def test_what_cannot_be(gpu: made_cuda.Gpu, numbers: feedline.Dataset, device: Any, output: str, words: str) -> None:
    with pytest.raises(feedline.ConfigError, match=words):
        numbers.loader(8, device=device, output=output)


def test_a_torch_without_cuda(gpu: made_cuda.Gpu, numbers: feedline.Dataset) -> None:
    torch = pytest.importorskip("torch")
    if torch.version.cuda is not None:
        pytest.skip("this torch has CUDA")
    with pytest.raises(feedline.ConfigError, match="is built without CUDA; install a build with CUDA"):
        numbers.loader(8, device="cuda")


def test_no_driver(numbers: feedline.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEEDLINE_CUDA_DRIVER", "/nowhere/libcuda.so.1")
    with pytest.raises(feedline.ConfigError, match=r"no NVIDIA driver is installed.*omit device="):
        numbers.loader(8, device="cuda", output="dlpack")
    with numbers.loader(8, device=None, output="numpy") as loader:
        assert len(list(loader)) == 5


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("cuMemAlloc_v2", "bytes for a batch: cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY"),
        ("cuMemHostAlloc", "page-locked memory"),
    ],
)
def test_memory_that_there_is_not(gpu: made_cuda.Gpu, numbers: feedline.Dataset, call: str, words: str) -> None:
    with numbers.loader(8, device="cuda", output="dlpack") as loader:
        gpu.fail(call)
        with pytest.raises(feedline.StorageError, match=words):
            batches(gpu, loader)
        gpu.fail(None)
        assert len(batches(gpu, loader)) == 5


def test_a_gpu_that_is_lost(gpu: made_cuda.Gpu, numbers: feedline.Dataset) -> None:
    with numbers.loader(8, device="cuda", output="dlpack") as loader:
        batch = next(iter(loader))
        gpu.lose()
        with pytest.raises(feedline.StorageError, match="restart it from its last checkpoint"):
            gpu.take(batch.x)
        with pytest.raises(feedline.StorageError, match="CUDA_ERROR_LAUNCH_FAILED"):
            batches(gpu, loader)
        gpu.mend()
        del batch
    numbers.loader(8, device="cuda", output="dlpack").close()  # checks the remaining memory


def test_a_process_that_was_forked(gpu: made_cuda.Gpu, numbers: feedline.Dataset) -> None:
    numbers.loader(8, device="cuda", output="dlpack").close()
    child = os.fork()
    if child == 0:
        try:
            numbers.loader(8, device="cuda", output="dlpack")
        except feedline.ConfigError as error:
            os._exit(0 if "spawn" in str(error) and gpu.broken_rules == "" else 2)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_exit_with_batches_in_hand(cuda_driver: Path) -> None:
    program = (
        "import feedline, numpy as np\n"
        "loader = feedline.arrays(y=np.arange(40)).loader(8, device='cuda', output='dlpack')\n"
        "held = [(batch, batch.y.__dlpack__(stream=1)) for batch in loader]\n"
        "more = iter(loader); next(more)\n"
    )
    environment = {**os.environ, "FEEDLINE_CUDA_DRIVER": str(cuda_driver)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
