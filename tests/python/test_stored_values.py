# SPDX-License-Identifier: Apache-2.0
"""``decode(dtype=...)``: the values that image files store, unscaled, of any dtype and number of channels."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import made_png
import made_tiff
import numpy as np
import pytest

import feedline
from feedline.errors import ConfigError, DataError

GREY = (np.arange(24 * 32).reshape(24, 32) * 83 % 65536).astype(np.uint16)
COLOUR = np.stack([GREY, GREY[::-1], 65535 - GREY], axis=-1)
DTYPES = ("u1", "i1", "u2", "i2", "u4", "i4", "f2", "f4", "f8")


def opened(folder: Path, *files: bytes, suffix: str = ".png") -> feedline.Dataset:
    """Opens a folder with these files, in this order."""
    (folder / "class").mkdir(parents=True)
    for number, file in enumerate(files):
        (folder / "class" / f"{number:04}{suffix}").write_bytes(file)
    return feedline.open(str(folder))


def deep_png(pixels: np.ndarray, depth: int = 16) -> bytes:
    """Returns a PNG of (height, width, channels) or (height, width) pixels."""
    pixels = pixels if pixels.ndim == 3 else pixels[..., None]
    color = {1: made_png.GREY, 2: made_png.GREY_ALPHA, 3: made_png.RGB, 4: made_png.RGBA}[pixels.shape[2]]
    kind = made_png.Kind(color=color, depth=depth, width=pixels.shape[1], height=pixels.shape[0])
    return made_png.png(kind, pixels.astype(np.int64))


def planes(pixels: np.ndarray) -> np.ndarray:
    """Returns (channels, height, width)."""
    return np.moveaxis(pixels if pixels.ndim == 3 else pixels[..., None], -1, 0)


@pytest.mark.parametrize("interlaced", [False, True])
@pytest.mark.parametrize("color", made_png.DEPTHS)
def test_pngs_of_every_kind(tmp_path: Path, color: int, interlaced: bool) -> None:
    for depth in made_png.DEPTHS[color]:
        chunks = [made_png.palette(1 << depth)] if color == made_png.PALETTE else []
        kind = made_png.Kind(color, depth, 33, 21, interlaced, chunks=chunks)
        samples = made_png.samples_of(kind)
        image = opened(tmp_path / str(depth), made_png.png(kind, samples)).decode(dtype="native")[0][0]
        if color == made_png.PALETTE:
            samples = np.frombuffer(chunks[0][1], np.uint8).reshape(-1, 3)[samples[..., 0]]
        assert image.dtype == (np.uint16 if depth == 16 else np.uint8)
        np.testing.assert_array_equal(image, planes(samples))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("channels", [1, 3, 5])
def test_tiffs_of_every_layout(tmp_path: Path, dtype: str, channels: int) -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(21, 37, channels)).cumsum(axis=1) * 50
    pixels = values.astype(dtype) if dtype[0] == "f" else values.astype(np.int64).astype(dtype)
    layouts = [
        made_tiff.Layout(compression, predictor, planar, tile, big_endian=big, big_tiff=channels == 3)
        for compression in made_tiff.COMPRESSIONS
        for predictor in ((1,) if compression in (made_tiff.NONE, made_tiff.PACK_BITS) else (1, 2, 3))
        for planar in (False, True)
        for tile in (None, (16, 16))
        for big in (False, True)
        if predictor != 3 or dtype[0] == "f"
    ]
    dataset = opened(tmp_path, *[made_tiff.tiff(pixels, layout) for layout in layouts], suffix=".tif")
    stored, cropped = dataset.decode(dtype="native"), dataset.decode(dtype="native").random_crop((9, 30))
    for index, layout in enumerate(layouts):
        image = stored[index][0]
        assert image.dtype == pixels.dtype
        np.testing.assert_array_equal(image, planes(pixels), err_msg=layout.name)
        left, top, width, height = cropped.draw(index)[0][2]
        want = pixels[int(top) : int(top + height), int(left) : int(left + width)]
        np.testing.assert_array_equal(cropped[index][0], planes(want), err_msg=layout.name)


def test_tifffile_reads_the_same(tmp_path: Path) -> None:
    tifffile = pytest.importorskip("tifffile")
    pytest.importorskip("imagecodecs")
    rng = np.random.default_rng(1)
    files, wanted = [], []
    for dtype in ("u1", "u2", "f4"):
        for channels in (1, 3, 7):
            pixels = (rng.normal(size=(100, 130, channels)).cumsum(axis=0) * 20 + 500).clip(0, 60000).astype(dtype)
            for compression in (None, "lzw", "zlib", "zstd", "packbits"):
                for tile in (None, (32, 48)):
                    path = tmp_path / "x.tif"
                    tifffile.imwrite(
                        path,
                        pixels,
                        photometric="rgb" if channels == 3 else "minisblack",
                        planarconfig="contig" if channels > 1 else None,
                        compression=compression,
                        predictor=compression not in (None, "packbits"),
                        tile=tile,
                        rowsperstrip=None if tile else 17,
                    )
                    files.append(path.read_bytes())
                    wanted.append(pixels)
    path.unlink()
    for index, (file, pixels) in enumerate(zip(files, wanted, strict=True)):
        image = opened(tmp_path / str(index), file, suffix=".tif").decode(dtype="native")[0][0]
        assert image.dtype == pixels.dtype
        np.testing.assert_array_equal(image, planes(pixels))


@pytest.mark.parametrize("photometric", ["rgb", "ycbcr", "minisblack"])
def test_jpegs_in_tiffs(tmp_path: Path, photometric: str) -> None:
    tifffile = pytest.importorskip("tifffile")
    pytest.importorskip("imagecodecs")
    y, x = np.mgrid[:100, :130]
    pixels = np.stack([x, y, x // 2 + y // 2], axis=-1).astype(np.uint8)
    if photometric == "minisblack":
        pixels = pixels[..., 0]
    path = tmp_path / "x.tif"
    tifffile.imwrite(path, pixels, photometric=photometric, compression="jpeg", tile=(32, 48))
    image = opened(tmp_path / "data", path.read_bytes(), suffix=".tif").decode(dtype="native")[0][0]
    np.testing.assert_array_equal(image, planes(tifffile.imread(path)))


def test_cv2_reads_the_same(tmp_path: Path) -> None:
    cv2 = pytest.importorskip("cv2")
    for name, pixels in (("grey", GREY), ("colour", COLOUR)):
        path = tmp_path / f"{name}.png"
        assert cv2.imwrite(str(path), pixels)
        image = opened(tmp_path / name, path.read_bytes()).decode(dtype="uint16")[0][0]
        read = cv2.imread(str(path), cv2.IMREAD_UNCHANGED)
        np.testing.assert_array_equal(image, planes(read[..., ::-1] if read.ndim == 3 else read))


def test_dtypes_of_batches(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    dataset = opened(tmp_path, *[deep_png(COLOUR + np.uint16(i)) for i in range(4)])
    batch = next(iter(dataset.decode(dtype="uint16").center_crop((8, 10)).loader(4))).image
    assert batch.dtype == torch.uint16 and batch.shape == (4, 3, 8, 10)
    batch = next(iter(dataset.decode(dtype="float32").center_crop((8, 10)).loader(4))).image
    assert batch.dtype == torch.float32
    want = planes(COLOUR + np.uint16(3)).astype(np.float32)[:, 8:16, 11:21]
    np.testing.assert_array_equal(batch[3].numpy(), want)
    batch = next(iter(dataset.decode(dtype="native").center_crop((8, 10)).loader(4, layout="NHWC"))).image
    assert batch.dtype == torch.uint16 and batch.shape == (4, 8, 10, 3)
    np.testing.assert_array_equal(batch[0].numpy(), COLOUR[8:16, 11:21])


def test_sizes_that_differ_are_lists(tmp_path: Path) -> None:
    dataset = opened(tmp_path, deep_png(GREY), deep_png(GREY[:9])).decode(dtype="uint16")
    with pytest.raises(ConfigError, match="fixed output size"):
        dataset.loader(2)
    rows = next(iter(dataset.collate("list").loader(2, output="numpy"))).image
    assert [row.shape for row in rows] == [(1, 24, 32), (1, 9, 32)]


def test_8_bits_are_unscaled(tmp_path: Path) -> None:
    pixels = (GREY % 251).astype(np.uint8)
    for dtype in ("uint16", "float32"):
        image = opened(tmp_path / dtype, deep_png(pixels, 8)).decode(dtype=dtype)[0][0]
        assert image.dtype == dtype
        np.testing.assert_array_equal(image, planes(pixels))


def test_other_formats_have_8_bits(tmp_path: Path) -> None:
    from PIL import Image

    for suffix, shape in ((".jpg", (24, 32, 3)), (".jpg", (24, 32)), (".webp", (24, 32, 3)), (".bmp", (24, 32, 3))):
        folder = tmp_path / f"{suffix}{len(shape)}"
        (folder / "class").mkdir(parents=True)
        path = folder / "class" / f"a{suffix}"
        Image.fromarray(np.resize((GREY // 256).astype(np.uint8), shape)).save(path)
        image = feedline.open(str(folder)).decode(dtype="native")[0][0]
        np.testing.assert_array_equal(image, planes(np.asarray(Image.open(path))))


def test_deep_pnms_are_refused(tmp_path: Path) -> None:
    file = b"P5\n32 24\n65535\n" + GREY.astype(">u2").tobytes()
    with pytest.raises(DataError, match="PNM image has 16 bits, which dtype= reads only from PNGs and TIFFs"):
        opened(tmp_path, file, suffix=".pgm").decode(dtype="uint16")[0]


def test_files_that_differ_are_named(tmp_path: Path) -> None:
    dataset = opened(tmp_path, deep_png(GREY), deep_png(GREY), deep_png(GREY // 256, 8), deep_png(COLOUR))
    native = dataset.decode(dtype="native").center_crop(8)
    with pytest.raises(DataError, match=r"stored as uint8, but that of the first sample as uint16.*0002\.png"):
        list(native.loader(2))
    with pytest.raises(DataError, match=r"3 channels, but that of the first sample has 1 channel.*0003\.png"):
        list(dataset.decode(dtype="uint16").center_crop(8).loader(1))


def test_numbers_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    dataset = opened(tmp_path, made_tiff.tiff(GREY.astype(np.int16)), suffix=".tif")
    with pytest.raises(DataError, match="stored as int16, which uint16 cannot hold"):
        dataset.decode(dtype="uint16")[0]
    np.testing.assert_array_equal(dataset.decode(dtype="float32")[0][0], planes(GREY.astype(np.int16)))


def test_pages(tmp_path: Path) -> None:
    dataset = opened(tmp_path, made_tiff.tiff([GREY, GREY[:5, :7] + 1, COLOUR[:3]]), suffix=".tif")
    for page, pixels in enumerate((GREY, GREY[:5, :7] + 1, COLOUR[:3])):
        np.testing.assert_array_equal(dataset.decode(dtype="native", page=page)[0][0], planes(pixels))
    with pytest.raises(DataError, match="page 3 of a TIFF that has 3 pages, numbered from 0"):
        dataset.decode(dtype="native", page=3)[0]
    with pytest.raises(ConfigError, match="page= needs dtype="):
        dataset.decode(page=1)
    png = opened(tmp_path / "png", deep_png(GREY)).decode(dtype="native", page=1)
    with pytest.raises(DataError, match="only TIFFs have more than one page"):
        png[0]


@pytest.mark.parametrize("orientation", range(1, 9))
def test_orientation_is_applied_if_requested(tmp_path: Path, orientation: int) -> None:
    turned = {
        1: lambda a: a,
        2: lambda a: a[:, ::-1],
        3: lambda a: a[::-1, ::-1],
        4: lambda a: a[::-1],
        5: lambda a: a.swapaxes(0, 1),
        6: lambda a: a.swapaxes(0, 1)[:, ::-1],
        7: lambda a: a.swapaxes(0, 1)[::-1, ::-1],
        8: lambda a: a.swapaxes(0, 1)[::-1],
    }[orientation]
    for number, pixels in enumerate((GREY, COLOUR)):
        dataset = opened(tmp_path / str(number), made_tiff.tiff(pixels, t274=orientation), suffix=".tif")
        np.testing.assert_array_equal(dataset.decode(dtype="native")[0][0], planes(pixels))
        image = dataset.decode(dtype="native", apply_exif_orientation=True)[0][0]
        np.testing.assert_array_equal(image, planes(turned(pixels)))


def test_nothing_changes_without_dtype(tmp_path: Path) -> None:
    dataset = opened(tmp_path, deep_png(GREY))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert dataset[0][0].dtype == np.uint8
    assert "decode(dtype=" in str(caught[0].message)


def test_no_warning_with_dtype(tmp_path: Path) -> None:
    dataset = opened(tmp_path, deep_png(GREY)).decode(dtype="uint16")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        list(dataset.center_crop(8).loader(1, output="numpy"))
    assert "read as 8 bits" not in dataset.explain() and "stored values as uint16" in dataset.explain()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda d: d.decode(dtype="uint32"), "dtype must be one of 'uint8', 'uint16', 'float32', 'native'"),
        (lambda d: d.decode("L", dtype="uint16"), "dtype= returns the channels of the files; omit the mode L"),
        (lambda d: d.decode(dtype="uint16", fidelity="fast"), "decodes exactly, on the CPU"),
        (lambda d: d.decode(dtype="uint16").cache("memory"), "cache: a cache stores 8-bit pixels"),
        (lambda d: d.decode(dtype="uint16").to_dtype("uint8"), "to_dtype: works on 8-bit pixels only"),
        (lambda d: d.decode(dtype="uint16").views([feedline.chain()] * 2), "views are made from 8-bit pixels"),
        (
            lambda d: d.decode(dtype="uint16").center_crop(8).loader(1, dtype="float32"),
            "stored values are not converted",
        ),
    ],
)
def test_wrong_calls(tmp_path: Path, call: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        call(opened(tmp_path, deep_png(GREY)))


@pytest.mark.parametrize(
    "operation",
    [
        lambda d: d.random_posterize(4),
        lambda d: d.random_equalize(),
        lambda d: d.random_autocontrast(),
        lambda d: d.color_jitter(0.5),
        lambda d: d.grayscale(),
        lambda d: d.random_erasing(),
        lambda d: d.rand_augment(),
        lambda d: d.gaussian_blur(3),
        lambda d: d.elastic_transform(),
        lambda d: d.random_apply(feedline.chain().random_posterize(4)),
    ],
)
def test_operations_on_bytes_are_refused(tmp_path: Path, operation: Any) -> None:
    dataset = opened(tmp_path, deep_png(GREY)).decode(dtype="uint16")
    with pytest.raises(ConfigError, match=r"works on 8-bit pixels only, .*decode\(dtype=\"uint16\"\)"):
        operation(dataset)


def test_a_mask_moves_with_its_image(tmp_path: Path) -> None:
    for folder, pixels in (("images", GREY), ("masks", GREY // 256)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.png").write_bytes(deep_png(pixels, 16 if folder == "images" else 8))
    dataset = feedline.open(str(tmp_path), fields=("images/{key}.png", "masks/{key}.png"))
    sample = dataset.decode(dtype="uint16").random_crop(8).random_horizontal_flip()[0]
    np.testing.assert_array_equal(np.asarray(sample[0])[0] // 256, sample[1])
