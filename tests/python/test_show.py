# SPDX-License-Identifier: Apache-2.0
"""Dataset.show(): samples as they are drawn, with epochs side by side, and with their targets."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from made_data import write_tar
from PIL import Image

import feedline
from feedline.data.inspect import contact_sheet

CELL = 160


def npy(values: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, values)
    return stream.getvalue()


def png(pixels: np.ndarray) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "PNG")
    return stream.getvalue()


@pytest.fixture
def scene(tmp_path: Path) -> feedline.Dataset:
    """A grey image of 160 x 160 with a mask on its left quarter, a box and a point."""
    mask = np.zeros((CELL, CELL), np.uint8)
    mask[:, :40] = 2
    members = [
        ("a.png", png(np.full((CELL, CELL, 3), 100, np.uint8))),
        ("a.mask.png", png(mask)),
        ("a.boxes.npy", npy(np.array([[60, 20, 50, 30]], np.float32))),
        ("a.points.npy", npy(np.array([[140, 140]], np.float32))),
        ("a.labels.npy", npy(np.array([3]))),
    ]
    write_tar(tmp_path / "scene.tar", members)
    fields = ["png", "mask.png", "boxes.npy:boxes", "points.npy:keypoints", "labels.npy"]
    return feedline.open(tmp_path / "scene.tar", fields=fields).boxes("boxes.npy", "XYWH")


def test_normalisation_is_undone_and_epochs_are_side_by_side(folder: Path, tmp_path: Path) -> None:
    plain = feedline.open(folder).resize((CELL, CELL))
    normalized = plain.normalize(feedline.IMAGENET_MEAN, feedline.IMAGENET_STD).normalize([0.5] * 3, [0.2] * 3)
    sheet = normalized.show(1, 2, path=tmp_path / "sheet.png")
    pixels = np.asarray(sheet.image)
    for left in (6, 6 + CELL + 2):
        np.testing.assert_array_equal(
            pixels[6 : 6 + CELL, left : left + CELL], plain.sample(0)[0].transpose(1, 2, 0), f"at {left}"
        )
    np.testing.assert_array_equal(np.asarray(Image.open(tmp_path / "sheet.png")), pixels)
    assert Image.open(io.BytesIO(sheet._repr_png_())).size == sheet.image.size
    assert "sheet.png" in repr(sheet) and sheet.damaged == []


def test_epochs_are_those_that_a_loader_draws(folder: Path) -> None:
    dataset = feedline.open(folder).random_resized_crop(CELL)
    pixels = np.asarray(contact_sheet.sheet_of(dataset, 1, 3, 7).image)
    for epoch in range(3):
        left = 6 + epoch * (CELL + 2)
        drawn = dataset.sample(0, seed=7, epoch=epoch)[0].transpose(1, 2, 0)
        np.testing.assert_array_equal(pixels[6 : 6 + CELL, left : left + CELL], drawn)


def test_masks_boxes_and_points_are_drawn_where_they_are(scene: feedline.Dataset) -> None:
    pixels = np.asarray(contact_sheet.sheet_of(scene, 1, 1, 0).image)[6 : 6 + CELL, 6 : 6 + CELL].astype(int)
    flipped = scene.random_horizontal_flip(1.0)
    mirrored = np.asarray(contact_sheet.sheet_of(flipped, 1, 1, 0).image)[6 : 6 + CELL, 6 : 6 + CELL].astype(int)
    grey, mask, box, point = (
        (100, 100, 100),
        contact_sheet._COLOURS[1],
        contact_sheet._COLOURS[3],
        contact_sheet._COLOURS[0],
    )
    over = np.rint(np.array(grey) * 0.55 + np.array(mask) * 0.45)
    for shot, turned in ((pixels, False), (mirrored, True)):
        x = (lambda at: CELL - 1 - at) if turned else (lambda at: at)
        np.testing.assert_allclose(shot[80, x(20)], over, atol=1)
        assert tuple(shot[100, x(100)]) == grey
        assert tuple(shot[45, x(110 if not turned else 109)]) == box, "its right edge"
        assert tuple(shot[50, x(85)]) == box, "its lower edge"
        assert tuple(shot[140, x(140 if not turned else 139)]) == point


def test_every_view_is_a_picture(folder: Path) -> None:
    crop = feedline.chain().random_resized_crop(32)
    sheet = contact_sheet.sheet_of(feedline.open(folder).views(a=crop, local=(crop, 3)), 2, 1, 0)
    assert sheet.image.width == 6 + 2 * (4 * (CELL + 2) + 6)


def test_a_damaged_sample_is_red_and_named(tmp_path: Path) -> None:
    (tmp_path / "set" / "a").mkdir(parents=True)
    (tmp_path / "set" / "a" / "x.jpg").write_bytes(b"no image")
    sheet = contact_sheet.sheet_of(feedline.open(tmp_path / "set"), 1, 1, 0)
    assert len(sheet.damaged) == 1 and "a/x.jpg" in sheet.damaged[0]
    assert sheet.image.getpixel((80, 80)) == contact_sheet._DAMAGED


def test_without_a_path_it_is_written_next_to_it(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    sheet = feedline.open(folder).show(2, 1)
    assert sheet.path == Path("feedline-show.png") and (tmp_path / "feedline-show.png").is_file()
    with pytest.raises(feedline.ConfigError, match="epochs"):
        feedline.open(folder).show(2, 0)
    with pytest.raises(feedline.ConfigError, match="no image"):
        feedline.arrays(x=np.zeros((3, 2))).show()
    with pytest.raises(feedline.ConfigError, match=r"sheet\.words.* does not have an image file's extension"):
        feedline.open(folder).show(2, 1, path=tmp_path / "sheet.words")
    assert not (tmp_path / "sheet.words").exists()


def test_a_text_is_below_its_image(tmp_path: Path) -> None:
    image = png(np.zeros((CELL, CELL, 3), np.uint8))
    for name, text in (("none", None), ("one", "a caption"), ("two", "a caption\nand more")):
        members = [("a.png", image)] + ([("a.txt", text.encode())] if text else [])
        write_tar(tmp_path / f"{name}.tar", members)
    captions = {
        name: np.asarray(
            contact_sheet.sheet_of(feedline.open(tmp_path / f"{name}.tar", fields=["png", *text]), 1, 1, 0).image
        )[6 + CELL :, 6:]
        for name, text in (("none", []), ("one", ["txt"]), ("two", ["txt"]))
    }
    assert (captions["none"] == contact_sheet._BACKGROUND).all() and (captions["one"] > 200).any()
    np.testing.assert_array_equal(captions["one"], captions["two"])
