# SPDX-License-Identifier: Apache-2.0
"""COCO, Pascal VOC and YOLO."""

import json
from pathlib import Path
from typing import Any

import made_annotations

import feedline
from messages.expressions import functions
from messages.samples import Samples


def _read(source: object, **options: Any) -> None:
    dataset = feedline.open(source, **options)  # type: ignore[arg-type]
    for index in range(len(dataset)):
        dataset[index]


# ---- COCO ----


def _coco(**lists: Any) -> Path:
    return made_annotations.change(made_annotations.coco(Path("here/coco"), count=2), **lists)


def _with_annotation(**values: Any) -> Path:
    one = made_annotations.coco_annotation(999, 1000, made_annotations.objects(1)[0])
    return _coco(add_annotations=[{**one, **values}])


def _coco_json_that_is_truncated(s: Samples) -> None:
    path = _coco()
    path.write_text(path.read_text()[:200])
    _read(path)


def _coco_json_without_images(s: Samples) -> None:
    _read(_coco(images=[]))


def _coco_json_without_a_list_of_images(s: Samples) -> None:
    _read(s.write("annotations.json", json.dumps({"annotations": [], "categories": []})), format="coco")


def _a_coco_image_without_an_id(s: Samples) -> None:
    _read(_coco(add_images=[{"file_name": "x.jpg"}]))


def _a_coco_image_without_a_name(s: Samples) -> None:
    _read(_coco(add_images=[{"id": 5}]))


def _a_coco_image_outside_the_folder(s: Samples) -> None:
    _read(_coco(add_images=[{"id": 5, "file_name": "../../x.jpg"}]))


def _a_coco_image_twice(s: Samples) -> None:
    _read(_coco(add_images=[{"id": 1000, "file_name": "x.jpg"}]))


def _a_coco_category_twice(s: Samples) -> None:
    _read(_coco(add_categories=[{"id": made_annotations.IDS[0], "name": "again"}]))


def _a_coco_image_that_is_missing(s: Samples) -> None:
    path = _coco()
    for image in path.parent.parent.glob("train2017/*.jpg"):
        image.unlink()
    _read(path)


def _a_coco_box_of_three_numbers(s: Samples) -> None:
    _read(_with_annotation(bbox=[1, 2, 3]), fields=("image", "boxes"))


def _a_coco_box_of_text(s: Samples) -> None:
    _read(_with_annotation(bbox=["a", 1, 2, 3]), fields=("image", "boxes"))


def _a_coco_category_that_is_unknown(s: Samples) -> None:
    _read(_with_annotation(category_id=12345), fields=("image", "labels"))


def _a_coco_category_that_is_text(s: Samples) -> None:
    _read(_with_annotation(category_id="cat"), fields=("image", "labels"))


def _a_coco_annotation_without_an_image(s: Samples) -> None:
    _read(_with_annotation(image_id=None), fields=("image", "boxes"))


def _a_coco_outline_of_two_points(s: Samples) -> None:
    _read(_with_annotation(segmentation=[[1, 2, 3, 4]]), fields=("image", "masks"))


def _a_coco_outline_of_text(s: Samples) -> None:
    _read(_with_annotation(segmentation="outline"), fields=("image", "masks"))


def _a_coco_outline_of_runs_of_another_size(s: Samples) -> None:
    _read(_with_annotation(segmentation={"counts": [4], "size": [2, 2]}), fields=("image", "masks"))


def _coco_fields_that_are_unknown(s: Samples) -> None:
    _read(_coco(), fields=("image", "depth"))


def _coco_fields_twice(s: Samples) -> None:
    _read(_coco(), fields=("image", "image"))


def _coco_captions_of_objects(s: Samples) -> None:
    _read(_coco(), fields=("image", "captions"))


def _coco_keypoints_of_objects(s: Samples) -> None:
    _read(_coco(), fields=("image", "keypoints"))


def _coco_with_a_split(s: Samples) -> None:
    _read(_coco(), split="train")


def _coco_with_missing(s: Samples) -> None:
    _read(_coco(), missing="skip")


def _coco_with_a_file_of_images(s: Samples) -> None:
    _read(_coco(), images=s.write("images", "text"))


def _coco_with_a_folder_of_images_that_is_missing(s: Samples) -> None:
    _read(_coco(), images="no/such/folder")


def _a_coco_mask_of_an_image_without_a_size(s: Samples) -> None:
    path = _coco()
    whole = json.loads(path.read_text())
    for image in whole["images"]:
        del image["width"]
    path.write_text(json.dumps(whole))
    _read(path, fields=("image", "masks"))


# ---- VOC ----


def _voc() -> Path:
    return made_annotations.voc(Path("here/voc"), count=4)


def _annotation_of_voc(text: str) -> Path:
    root = _voc()
    (root / "Annotations/2008_000000.xml").write_text(text)
    return root


def _a_voc_split_that_is_missing(s: Samples) -> None:
    _read(_voc(), split="test")


def _a_voc_split_that_is_a_path(s: Samples) -> None:
    _read(_voc(), split="../train")


def _voc_with_images(s: Samples) -> None:
    _read(_voc(), images="data")


