# SPDX-License-Identifier: Apache-2.0
"""Annotations of photos with an EXIF orientation cover the same pixels with and without applying it."""

from __future__ import annotations

import io
import json
import os
import tarfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import feedline

Image = pytest.importorskip("PIL.Image")
ImageOps = pytest.importorskip("PIL.ImageOps")

WIDTH, HEIGHT = 40, 24  # of the photo as displayed
LEFT, TOP, RIGHT, BOTTOM = 4, 6, 14, 18  # of a white rectangle in it, whose first pixel is a keypoint
SWAPS = (5, 6, 7, 8)


def write_photo(path: Path, orientation: int) -> None:
    """Writes a photo whose rectangle is in the right place after its EXIF orientation is applied."""
    shown = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    shown[TOP:BOTTOM, LEFT:RIGHT] = 255
    # the inverse orientation, which restores the photo
    inverse = {6: 8, 8: 6}.get(orientation, orientation)
    exif = Image.Exif()
    exif[0x0112] = inverse
    photo = Image.fromarray(shown)
    photo.info["exif"] = exif.tobytes()
    holder = io.BytesIO()
    photo.save(holder, "PNG", exif=exif)
    stored = ImageOps.exif_transpose(Image.open(io.BytesIO(holder.getvalue())))
    exif[0x0112] = orientation
    path.parent.mkdir(parents=True, exist_ok=True)
    stored.save(path, exif=exif)
    assert np.array_equal(np.asarray(ImageOps.exif_transpose(Image.open(path)).convert("RGB")), shown)


def write_yolo(root: Path, orientation: int, labels: str, more: str = "", name: str = "photo.png") -> str:
    write_photo(root / "images" / name, orientation)
    (root / "labels").mkdir()
    (root / "labels" / "photo.txt").write_text(labels)
    (root / "data.yaml").write_text(f"path: {root}\ntrain: images\nnames: [object]\n{more}")
    return str(root / "data.yaml")


def check(sample: Any, *, kinds: tuple[str, ...]) -> None:
    """Annotations cover exactly the white pixels of the decoded image."""
    white = np.asarray(sample.image)[0] > 127
    rows, columns = np.nonzero(white)
    if "boxes" in kinds:
        expected = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
        np.testing.assert_allclose(sample.boxes, [expected], atol=1e-4)
    if "masks" in kinds:
        np.testing.assert_array_equal(np.asarray(sample.masks)[0] > 0, white)
    if "mask" in kinds:
        np.testing.assert_array_equal(np.asarray(sample.mask) > 0, white)
    if "keypoints" in kinds:
        x, y = np.asarray(sample.keypoints)[0, 0]
        corners = {(columns.min(), rows.min()), (columns.max(), rows.min())}
        corners |= {(columns.min(), rows.max()), (columns.max(), rows.max())}
        assert (round(float(x)), round(float(y))) in corners


def box_line() -> str:
    x, y = (LEFT + RIGHT) / 2 / WIDTH, (TOP + BOTTOM) / 2 / HEIGHT
    return f"0 {x} {y} {(RIGHT - LEFT) / WIDTH} {(BOTTOM - TOP) / HEIGHT}"


def opened(source: str, applies: bool, **options: Any) -> Any:
    return feedline.open(source, **options).decode(apply_exif_orientation=applies)[0]


