# SPDX-License-Identifier: Apache-2.0
"""Every row of the table of image formats works by extension in folders and tars, and by content in columns."""

from __future__ import annotations

import io
from pathlib import Path

import made_data
import made_parquet
import numpy as np
import photographs
import pytest
from PIL import Image, features

import feedline
from feedline.data import image_formats
from feedline.data.image_formats import FORMATS
from feedline.pack import mds_columns, transcoders

FEATURES = {"webp": "webp", "avif": "avif", "jpeg2000": "jpg_2000"}  # that Pillow may lack
ROWS = [(one, extension) for one in FORMATS for extension in one.extensions]


def encoded(one: image_formats.ImageFormat, extension: str) -> bytes:
    """Returns an image of the format, as written by Pillow; skips the test if Pillow cannot write it."""
    Image.init()
    name = one.name.upper()
    if name not in Image.SAVE or not features.check(FEATURES.get(one.name, "zlib")):
        pytest.skip(f"Pillow does not write {one.title}")
    photo = Image.open(photographs.files()[0]).convert("RGB").resize((40, 30))
    modes = {"gif": "P", "pgm": "L", "pbm": "1", "pfm": "F"}
    stream = io.BytesIO()
    photo.convert(modes.get(extension, "RGB")).save(stream, name)
    return stream.getvalue()


def pillows(data: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB")).transpose(2, 0, 1)


@pytest.mark.parametrize(("one", "extension"), ROWS, ids=[extension for _, extension in ROWS])
def test_every_extension_is_an_image(one: image_formats.ImageFormat, extension: str, tmp_path: Path) -> None:
    data = encoded(one, extension)
    assert feedline.image_info(data) == (one.name, 40, 30)
    assert image_formats.of(data) is one

    (tmp_path / "folder" / "a").mkdir(parents=True)
    (tmp_path / "folder" / "a" / "0.png").write_bytes(made_data.encoded(made_data.photo(0, 8, 8), "PNG"))
    (tmp_path / "folder" / "a" / f"1.{extension.upper()}").write_bytes(data)
    folder = feedline.open(tmp_path / "folder")
    assert len(folder) == 1 + (extension in one.image_folder_extensions)
    if extension in one.image_folder_extensions:
        assert np.array_equal(folder[1][0], pillows(data))
    pattern = feedline.open(tmp_path / "folder", fields=(f"a/{{key}}.{extension.upper()}",))
    assert np.array_equal(pattern[0][0], pillows(data))

    tar = made_data.write_tar(tmp_path / "x.tar", [(f"0.{extension}", data), ("0.cls", b"3")])
    assert np.array_equal(feedline.open(tar, fields=(extension,))[0][0], pillows(data))
    if one.is_native:
        assert np.array_equal(feedline.open(tar)[0][0], pillows(data))
    else:
        with pytest.raises(feedline.ConfigError, match="no sample has the field 'image'"):
            feedline.open(tar)

    if one.name != "ppm":  # a signature of two letters, with which other data may begin
        (tmp_path / "x.parquet").write_bytes(made_parquet.file_of([{"stuff": data, "n": 3}]))
        assert np.array_equal(feedline.open(tmp_path / "x.parquet")[0][0], pillows(data))


@pytest.mark.parametrize(("one", "extension"), ROWS, ids=[extension for _, extension in ROWS])
def test_every_extension_is_packed_as_an_image(one: image_formats.ImageFormat, extension: str) -> None:
    columns = mds_columns.Columns.of_sample(None, [(extension, b"\x89PNG\r\n\x1a\n")], False)
    assert columns.encodings == {"image": "png"}
    assert transcoders.is_image(f"seg.{extension.upper()}") == one.is_native


def test_the_extensions_of_class_folders_are_torchvisions() -> None:
    folder = pytest.importorskip("torchvision.datasets.folder")
    assert sorted(f".{name}" for name in image_formats.IMAGE_FOLDER_EXTENSIONS) == sorted(folder.IMG_EXTENSIONS)


def test_an_image_without_its_plugin_names_it() -> None:
    heic = b"\0\0\0\x18ftypheic" + bytes(100)
    with pytest.raises(feedline.DataError, match=r"HEIC/HEIF image: .*requires the registered plugin pillow-heif"):
        feedline.decode_image(heic)
    with pytest.raises(feedline.DataError, match=r"GIF image: Pillow: [^;]*$"):
        feedline.decode_image(b"GIF89a")


def test_images_that_pillow_decodes_have_the_name_of_their_format() -> None:
    data = made_data.encoded(made_data.photo(0, 8, 8), "BMP")
    assert feedline._engine.image_traits(data)[0] == "bmp"
