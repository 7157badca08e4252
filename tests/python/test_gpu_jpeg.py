# SPDX-License-Identifier: Apache-2.0
"""``decode(device="cuda")``: JPEGs that a GPU decodes, with a simulated CUDA driver and nvJPEG, compared with the
host's batches. The simulation decodes with libjpeg-turbo, so its pixels equal the host's; those of a GPU differ
slightly.
"""

from __future__ import annotations

import ctypes
import io
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import made_cuda
import made_data
import numpy as np
import pytest
from PIL import Image
from test_device_cache import CHAINS, STATISTICS, assert_same, cropped, on_gpu, on_host

import feedline
from feedline.machine import nvjpeg

ON_GPU: dict[str, Any] = {"output": "dlpack", "device": "cuda"}


def decoded_there(source: Path) -> feedline.Dataset:
    return feedline.open(source).decode(device="cuda")


def decoded_counts(loader: feedline.Loader) -> tuple[int, int]:
    """Returns how many images nvJPEG has decoded, and how many rows the CPU has made."""
    found = re.search(r"by nvJPEG 12\.4\.0: (\d+) images so far; the CPU decoded (\d+)", loader.explain())
    assert found, loader.explain()
    return int(found[1]), int(found[2])


@pytest.mark.parametrize("chain", CHAINS)
def test_batches_are_the_hosts(gpu: made_cuda.Gpu, folder: Path, chain: str) -> None:
    chained, more = CHAINS[chain]
    options = {"batch_size": 4, "shuffle": True, "seed": 5, **more}
    dataset = chained(decoded_there(folder))
    with dataset.loader(**options, **ON_GPU) as loader:
        found = on_gpu(gpu, loader)
        decoded, brought = decoded_counts(loader)
    assert_same(found, on_host(chained(feedline.open(folder).decode()), options))
    assert decoded >= 2 * (len(dataset) // 4 * 4) and brought == 0


def kinds() -> dict[str, bytes]:
    """Images that are not passed to nvJPEG, and how each is stored."""
    pixels = made_data.photo(3, 60, 50)
    grey, image = pixels.mean(axis=2).astype(np.uint8), Image.fromarray(pixels)
    cmyk, turned = io.BytesIO(), io.BytesIO()
    image.convert("CMYK").save(cmyk, "JPEG")
    exif = Image.Exif()
    exif[0x0112] = 6
    image.save(turned, "JPEG", exif=exif)
    rgb = made_data.encoded(pixels, keep_rgb=True)  # its colours are not YCbCr
    return {
        "a.jpg": made_data.encoded(pixels, progressive=True),
        "b.jpg": made_data.encoded(grey),
        "c.jpg": cmyk.getvalue(),
        "d.jpg": turned.getvalue(),
        "e.jpg": rgb,
        "f.png": made_data.encoded(pixels, "PNG"),
        "g.webp": made_data.encoded(pixels, "WEBP"),
        "h.jpg": made_data.encoded(made_data.photo(4, 900, 40)),  # more weights than fit in a row
        "i.jpg": made_data.encoded(pixels),
    }


def test_the_cpu_makes_the_rows_of_what_it_does_not_decode(gpu: made_cuda.Gpu, tmp_path: Path) -> None:
    (tmp_path / "class").mkdir()
    for name, data in kinds().items():
        (tmp_path / "class" / name).write_bytes(data)

    def chained(dataset: feedline.Dataset) -> feedline.Dataset:
        return dataset.resize((20, 20)).random_horizontal_flip().normalize(*STATISTICS)

    asked = 0
    for turns in (True, False):
        dataset = chained(feedline.open(tmp_path).decode(device="cuda", apply_exif_orientation=turns))
        with dataset.loader(4, epochs=1, **ON_GPU) as loader:
            found = on_gpu(gpu, loader, 1)
            assert decoded_counts(loader) == ((1, 8) if turns else (2, 7))
            asked += decoded_counts(loader)[0]
            assert gpu.calls("nvjpegJpegStreamParse") == asked, "nvJPEG is not asked for the others"
        plain = chained(feedline.open(tmp_path).decode(apply_exif_orientation=turns))
        assert_same(found, on_host(plain, {"batch_size": 4}, 1))


@pytest.mark.parametrize("on_error", ["skip", "replace"])
def test_damaged_images_are_bad_samples_as_ever(
    gpu: made_cuda.Gpu, folder: Path, tmp_path: Path, on_error: str
) -> None:
    photos = shutil.copytree(folder, tmp_path / "photos")
    files = sorted(photos.glob("*/*.jpg"))
    for number in (5, 11):
        files[number].write_bytes(files[number].read_bytes()[: 300 if number == 5 else -400])
    options = {"batch_size": 4, "on_error": on_error, "shuffle": True, "num_workers": 2}
    plain = cropped(feedline.open(photos).decode())
    with cropped(decoded_there(photos)).loader(**options, **ON_GPU) as loader:
        found = on_gpu(gpu, loader, 1)
        errors = [(bad.key, bad.message) for bad in loader.errors]
    assert gpu.calls("nvjpegJpegStreamParse") == gpu.calls("nvjpegDecodeJpegDevice"), "nor for what is cut off"
    assert_same(found, on_host(plain, options, 1))
    with plain.loader(**options, output="numpy") as loader:
        for _ in loader:
            pass
        assert sorted(errors) == sorted((bad.key, bad.message) for bad in loader.errors)
    assert len(errors) == 2


def test_resumes_anywhere_on_every_rank_and_gpu(gpu: made_cuda.Gpu, folder: Path) -> None:
    options = {"batch_size": 3, "shuffle": True, "world_size": 2, **ON_GPU}
    for rank in range(2):
        options |= {"rank": rank, "device": f"cuda:{rank}"}
        with cropped(decoded_there(folder)).loader(**options) as loader:
            whole = on_gpu(gpu, loader, 1)
        with cropped(decoded_there(folder)).loader(**options) as loader:
            next(iter(loader))
            state = loader.state_dict()
        with cropped(decoded_there(folder)).loader(**options) as loader:
            loader.load_state_dict(state)
            assert_same(on_gpu(gpu, loader, 1), whole[1:])
    words = r'saved with decode\(device="cuda"\).*decode\(fidelity="exact"'
    with (
        cropped(feedline.open(folder)).loader(3, shuffle=True, world_size=2, rank=1, output="numpy") as loader,
        pytest.raises(feedline.ConfigError, match=words),
    ):
        loader.load_state_dict(state)


def test_streams_in_any_order_give_the_pixels(gpu: made_cuda.Gpu, folder: Path) -> None:
    expected = on_host(feedline.open(folder).decode().random_crop(32), {"batch_size": 4}, 1)
    gpu.hold(True)
    with decoded_there(folder).random_crop(32).loader(4, **ON_GPU) as loader:
        held = list(loader)
        step = 0
        while gpu.driver.fake_cuda_step(ctypes.c_uint64((1 << 64) - 1 - step)):  # the last stream first
            step += 1
        assert_same([[gpu.take(field).content() for field in batch] for batch in held], expected)
        gpu.hold(False)
        del held


def test_a_loop_that_breaks_off_leaves_nothing(gpu: made_cuda.Gpu, folder: Path) -> None:
    with cropped(decoded_there(folder)).loader(2, shuffle=True, **ON_GPU) as loader:
        for _ in range(3):
            next(iter(loader))


def test_a_gpu_that_fails_is_no_bad_sample(gpu: made_cuda.Gpu, folder: Path) -> None:
    with cropped(decoded_there(folder)).loader(4, on_error="replace", **ON_GPU) as loader:
        gpu.fail("nvjpegDecodeJpegDevice", 3, 6)
        with pytest.raises(feedline.StorageError, match="nvjpegDecodeJpegDevice: NVJPEG_STATUS_EXECUTION_FAILED"):
            on_gpu(gpu, loader)
        gpu.fail(None)


def test_samples_without_a_loader_are_the_cpus(folder: Path) -> None:
    dataset, plain = cropped(decoded_there(folder)), cropped(feedline.open(folder).decode())
    np.testing.assert_array_equal(dataset[3][0], plain[3][0])
    assert dataset.draw(3) == plain.draw(3)
    assert "decode(RGB, device=cuda)" in repr(dataset)


REFUSED: dict[str, Callable[[feedline.Dataset], Any]] = {
    'mode "L"': lambda d: d.decode("L", device="cuda"),
    "so fields= is not supported": lambda d: d.decode(device="cuda", fields="image"),
    "device must be one of 'cuda', not 'cpu'": lambda d: d.decode(device="cpu"),
    'pass it or device="cuda", not both': lambda d: d.decode(fidelity="fast", device="cuda"),
    "a cache stores pixels that the CPU decodes": lambda d: d.decode(device="cuda").cache("device"),
    "random_solarize after it is not supported on a GPU": lambda d: d.decode(device="cuda").random_solarize(128),
    "functions of map need fields on the host": lambda d: (
        d.decode(device="cuda").random_crop(8).map(lambda image: image, fields="image").loader(4)
    ),
    'pass loader() device="cuda"': lambda d: d.decode(device="cuda").random_crop(32).loader(4),
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_does_not_go_is_named(folder: Path, words: str) -> None:
    with pytest.raises(feedline.ConfigError, match=re.escape(words)):
        REFUSED[words](feedline.open(folder))


def test_without_the_library_its_package_is_named(
    gpu: made_cuda.Gpu, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FEEDLINE_NVJPEG", "/nowhere/libnvjpeg.so.12")
    with pytest.raises(feedline.ConfigError, match=r"pip install nvidia-nvjpeg-cu12; or omit device= in decode"):
        decoded_there(folder).random_crop(32).loader(4, **ON_GPU)


@pytest.mark.skipif(not nvjpeg.packaged(), reason="no nvidia-nvjpeg package is here")
def test_the_real_library_has_every_call_and_knows_its_version() -> None:
    """It can be loaded without a GPU: the declared functions exist under these names."""
    header = Path(__file__).parents[2] / "src" / "device" / "cuda" / "nvjpeg_calls.h"
    names = re.findall(r'"(nvjpeg\w+)"', header.read_text())
    assert len(names) == len(set(names)) == 25
    nvjpeg.load_packaged()
    for file in nvjpeg.packaged():
        library = ctypes.CDLL(file.name)  # only by its name, as the engine opens it
        assert [name for name in names if not hasattr(library, name)] == []
        version = ctypes.c_int(-1)
        assert library.nvjpegGetProperty(0, ctypes.byref(version)) == 0
        assert f".so.{version.value}" in file.name
        handle = ctypes.c_void_p()  # without a driver, it returns an error status and does not end the process
        assert library.nvjpegCreateEx(1, None, None, 0, ctypes.byref(handle)) in (0, 1, 6)
