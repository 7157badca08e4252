# SPDX-License-Identifier: Apache-2.0
"""Images for which the engine has no decoder are decoded by Pillow in the engine's threads: the same pixels, errors
with the location, and a line in explain().
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import made_arrow
import made_lmdb
import made_parquet
import made_tfrecords
import numpy as np
import photographs
import pytest
from PIL import Image, features

import feedline

# as written by Pillow: mode of the image, name
WRITTEN = [
    ("RGB", "rgb.bmp"), ("L", "grey.bmp"), ("P", "palette.bmp"), ("1", "bits.bmp"),
    ("P", "palette.gif"), ("L", "grey.gif"), ("RGB", "rgb.gif"),
    ("RGB", "rgb.tif"), ("L", "grey.tif"), ("I;16", "deep.tif"), ("CMYK", "cmyk.tiff"),
    ("RGBA", "alpha.tif"), ("1", "bits.tif"),
    ("RGB", "rgb.ppm"), ("L", "grey.pgm"), ("1", "bits.pbm"), ("I;16", "deep.pgm"),
    ("RGB", "rgb.avif"), ("RGBA", "alpha.avif"), ("RGB", "rgb.jp2"),
]  # fmt: skip


def picture(mode: str) -> Image.Image:
    photo = Image.open(photographs.files()[0]).convert("RGB").resize((75, 50))
    if mode == "I;16":
        return Image.fromarray(np.asarray(photo.convert("L"), np.uint16) * 257)
    return photo.convert(mode)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    root = tmp_path_factory.mktemp("foreign")
    made = []
    for mode, name in WRITTEN:
        if name.endswith(".avif") and not features.check("avif"):
            continue
        if name.endswith(".jp2") and not features.check("jpg_2000"):
            continue
        picture(mode).save(root / name)
        made.append(root / name)
    frames = [picture("P").rotate(angle) for angle in (0, 90, 180)]
    frames[0].save(root / "moving.gif", save_all=True, append_images=frames[1:])
    return [*made, root / "moving.gif"]


def test_pixels_are_pillows(files: list[Path]) -> None:
    for file in files:
        data = file.read_bytes()
        for mode in ("RGB", "L"):
            expected = np.asarray(Image.open(file).convert(mode)).reshape(50, 75, -1)
            assert np.array_equal(feedline.decode_image(data, mode=mode), expected), (file.name, mode)
            assert np.array_equal(feedline.decode_image(data, (3, 5, 60, 41), mode=mode), expected[5:41, 3:60])
        assert feedline.image_info(data) == (Image.open(file).format.lower(), 75, 50)


def test_batches_are_those_of_the_same_pictures_as_png(files: list[Path], tmp_path: Path) -> None:
    (tmp_path / "own" / "a").mkdir(parents=True)
    (tmp_path / "png" / "a").mkdir(parents=True)
    for file in files:
        if file.suffix in (".avif", ".gif", ".jp2", ".pbm"):  # which a class folder does not accept
            continue
        name = f"{file.stem}_{file.suffix[1:]}"
        (tmp_path / "own" / "a" / f"{name}{file.suffix}").write_bytes(file.read_bytes())
        Image.open(file).convert("RGB").save(tmp_path / "png" / "a" / f"{name}.png")

    def epochs(root: Path, threads: int) -> list[bytes]:
        dataset = feedline.open(root).random_resized_crop(32).random_horizontal_flip()
        with dataset.loader(4, seed=2, shuffle=True, num_workers=threads, output="numpy") as loader:
            return [field.tobytes() for _ in range(3) for batch in loader for field in batch]

    expected = epochs(tmp_path / "png", 1)
    for threads in (1, 3):
        assert epochs(tmp_path / "own", threads) == expected
    explanation = feedline.open(tmp_path / "own").center_crop(8).loader(4).explain()
    assert "by Pillow" in explanation and " BMP" in explanation and " TIFF" in explanation


def test_damage_is_the_samples_error(files: list[Path], tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    whole = files[0].read_bytes()
    for name, data in (
        ("0.bmp", whole),
        ("1.bmp", whole[:900]),
        ("2.tif", b"II*\0" + bytes(40)),
        ("3.ppm", b"P6 0 0 255\n"),
    ):
        (tmp_path / "a" / name).write_bytes(data)
    dataset = feedline.open(tmp_path).resize((8, 8))
    assert len(dataset) == 4
    for index in (1, 2, 3):
        with pytest.raises(feedline.DataError, match="Pillow: ") as caught:
            dataset[index]
        assert caught.value.record == index and caught.value.stage == "decode"
    with dataset.loader(1, on_error="skip", error_budget=3, output="numpy") as loader:
        assert len(list(loader)) == 1 and len(loader.errors) == 3


PROGRAM = """
import sys, threading
import feedline
dataset = feedline.open(sys.argv[1]).random_resized_crop(16)
loader = dataset.loader(2, shuffle=True, epochs=None, num_workers=2, output="numpy")
batches = iter(loader)
for _ in range(5):
    next(batches)
if sys.argv[2] == "close":
    loader.close()
elif sys.argv[2] == "drop":
    del batches, loader
print("done", flush=True)
"""


@pytest.mark.parametrize("end", ["close", "drop", "exit"])
def test_threads_inside_pillow_hold_no_one_up(
    files: list[Path], tmp_path: Path, environment: dict[str, str], end: str
) -> None:
    (tmp_path / "a").mkdir()
    for number in range(12):
        (tmp_path / "a" / f"{number}.tif").write_bytes(next(f for f in files if f.name == "rgb.tif").read_bytes())
    for _ in range(5):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(tmp_path), end],
            env=environment, capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def test_without_pillow_the_error_reports_what_is_missing(
    files: list[Path], tmp_path: Path, environment: dict[str, str]
) -> None:
    program = (
        "import sys; sys.modules['PIL'] = None\nimport feedline\nfeedline.decode_image(open(sys.argv[1],'rb').read())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(files[0])], env=environment, capture_output=True, text=True, check=False
    )
    assert "DataError" in done.stderr and "pip install pillow" in done.stderr


@pytest.mark.parametrize("kind", ["parquet", "arrow", "tfrecord", "lmdb"])
def test_columns_of_bytes_are_recognised_by_content(files: list[Path], tmp_path: Path, kind: str) -> None:
    """The column's name does not show that it contains images."""
    for file in files:
        if file.suffix in (".ppm", ".pgm", ".pbm"):
            continue  # a signature of two letters, with which other data may begin
        path = tmp_path / f"{file.name}.{kind}"
        row = {"stuff": file.read_bytes(), "n": 3}
        if kind == "parquet":
            path.write_bytes(made_parquet.file_of([row]))
        elif kind == "arrow":
            path.write_bytes(made_arrow.stream([row]))
        elif kind == "tfrecord":
            made_tfrecords.write(path, [made_tfrecords.example(row)])
        else:
            made_lmdb.write(path, {b"0": row["stuff"]})
        dataset = feedline.open(path)
        expected = np.asarray(Image.open(file).convert("RGB")).transpose(2, 0, 1)
        assert np.array_equal(dataset[0][0], expected), file.name


def test_bytes_that_begin_like_a_short_signature_stay_bytes(tmp_path: Path) -> None:
    for text in (b"BM is text", b"P5 is text", b"GIF is text", b"\xff\x0a..."):
        (tmp_path / "x.parquet").write_bytes(made_parquet.file_of([{"stuff": text, "n": 3}]))
        assert feedline.open(tmp_path / "x.parquet", fields=("stuff",))[0].stuff == text