def _voc_with_crowd(s: Samples) -> None:
    _read(_voc(), crowd="keep")


def _voc_with_missing(s: Samples) -> None:
    _read(_voc(), missing="skip")


def _a_voc_list_that_is_empty(s: Samples) -> None:
    root = _voc()
    (root / "ImageSets/Main/train.txt").write_text("")
    _read(root)


def _a_voc_list_with_more_words(s: Samples) -> None:
    root = _voc()
    (root / "ImageSets/Main/train.txt").write_text("2008_000000 extra words\n")
    _read(root)


def _a_voc_image_that_is_missing(s: Samples) -> None:
    root = _voc()
    (root / "JPEGImages/2008_000000.jpg").unlink()
    _read(root)


def _a_voc_annotation_that_is_missing(s: Samples) -> None:
    root = _voc()
    (root / "Annotations/2008_000000.xml").unlink()
    _read(root, fields=("image", "boxes"))


def _a_voc_annotation_that_is_empty(s: Samples) -> None:
    _read(_annotation_of_voc(""), fields=("image", "boxes"))


def _a_voc_annotation_that_is_damaged(s: Samples) -> None:
    _read(_annotation_of_voc("<annotation><object>"), fields=("image", "boxes"))


def _a_voc_corner_that_is_text(s: Samples) -> None:
    xml = made_annotations.voc_xml(made_annotations.objects(1)).replace("<xmin>", "<xmin>a", 1)
    _read(_annotation_of_voc(xml), fields=("image", "boxes"))


def _a_voc_object_without_a_name(s: Samples) -> None:
    xml = made_annotations.voc_xml([("", (1, 2, 3, 4))])
    _read(_annotation_of_voc(xml), fields=("image", "labels"))


def _a_voc_object_of_an_unknown_class(s: Samples) -> None:
    xml = made_annotations.voc_xml([("unicorn", (1, 2, 3, 4))])
    _read(_annotation_of_voc(xml), fields=("image", "labels"))


def _a_voc_flag_that_is_text(s: Samples) -> None:
    xml = made_annotations.voc_xml(made_annotations.objects(1)).replace("<difficult>0", "<difficult>no", 1)
    _read(_annotation_of_voc(xml), fields=("image", "difficult"))


def _voc_fields_that_are_unknown(s: Samples) -> None:
    _read(_voc(), fields=("image", "depth"))


# ---- YOLO ----


def _yolo(yaml: str = "") -> Path:
    path = made_annotations.yolo(Path("here/yolo"), count=2)
    if yaml:
        path.write_text(yaml)
    return path


def _labels_of_yolo(text: str) -> Path:
    path = _yolo()
    (path.parent / "labels/train/000000.txt").write_text(text)
    return path


def _a_yolo_file_that_is_damaged(s: Samples) -> None:
    _read(_yolo("train: [images/train\nnames: [a]\n"))


def _a_yolo_file_without_the_split(s: Samples) -> None:
    _read(_yolo(), split="test")


def _a_yolo_split_that_is_missing(s: Samples) -> None:
    _read(_yolo("path: .\ntrain: images/none\nnames: [ant, bee, cow]\n"))


def _a_yolo_split_of_a_number(s: Samples) -> None:
    _read(_yolo("path: .\ntrain: {a: {b: c}}\nnames: [ant, bee, cow]\n"))


def _yolo_names_with_a_gap(s: Samples) -> None:
    _read(_yolo("path: .\ntrain: images/train\nnames:\n  0: ant\n  2: cow\n"))


def _yolo_names_of_another_number(s: Samples) -> None:
    _read(_yolo("path: .\ntrain: images/train\nnc: 5\nnames: [ant, bee, cow]\n"))


def _yolo_keypoints_without_a_shape(s: Samples) -> None:
    _read(_yolo(), fields=("image", "keypoints"))


def _yolo_with_images(s: Samples) -> None:
    _read(_yolo(), images="data")


def _yolo_with_crowd(s: Samples) -> None:
    _read(_yolo(), crowd="keep")


def _yolo_with_missing(s: Samples) -> None:
    _read(_yolo(), missing="skip")


def _yolo_labels_of_text(s: Samples) -> None:
    _read(_labels_of_yolo("ant 0.5 0.5 0.1 0.1\n"), fields=("image", "boxes"))


def _yolo_labels_of_three_numbers(s: Samples) -> None:
    _read(_labels_of_yolo("0 0.5 0.5\n"), fields=("image", "boxes"))


def _yolo_labels_of_an_unknown_class(s: Samples) -> None:
    _read(_labels_of_yolo("99 0.5 0.5 0.1 0.1\n"), fields=("image", "labels"))


def _yolo_labels_outside_the_image(s: Samples) -> None:
    _read(_labels_of_yolo("0 5 5 0.1 0.1\n"), fields=("image", "boxes"))


def _yolo_labels_that_are_not_there(s: Samples) -> None:
    path = _yolo()
    for labels in (path.parent / "labels/train").glob("*.txt"):
        labels.unlink()
    _read(path)


CASES = functions(globals())