@pytest.mark.parametrize("applies", [True, False])
@pytest.mark.parametrize("orientation", range(1, 9))
class TestEveryOrientation:
    def test_yolo_boxes_and_keypoints(self, tmp_path: Path, orientation: int, applies: bool) -> None:
        line = f"{box_line()} {LEFT / WIDTH} {TOP / HEIGHT} 2\n"
        source = write_yolo(tmp_path, orientation, line, "kpt_shape: [1, 3]\n")
        sample = opened(source, applies, fields=("image", "boxes", "keypoints"))
        check(sample, kinds=("boxes", "keypoints"))

    def test_yolo_polygons(self, tmp_path: Path, orientation: int, applies: bool) -> None:
        corners = [(LEFT, TOP), (RIGHT, TOP), (RIGHT, BOTTOM), (LEFT, BOTTOM)]
        line = "0 " + " ".join(f"{x / WIDTH} {y / HEIGHT}" for x, y in corners)
        source = write_yolo(tmp_path, orientation, line)
        check(opened(source, applies, fields=("image", "boxes", "masks")), kinds=("boxes", "masks"))

    @pytest.mark.parametrize("name", ["photo.tif", "photo.avif"])
    def test_yolo_images_by_pillow(self, tmp_path: Path, orientation: int, applies: bool, name: str) -> None:
        source = write_yolo_lossy(tmp_path, orientation, name)
        sample = opened(source, applies)
        white = np.asarray(sample.image)[0] > 127
        left, top, right, bottom = (round(float(edge)) for edge in sample.boxes[0])
        assert white[top + 1 : bottom - 1, left + 1 : right - 1].all() and white.sum() <= 1.3 * (RIGHT - LEFT) * (
            BOTTOM - TOP
        )

    @pytest.mark.parametrize("frame", ["shown", "stored"])
    def test_coco(self, tmp_path: Path, orientation: int, applies: bool, frame: str) -> None:
        write_photo(tmp_path / "photo.png", orientation)
        if orientation not in SWAPS and orientation != 1:
            applies = frame == "shown"  # equal sides do not decide: annotations fit the decoded image
        rectangle, size = rectangle_in(tmp_path / "photo.png", frame)
        left, top, right, bottom = rectangle
        image = {"id": 1, "file_name": "photo.png", "width": size[0], "height": size[1]}
        polygon = [left, top, right, top, right, bottom, left, bottom]
        box = [left, top, right - left, bottom - top]
        annotation = {"id": 1, "image_id": 1, "category_id": 1, "bbox": box, "segmentation": [polygon], "iscrowd": 0}
        annotation |= {"keypoints": [left, top, 2], "area": 1}
        whole = {"images": [image], "annotations": [annotation], "categories": [{"id": 1, "name": "x"}]}
        (tmp_path / "coco.json").write_text(json.dumps(whole))
        fields = ("image", "boxes", "masks", "mask", "keypoints")
        sample = opened(str(tmp_path / "coco.json"), applies, fields=fields)
        check(sample, kinds=fields)

    @pytest.mark.parametrize("frame", ["shown", "stored"])
    def test_voc(self, tmp_path: Path, orientation: int, applies: bool, frame: str) -> None:
        root = tmp_path / "VOC2012"
        write_photo(root / "JPEGImages" / "photo.png", orientation)
        if orientation not in SWAPS and orientation != 1:
            applies = frame == "shown"
        rectangle, (width, height) = rectangle_in(root / "JPEGImages" / "photo.png", frame)
        left, top, right, bottom = rectangle
        (root / "Annotations").mkdir()
        (root / "Annotations" / "photo.xml").write_text(
            f"<annotation><size><width>{width}</width><height>{height}</height></size><object><name>x</name><bndbox>"
            f"<xmin>{left}</xmin><ymin>{top}</ymin><xmax>{right}</xmax><ymax>{bottom}</ymax></bndbox></object></annotation>"
        )
        labels = np.zeros((height, width), np.uint8)
        labels[top:bottom, left:right] = 1
        (root / "SegmentationClass").mkdir()
        Image.fromarray(labels).save(root / "SegmentationClass" / "photo.png")
        sample = opened(str(root), applies, fields=("image", "boxes", "mask"))
        check(sample, kinds=("boxes", "mask"))

    def test_batches_and_later_operations_agree(self, tmp_path: Path, orientation: int, applies: bool) -> None:
        source = write_yolo(tmp_path, orientation, box_line())
        dataset = feedline.open(source).decode(apply_exif_orientation=applies).resize((48, 48))
        batch = next(iter(dataset.loader(1, output="numpy")))
        white = batch.image[0][0] > 127
        rows, columns = np.nonzero(white)
        edges = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
        np.testing.assert_allclose(batch.boxes[0][0], edges, atol=1.01)


def write_yolo_lossy(root: Path, orientation: int, name: str) -> str:
    source = write_yolo(root, orientation, box_line())
    stored = Image.open(root / "images" / "photo.png")
    exif = Image.Exif()
    exif[0x0112] = orientation
    try:
        stored.convert("RGB").save(root / "images" / name, exif=exif)
    except (KeyError, ValueError, OSError) as error:
        pytest.skip(f"Pillow does not write {name}: {error}")
    os.remove(root / "images" / "photo.png")
    return source


def rectangle_in(photo: Path, frame: str) -> tuple[list[int], tuple[int, int]]:
    """Returns the white rectangle's edges, and the size, of the stored or the rotated photo."""
    image = Image.open(photo)
    pixels = np.asarray((ImageOps.exif_transpose(image) if frame == "shown" else image).convert("L")) > 127
    rows, columns = np.nonzero(pixels)
    edges = [int(columns.min()), int(rows.min()), int(columns.max()) + 1, int(rows.max()) + 1]
    return edges, (pixels.shape[1], pixels.shape[0])


def test_without_the_image_boxes_are_as_annotated(tmp_path: Path) -> None:
    source = write_yolo(tmp_path, 6, box_line())
    sample = feedline.open(source, fields=("boxes",))[0]
    np.testing.assert_allclose(sample[0], [[LEFT, TOP, RIGHT, BOTTOM]], atol=1e-4)


def test_packed_boxes_fit_the_stored_image(tmp_path: Path) -> None:
    source = write_yolo(tmp_path / "yolo", 6, box_line())
    dataset = feedline.open(source)
    _, _, files = dataset._engine.files(0)
    members = {os.fsdecode(name): data for name, data in files}
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        for name, data in members.items():
            member = tarfile.TarInfo(f"0.{name}")
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    packed = feedline.open(str(tmp_path / "a.tar"), fields=("png", "boxes.npy:boxes"))[0]
    check(SimpleNamespace(image=packed[0], boxes=packed[1]), kinds=("boxes",))


def test_inspect_counts_turned_photos(tmp_path: Path) -> None:
    from feedline.data.inspect import stored_images

    source = write_yolo_lossy(tmp_path, 6, "photo.avif")
    seen = stored_images.look(source, None, None)
    assert seen is not None and seen.orientations == {6: 1}
