# SPDX-License-Identifier: Apache-2.0
"""Fields and damaged bytes of tars, folders, tables, TFRecord, Arrow, Parquet, MDS, LitData, LMDB and NumPy files."""

import decimal
import gzip
import json
import struct
from pathlib import Path

import made_arrow
import made_data
import made_litdata
import made_lmdb
import made_mds
import made_parquet
import made_tfrecords
import numpy as np

import feedline
from messages.expressions import expressions, functions
from messages.samples import Samples, png


def _changed(path: Path, at: int, new: bytes) -> Path:
    """Overwrites bytes of a file."""
    content = bytearray(path.read_bytes())
    at = at if at >= 0 else len(content) + at
    content[at : at + len(new)] = new
    path.write_bytes(bytes(content))
    return path


def _cut(path: Path, size: int) -> Path:
    content = path.read_bytes()
    path.write_bytes(content[:size])
    return path


def _read(source: object, **options: object) -> None:
    dataset = feedline.open(source, **options)  # type: ignore[arg-type]
    for index in range(len(dataset)):
        dataset[index]


# ---- tar ----


def _a_truncated_tar(s: Samples) -> None:
    _read(_cut(s.write_tar(("a.jpg", s.jpeg), ("a.cls", "0")), 900))


def _a_tar_that_ends_in_a_member(s: Samples) -> None:
    path = s.write_tar(("a.jpg", s.jpeg), ("a.cls", "0"), ("b.jpg", s.jpeg))
    _read(_cut(path, 512 * 6))


def _a_tar_with_a_damaged_header(s: Samples) -> None:
    _read(_changed(s.write_tar(("a.jpg", s.jpeg), ("a.cls", "0")), 120, b"99999"))


def _a_tar_of_zeros(s: Samples) -> None:
    _read(s.write("a.tar", bytes(10240)))


def _a_tar_with_text_inside(s: Samples) -> None:
    _read(s.write("a.tar", "text " * 400))


def _a_truncated_gzip_of_a_tar(s: Samples) -> None:
    content = gzip.compress(s.write_tar(("a.jpg", s.jpeg), ("a.cls", "0")).read_bytes())
    _read(s.write("a.tar.gz", content[: len(content) // 2]))


def _a_class_that_is_text(s: Samples) -> None:
    s.read_tar(("a.jpg", s.jpeg), ("a.cls", "cat"))


def _a_class_that_is_a_decimal(s: Samples) -> None:
    s.read_tar(("a.jpg", s.jpeg), ("a.cls", "1.5"))


def _a_class_that_is_long_text(s: Samples) -> None:
    s.read_tar(("a.jpg", s.jpeg), ("a.cls", "a photo of a cat " * 30))


def _a_class_of_other_bytes(s: Samples) -> None:
    s.read_tar(("a.jpg", s.jpeg), ("a.cls", b"\x93\xff\0\n"))


def _a_class_of_too_many_digits(s: Samples) -> None:
    s.read_tar(("a.jpg", s.jpeg), ("a.cls", "9" * 30))


def _an_empty_class(s: Samples) -> None:
    s.read_tar(("a.jpg", s.jpeg), ("a.cls", ""))


def _an_empty_image_in_a_tar(s: Samples) -> None:
    s.read_tar(("a.jpg", ""), ("a.cls", "0"))


def _a_sample_without_a_field(s: Samples) -> None:
    _read(s.write_tar(("a.jpg", s.jpeg), ("a.cls", "0"), ("b.jpg", s.jpeg)))


def _no_sample_with_all_fields(s: Samples) -> None:
    _read(s.write_tar(("a.jpg", s.jpeg), ("b.cls", "0")), fields=("jpg", "cls"), missing="skip")


def _none_for_an_image(s: Samples) -> None:
    path = s.write_tar(("a.jpg", s.jpeg), ("a.cls", "0"), ("b.cls", "0"))
    feedline.open(path, fields=("jpg", "cls"), missing="none").resize((8, 8)).loader(2, output="numpy")


def _json_that_is_none(s: Samples) -> None:
    s.read_tar(("a.json", "{"), fields="json")


def _text_that_is_not_utf_8(s: Samples) -> None:
    s.read_tar(("a.txt", b"\xff\xfe"), fields="txt")


def _a_npy_that_is_none(s: Samples) -> None:
    s.read_tar(("a.npy", "text"), fields="npy")


def _a_truncated_npy_in_a_tar(s: Samples) -> None:
    np.save("here/a.npy", np.zeros(100))
    s.read_tar(("a.npy", Path("here/a.npy").read_bytes()[:200]), fields="npy")


def _a_npy_of_objects(s: Samples) -> None:
    np.save("here/a.npy", np.array([{}], object), allow_pickle=True)
    s.read_tar(("a.npy", Path("here/a.npy").read_bytes()), fields="npy")


def _boxes_of_five_numbers(s: Samples) -> None:
    np.save("here/a.npy", np.zeros((2, 5), np.float32))
    s.read_tar(("a.jpg", s.jpeg), ("a.npy", Path("here/a.npy").read_bytes()), fields=("jpg", "npy:boxes"))


def _boxes_of_text(s: Samples) -> None:
    s.read_tar(("a.jpg", s.jpeg), ("a.json", '[["a"]]'), fields=("jpg", "json:boxes"))


def _boxes_of_ragged_lists(s: Samples) -> None:
    s.read_tar(("a.jpg", s.jpeg), ("a.json", "[[1, 2, 3, 4], [1]]"), fields=("jpg", "json:boxes"))


def _boxes_upside_down(s: Samples) -> None:
    path = s.write_tar(("a.jpg", s.jpeg), ("a.json", "[[9, 9, 1, 1]]"))
    feedline.open(path, fields=("jpg", "json:boxes")).resize((8, 8))[0]


def _a_mask_of_another_size(s: Samples) -> None:
    path = s.write_tar(("a.jpg", s.jpeg), ("a.png", _grey(5, 5)))
    feedline.open(path, fields=("jpg", "png:mask")).random_crop(4)[0]


def _a_mask_that_is_a_jpeg(s: Samples) -> None:
    s.read_tar(("a.jpg", s.jpeg), fields="jpg:mask")


def _a_mask_that_is_a_tiff(s: Samples) -> None:
    s.read_tar(("a.png", _image(np.zeros((4, 4), np.uint8), "TIFF")), fields="png:mask")


def _a_mask_that_is_a_bmp(s: Samples) -> None:
    s.read_tar(("a.png", _image(np.zeros((4, 4), np.uint8), "BMP")), fields="png:mask")


def _a_mask_that_is_a_gif(s: Samples) -> None:
    s.read_tar(("a.png", _image(np.zeros((4, 4), np.uint8), "GIF")), fields="png:mask")


def _a_mask_that_is_text(s: Samples) -> None:
    s.read_tar(("a.png", "text"), fields="png:mask")


def _a_mask_in_colour(s: Samples) -> None:
    s.read_tar(("a.png", s.png), fields="png:mask")


def _a_mask_with_alpha(s: Samples) -> None:
    s.read_tar(("a.png", png(4, 4, 2)), fields="png:mask")


def _a_mask_of_16_bits_after_one_of_8(s: Samples) -> None:
    wide = png(4, 4, 1, bits=16)
    dataset = feedline.open(s.write_tar(("a.png", _grey(4, 4)), ("b.png", wide)), fields="png:mask")
    dataset[1]


def _grey(height: int, width: int) -> bytes:
    return png(height, width, 1)


def _image(pixels: np.ndarray, format: str) -> bytes:
    return made_data.encoded(pixels, format)


# ---- images ----


def _decoded(s: Samples, content: bytes) -> None:
    s.read_tar(("a.jpg", content), fields="jpg")


def _a_truncated_jpeg(s: Samples) -> None:
    _decoded(s, s.jpeg[: len(s.jpeg) // 2])


def _a_jpeg_of_its_header(s: Samples) -> None:
    _decoded(s, s.jpeg[: s.jpeg.index(b"\xff\xda")])


def _noise_after_the_magic_of_a_jpeg(s: Samples) -> None:
    _decoded(s, b"\xff\xd8\xff\xe0" + bytes(range(256)) * 3)


def _a_jpeg_of_60000_pixels(s: Samples) -> None:
    frame = s.jpeg.index(b"\xff\xc0")
    _decoded(s, s.jpeg[: frame + 5] + struct.pack(">HH", 60_000, 60_000) + s.jpeg[frame + 9 :])


def _a_truncated_png(s: Samples) -> None:
    _decoded(s, s.png[: len(s.png) // 2])


def _a_png_with_a_wrong_checksum(s: Samples) -> None:
    _decoded(s, s.png[:60] + bytes([s.png[60] ^ 1]) + s.png[61:])


def _a_png_of_its_header(s: Samples) -> None:
    _decoded(s, s.png[:33])


def _a_truncated_webp(s: Samples) -> None:
    _decoded(s, b"RIFF" + struct.pack("<I", 472) + b"WEBPVP8 " + bytes(100))


def _a_truncated_gif(s: Samples) -> None:
    _decoded(s, b"GIF89a" + bytes(10))


def _a_truncated_bmp(s: Samples) -> None:
    _decoded(s, _image(np.zeros((20, 30, 3), np.uint8), "BMP")[:100])


def _a_truncated_tiff(s: Samples) -> None:
    _decoded(s, _image(np.zeros((20, 30, 3), np.uint8), "TIFF")[:100])


def _an_image_of_text(s: Samples) -> None:
    _decoded(s, b"this is no image\n" * 20)


def _an_image_of_html(s: Samples) -> None:
    _decoded(s, b"<!DOCTYPE html><html>403</html>")


def _an_image_of_zeros(s: Samples) -> None:
    _decoded(s, bytes(1000))


def _an_image_of_a_git_lfs_pointer(s: Samples) -> None:
    _decoded(s, b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")


# ---- folders ----


def _an_empty_image_in_a_folder(s: Samples) -> None:
    s.write("train/a/1.jpg", "")
    _read("here/train")


def _a_class_in_a_file(s: Samples) -> None:
    s.write("f/images/1.jpg", s.jpeg)
    s.write("f/classes/1.cls", "cat")
    _read("here/f", fields=("images/{key}.jpg", "classes/{key}.cls"))


def _a_field_without_files(s: Samples) -> None:
    s.write("f/images/1.jpg", s.jpeg)
    _read("here/f", fields=("images/{key}.jpg", "masks/{key}.png"))


def _a_sample_without_a_file(s: Samples) -> None:
    s.write("f/images/1.jpg", s.jpeg)
    s.write("f/images/2.jpg", s.jpeg)
    s.write("f/masks/1.png", _grey(4, 4))
    _read("here/f", fields=("images/{key}.jpg", "masks/{key}.png"))


def _no_sample_with_all_files(s: Samples) -> None:
    s.write("f/images/1.jpg", s.jpeg)
    s.write("f/masks/2.png", _grey(4, 4))
    _read("here/f", fields=("images/{key}.jpg", "masks/{key}.png"), missing="skip")


def _an_image_that_was_removed(s: Samples) -> None:
    s.write("train/a/1.jpg", s.jpeg)
    dataset = feedline.open("here/train")
    Path("here/train/a/1.jpg").unlink()
    dataset[0]


# ---- tables ----


def _a_table_with_an_image_that_is_missing(s: Samples) -> None:
    s.table("t.csv", "image,label\nnone.jpg,0\n")


def _a_table_with_too_many_cells(s: Samples) -> None:
    s.table("t.csv", "image,label\na.jpg,0,1\n")


def _a_table_with_an_open_quote(s: Samples) -> None:
    s.table("t.csv", 'image,label\n"a.jpg,0\n')


def _a_table_without_rows(s: Samples) -> None:
    s.table("t.csv", "image,label\n")


def _a_table_that_is_empty(s: Samples) -> None:
    s.table("t.csv", "")


def _a_table_in_utf_16(s: Samples) -> None:
    s.table("t.csv", "image,label\na.jpg,0\n".encode("utf-16"))


def _a_table_with_columns_of_one_name(s: Samples) -> None:
    s.table("t.csv", "image,image\na.jpg,b.jpg\n")


def _a_table_of_excel(s: Samples) -> None:
    s.table("t.csv", b"PK\3\4" + bytes(100))


def _a_gzip_of_a_table_without_its_suffix(s: Samples) -> None:
    s.table("t.csv", gzip.compress(b"image,label\na.jpg,0\n"))


def _a_truncated_gzip_of_a_table(s: Samples) -> None:
    s.table("t.csv.gz", gzip.compress(b"image,label\na.jpg,0\n" * 100)[:60])


def _lines_of_json_that_are_damaged(s: Samples) -> None:
    s.table("t.jsonl", '{"image": "a.jpg"}\n{"image": \n')


def _lines_of_json_without_objects(s: Samples) -> None:
    s.table("t.jsonl", "[1, 2]\n")


def _json_that_is_neither_a_table_nor_coco(s: Samples) -> None:
    s.table("t.json", '{"a": 1}')


def _truncated_json_of_a_table(s: Samples) -> None:
    s.table("t.json", '[{"image": "a.jpg"}, {"image"')


def _truncated_json_of_a_list(s: Samples) -> None:
    s.table("list.json", '{"shardlist": [{"url": "000.tar", "nsam')


def _a_column_of_numbers_as_an_image(s: Samples) -> None:
    s.table("t.csv", "image,label\na.jpg,0\n", fields=("label:image", "image"))


def _a_column_of_text_as_a_class(s: Samples) -> None:
    s.table("t.csv", "image,label\na.jpg,cat\n", fields=("image", "label:value"))


def _a_column_of_text_as_an_array(s: Samples) -> None:
    s.table("t.csv", "image,label\na.jpg,cat\n", fields=("image", "label:array"))


def _a_class_that_becomes_text_later(s: Samples) -> None:
    rows = "".join(f"a.jpg,{i}\n" for i in range(200))
    _read(s.write("t.csv", f"image,label\n{rows}a.jpg,cat\n"), fields=("image", "label:value"))


def _a_column_of_dicts_as_a_value(s: Samples) -> None:
    s.table("t.jsonl", '{"image": "a.jpg", "meta": {"a": 1}}\n', fields=("image", "meta:value"))


def _a_column_of_dicts_as_an_array(s: Samples) -> None:
    s.table("t.jsonl", '{"image": "a.jpg", "meta": {"a": 1}}\n', fields=("image", "meta:array"))


def _a_column_of_dicts_as_an_image(s: Samples) -> None:
    s.table("t.jsonl", '{"image": "a.jpg", "meta": {"a": 1}}\n', fields=("image", "meta:image"))


def _a_column_of_lists_of_text_as_an_array(s: Samples) -> None:
    s.table("t.jsonl", '{"image": "a.jpg", "tags": ["a", "b"]}\n', fields=("image", "tags:array"))


def _a_column_of_lists_as_a_value(s: Samples) -> None:
    s.table("t.jsonl", '{"image": "a.jpg", "tags": [1, 2]}\n', fields=("image", "tags:value"))


def _a_column_that_the_table_lacks(s: Samples) -> None:
    s.table("t.csv", "image,label\na.jpg,0\n", fields=("image", "age"))


def _a_column_without_values(s: Samples) -> None:
    s.table("t.csv", "image,label\na.jpg,\n", fields=("image", "label"))


def _a_field_of_a_table_twice(s: Samples) -> None:
    s.table("t.csv", "image,label\na.jpg,0\n", fields=("image", "image"))


def _a_url_in_a_local_table(s: Samples) -> None:
    s.table("t.csv", "image,label\nhttp://localhost:1/a.jpg,0\n")


def _tables_with_different_columns(s: Samples) -> None:
    s.write("t/a.csv", "image,label\na.jpg,0\n")
    s.write("t/b.csv", "image,age\na.jpg,0\n")
    feedline.open("here/t")


def _a_folder_with_two_tables(s: Samples) -> None:
    s.write("t/metadata.csv", "file_name,label\na.jpg,0\n")
    s.write("t/metadata.jsonl", '{"file_name": "a.jpg"}\n')
    feedline.open("here/t")


def _a_folder_with_a_table_in_one_folder_only(s: Samples) -> None:
    s.write("t/train/metadata.csv", "file_name,label\na.jpg,0\n")
    s.write("t/train/a.jpg", s.jpeg)
    s.write("t/val/a.jpg", s.jpeg)
    feedline.open("here/t")


# ---- TFRecord ----


def _records(s: Samples, *examples: dict[str, object]) -> Path:
    return made_tfrecords.write(Path("here/a.tfrecord"), [made_tfrecords.example(one) for one in examples])  # type: ignore[arg-type]


def _a_truncated_tfrecord(s: Samples) -> None:
    path = _records(s, {"image": s.jpeg, "label": 0})
    _read(_cut(path, path.stat().st_size - 20))


def _a_tfrecord_with_a_damaged_length(s: Samples) -> None:
    _read(_changed(_records(s, {"image": s.jpeg, "label": 0}), 0, b"\x07"))


def _a_tfrecord_with_damaged_data(s: Samples) -> None:
    _read(_changed(_records(s, {"image": s.jpeg, "label": 0}), 200, b"\x07\x08\x09"))


def _an_empty_tfrecord(s: Samples) -> None:
    _read(s.write("a.tfrecord", ""))


def _a_tfrecord_of_text(s: Samples) -> None:
    _read(s.write("a.tfrecord", "text " * 100))


def _a_tfrecord_of_other_messages(s: Samples) -> None:
    _read(made_tfrecords.write(Path("here/a.tfrecord"), [b"text that is no example"]))


def _a_feature_that_is_missing(s: Samples) -> None:
    _read(_records(s, {"image": s.jpeg, "label": 0}), fields=("image", "age"))


def _a_feature_of_numbers_as_an_image(s: Samples) -> None:
    _read(_records(s, {"image": s.jpeg, "label": 0}), fields=("label:image",))


def _several_features_that_may_be_the_image(s: Samples) -> None:
    _read(_records(s, {"a": s.jpeg, "b": s.jpeg}))


def _a_feature_of_another_number_of_values(s: Samples) -> None:
    _read(_records(s, {"image": s.jpeg, "x": "a"}, {"image": s.jpeg, "x": ["a", "b"]}), fields=("image", "x"))


def _a_record_without_a_feature(s: Samples) -> None:
    _read(_records(s, {"image": s.jpeg, "x": 1}, {"image": s.jpeg}), fields=("image", "x"))


def _a_field_of_a_tfrecord_twice(s: Samples) -> None:
    _read(_records(s, {"image": s.jpeg, "label": 0}), fields=("image", "image"))


# ---- Arrow ----


def rows_of(s: Samples) -> list[dict[str, object]]:
    return [{"image": s.jpeg, "label": i} for i in range(6)]


def arrow_of(s: Samples) -> Path:
    return s.write("a.arrow", made_arrow.stream(rows_of(s)))  # type: ignore[arg-type]


def _a_truncated_arrow_file(s: Samples) -> None:
    path = arrow_of(s)
    _read(_cut(path, path.stat().st_size // 2))


def _an_arrow_file_of_text(s: Samples) -> None:
    _read(s.write("a.arrow", "text " * 100))


def _an_empty_arrow_file(s: Samples) -> None:
    _read(s.write("a.arrow", ""))


def _an_arrow_file_with_damaged_metadata(s: Samples) -> None:
    _read(_changed(arrow_of(s), 12, b"\xff" * 40))


def _an_arrow_file_without_a_column(s: Samples) -> None:
    _read(arrow_of(s), fields=("image", "age"))


def _a_column_of_arrow_as_another_kind(s: Samples) -> None:
    _read(arrow_of(s), fields=("image", "label:text"))


def _a_column_of_structs_as_a_value(s: Samples) -> None:
    rows = [{"image": s.jpeg, "meta": {"a": 1, "b": "x"}}]
    _read(s.write("a.arrow", made_arrow.stream(rows)), fields=("image", "meta"))


def _a_column_of_lists_as_an_image(s: Samples) -> None:
    rows = [{"image": s.jpeg, "tags": [1, 2]}]
    _read(s.write("a.arrow", made_arrow.stream(rows)), fields=("tags:image",))


def _a_column_of_lists_of_decimals_of_parquet(s: Samples) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    s.write("a.parquet", "")
    tags = pa.array([[decimal.Decimal(1)]], pa.list_(pa.decimal128(5, 2)))
    pq.write_table(pa.table({"image": [s.jpeg], "tags": tags}), "here/a.parquet")
    _read("here/a.parquet", fields=("image", "tags"))


def _a_saved_dataset_with_splits(s: Samples) -> None:
    s.write("d/dataset_dict.json", '{"splits": ["train", "test"]}')
    feedline.open("here/d")


def _a_saved_dataset_without_its_files(s: Samples) -> None:
    s.write("d/state.json", '{"_data_files": []}')
    s.write("d/dataset_info.json", "{}")
    feedline.open("here/d")


def _a_saved_dataset_with_a_damaged_state(s: Samples) -> None:
    s.write("d/state.json", "{")
    s.write("d/dataset_info.json", "{}")
    feedline.open("here/d")


# ---- Parquet ----


def parquet_of(s: Samples) -> Path:
    rows = [{"image": s.jpeg, "label": i, "text": "a"} for i in range(6)]
    return s.write("a.parquet", made_parquet.file_of(rows))


def _a_truncated_parquet_file(s: Samples) -> None:
    path = parquet_of(s)
    _read(_cut(path, path.stat().st_size - 4))


def _a_parquet_file_of_text(s: Samples) -> None:
    _read(s.write("a.parquet", "text " * 100))


def _an_empty_parquet_file(s: Samples) -> None:
    _read(s.write("a.parquet", ""))


def _a_parquet_file_with_a_damaged_footer(s: Samples) -> None:
    _read(_changed(parquet_of(s), -60, b"\xff" * 20))


def _a_parquet_file_with_a_damaged_page(s: Samples) -> None:
    _read(_changed(parquet_of(s), 300, b"\xff" * 40))


def _a_parquet_file_without_a_column(s: Samples) -> None:
    _read(parquet_of(s), fields=("image", "age"))


def _a_column_of_parquet_as_another_kind(s: Samples) -> None:
    _read(parquet_of(s), fields=("image", "label:image"))


def _a_column_of_structs_of_parquet(s: Samples) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    s.write("a.parquet", "")
    pq.write_table(pa.table({"image": [s.jpeg], "meta": [{"a": 1, "b": "x"}]}), "here/a.parquet")
    _read("here/a.parquet", fields=("image", "meta:array"))


def _a_column_of_maps_of_parquet(s: Samples) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    s.write("a.parquet", "")
    meta = pa.array([[(7, 1)]], pa.map_(pa.int32(), pa.int64()))
    pq.write_table(pa.table({"image": [s.jpeg], "meta": meta}), "here/a.parquet")
    _read("here/a.parquet", fields=("image", "meta"))


def _a_null_in_a_list_of_parquet(s: Samples) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    s.write("a.parquet", "")
    pq.write_table(pa.table({"image": [s.jpeg], "x": [[1, None]]}), "here/a.parquet")
    _read("here/a.parquet", fields=("image", "x"))


def _an_image_of_null(s: Samples) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    s.write("a.parquet", "")
    pq.write_table(pa.table({"image": [s.jpeg, None], "label": [0, 1]}), "here/a.parquet")
    _read("here/a.parquet")


# ---- MDS ----


def mds_of(s: Samples) -> Path:
    return made_mds.write(Path("here/mds"), {"image": "jpeg", "label": "int"}, rows_of(s))


def _an_mds_folder_without_an_index(s: Samples) -> None:
    folder = mds_of(s)
    (folder / "index.json").unlink()
    _read(folder, format="mds")


def _an_mds_index_that_is_empty(s: Samples) -> None:
    folder = mds_of(s)
    (folder / "index.json").write_text("")
    _read(folder)


def _an_mds_index_that_is_damaged(s: Samples) -> None:
    _read(_cut(mds_of(s) / "index.json", 60).parent)


def _an_mds_index_of_another_version(s: Samples) -> None:
    folder = mds_of(s)
    (folder / "index.json").write_text(json.dumps({"version": 9, "shards": []}))
    _read(folder)


def _an_mds_index_without_shards(s: Samples) -> None:
    folder = mds_of(s)
    (folder / "index.json").write_text(json.dumps({"version": 2, "shards": []}))
    _read(folder)


def _an_mds_shard_that_is_missing(s: Samples) -> None:
    folder = mds_of(s)
    next(folder.glob("*.mds")).unlink()
    _read(folder)


def _a_truncated_mds_shard(s: Samples) -> None:
    folder = mds_of(s)
    _cut(next(folder.glob("*.mds")), 60)
    _read(folder)


def _an_mds_shard_with_another_count(s: Samples) -> None:
    folder = mds_of(s)
    _changed(next(folder.glob("*.mds")), 0, b"\x63")
    _read(folder)


def _an_mds_shard_with_damaged_offsets(s: Samples) -> None:
    folder = mds_of(s)
    _changed(next(folder.glob("*.mds")), 8, b"\xff\xff")
    _read(folder)


def _an_mds_column_of_pickles(s: Samples) -> None:
    folder = made_mds.write(Path("here/mds"), {"image": "jpeg", "x": "pkl"}, [{"image": s.jpeg, "x": b"a"}])
    _read(folder, fields=("image", "x"))


def _an_mds_column_that_is_missing(s: Samples) -> None:
    _read(mds_of(s), fields=("image", "age"))


def _an_mds_column_as_another_kind(s: Samples) -> None:
    _read(mds_of(s), fields=("image", "label:image"))


def _an_mds_value_that_is_damaged(s: Samples) -> None:
    columns = {"image": "jpeg", "x": "json"}
    folder = made_mds.write(Path("here/mds"), columns, [{"image": s.jpeg, "x": [1]}])
    _changed(next(folder.glob("*.mds")), -2, b"{{")
    _read(folder, fields=("image", "x"))


# ---- LitData ----


def _litdata(s: Samples, **config: object) -> Path:
    return made_litdata.write(Path("here/lit"), {"image": "jpeg", "label": "int"}, rows_of(s), **config)


def _a_litdata_index_that_is_damaged(s: Samples) -> None:
    _read(_cut(_litdata(s) / "index.json", 60).parent)


def _a_litdata_index_that_is_encrypted(s: Samples) -> None:
    _read(_litdata(s, encryption={"algorithm": "fernet"}))


def _a_litdata_index_with_another_compression(s: Samples) -> None:
    _read(_litdata(s, compression="lz4"))


def _a_litdata_index_for_another_loader(s: Samples) -> None:
    _read(_litdata(s, item_loader="ParquetLoader"))


def _a_litdata_chunk_that_is_missing(s: Samples) -> None:
    folder = _litdata(s)
    next(folder.glob("*.bin")).unlink()
    _read(folder)


def _a_truncated_litdata_chunk(s: Samples) -> None:
    folder = _litdata(s)
    _cut(next(folder.glob("*.bin")), 60)
    _read(folder)


def _a_litdata_chunk_with_another_count(s: Samples) -> None:
    folder = _litdata(s)
    _changed(next(folder.glob("*.bin")), 0, b"\x63")
    _read(folder)


def _a_litdata_column_that_is_missing(s: Samples) -> None:
    _read(_litdata(s), fields=("image", "age"))


def _tokens_of_litdata() -> Path:
    return made_litdata.tokens(Path("here/lit"), [np.arange(40, dtype=np.int64)])


def _litdata_tokens_with_another_dtype(s: Samples) -> None:
    feedline.open(_tokens_of_litdata()).windows(4, dtype="uint16")


def _litdata_tokens_of_a_subset(s: Samples) -> None:
    folder = made_litdata.tokens(Path("here/lit"), [np.arange(40), np.arange(40)])
    feedline.open(folder).take(1).windows(4)


def _litdata_tokens_by_a_wrong_index(s: Samples) -> None:
    feedline.tokens(_litdata(s), window=4)


def _litdata_tokens_in_a_truncated_chunk(s: Samples) -> None:
    folder = _tokens_of_litdata()
    _cut(next(folder.glob("*.bin")), 30)
    feedline.tokens(folder, window=4)


def _litdata_tokens_that_are_compressed(s: Samples) -> None:
    folder = made_litdata.tokens(Path("here/lit"), [np.arange(40, dtype=np.uint16)], compression="zstd")
    feedline.tokens(folder, window=4)


def _litdata_tokens_with_a_damaged_index(s: Samples) -> None:
    _cut(_tokens_of_litdata() / "index.json", 60)
    feedline.tokens("here/lit", window=4)


# ---- LMDB ----


def lmdb_of(s: Samples) -> Path:
    return made_lmdb.write(Path("here/a.lmdb"), {b"%03d" % i: made_lmdb.datum(s.jpeg, i) for i in range(6)})


def _a_truncated_lmdb_file(s: Samples) -> None:
    _read(_cut(lmdb_of(s), 5000))


def _an_lmdb_file_of_text(s: Samples) -> None:
    _read(s.write("a.lmdb", "text " * 2000), format="lmdb")


def _an_lmdb_file_with_a_damaged_meta_page(s: Samples) -> None:
    path = _changed(lmdb_of(s), 16, b"\xff" * 60)
    _read(_changed(path, 4096 + 16, b"\xff" * 60), format="lmdb")


def _an_lmdb_file_of_version_3(s: Samples) -> None:
    path = _changed(lmdb_of(s), 20, b"\x03")
    _read(_changed(path, 4096 + 20, b"\x03"), format="lmdb")


def _an_empty_lmdb_file(s: Samples) -> None:
    _read(made_lmdb.write(Path("here/a.lmdb"), {}))


def _an_lmdb_file_of_text_values(s: Samples) -> None:
    _read(made_lmdb.write(Path("here/a.lmdb"), {b"a": b"text"}))


def _an_lmdb_key_pattern_without_a_key(s: Samples) -> None:
    _read(lmdb_of(s), fields="image-000")


def _an_lmdb_key_pattern_of_another_kind(s: Samples) -> None:
    _read(lmdb_of(s), fields="image-{number:x}")


def _an_lmdb_key_pattern_without_matches(s: Samples) -> None:
    _read(lmdb_of(s), fields="image-{key}")


def _an_lmdb_pattern_and_a_part_of_datums(s: Samples) -> None:
    _read(lmdb_of(s), fields=("image", "{key}"))


def _an_lmdb_class_that_is_text(s: Samples) -> None:
    _read(made_lmdb.write(Path("here/a.lmdb"), {b"a.jpg": s.jpeg, b"a.cls": b"cat"}), fields=("{key}.jpg", "{key}.cls"))


def _an_lmdb_datum_of_another_size(s: Samples) -> None:
    _read(made_lmdb.write(Path("here/a.lmdb"), {b"a": made_lmdb.raw_datum(3, 4, 4, bytes(5), 1)}))


def _an_lmdb_sample_without_a_field(s: Samples) -> None:
    entries = {b"a.jpg": s.jpeg, b"a.cls": b"1", b"b.jpg": s.jpeg}
    _read(made_lmdb.write(Path("here/a.lmdb"), entries), fields=("{key}.jpg", "{key}.cls"))


# ---- NumPy files ----


def _a_truncated_npy_file(s: Samples) -> None:
    np.save("here/a.npy", np.zeros((10, 4), np.float32))
    _read(_cut(Path("here/a.npy"), 200))


def _a_npy_file_of_objects(s: Samples) -> None:
    np.save("here/a.npy", np.array([{}], object), allow_pickle=True)
    _read("here/a.npy")


def _a_npy_file_of_a_single_number(s: Samples) -> None:
    np.save("here/a.npy", np.float32(3))
    _read("here/a.npy")


def _a_npy_file_of_text(s: Samples) -> None:
    _read(s.write("a.npy", "text"))


def _an_empty_npy_file(s: Samples) -> None:
    _read(s.write("a.npy", ""))


def _an_npz_file_without_an_array(s: Samples) -> None:
    np.savez("here/a.npz", x=np.zeros((3, 2)))
    _read("here/a.npz", fields=("x", "y"))


def _a_truncated_npz_file(s: Samples) -> None:
    np.savez("here/a.npz", x=np.zeros((3, 2)))
    _read(_cut(Path("here/a.npz"), 150))


def _an_npz_file_without_arrays(s: Samples) -> None:
    np.savez("here/a.npz")
    _read("here/a.npz")


def _an_npz_file_of_arrays_of_different_lengths(s: Samples) -> None:
    np.savez("here/a.npz", x=np.zeros((3, 2)), y=np.zeros(4))
    _read("here/a.npz")


def _an_npz_file_with_a_damaged_member(s: Samples) -> None:
    np.savez("here/a.npz", x=np.arange(60.0).reshape(30, 2))
    _read(_changed(Path("here/a.npz"), 300, b"\xff\xff"))


def _a_npy_file_as_boxes(s: Samples) -> None:
    np.savez("here/a.npz", x=np.zeros((3, 5)))
    _read("here/a.npz", fields="x:boxes")


def _litdata_tokens_of_another_file(s: Samples) -> None:
    feedline.tokens(s.write("lit/index.json", "{}").parent, window=4)


def _litdata_tokens_in_a_chunk_elsewhere(s: Samples) -> None:
    index = _tokens_of_litdata() / "index.json"
    index.write_text(index.read_text().replace("chunk-0-0.bin", "../x.bin"))
    feedline.tokens("here/lit", window=4)


def _litdata_tokens_of_a_chunk_that_is_missing(s: Samples) -> None:
    next(_tokens_of_litdata().glob("*.bin")).unlink()
    feedline.tokens("here/lit", window=4)


def _litdata_tokens_of_floats(s: Samples) -> None:
    feedline.tokens(made_litdata.tokens(Path("here/lit"), [np.zeros(40)], 1), window=4)


def _litdata_tokens_after_an_operation(s: Samples) -> None:
    feedline.open(_tokens_of_litdata()).map(len, "tokens").windows(4)


CASES = {
    **expressions("""
        feedline.open(shards[0], fields=3)
        feedline.open(shards[0], fields=[3])
        feedline.open(shards[0], fields="png")
        feedline.open(shards[0], fields=("jpg", "jpg"))
        feedline.open(shards[0], fields="jpg;cls")
        feedline.open(shards[0], fields="jpg:colour")
        feedline.open(shards[0], fields="=jpg")
        feedline.open(shards[0], fields=";")
        feedline.open(shards[0], fields=("jpg", "cls:boxes"))[0]
        feedline.open(folder, fields="image")
        feedline.open(folder, fields=("image", "label"))
        feedline.open(folder, fields="{key}.png")
        feedline.open(folder, fields="nothing/{key}")
        feedline.open(folder, fields=("{key}.jpg", "{key}.jpg"))
        feedline.open(folder, fields="{key}/{key}.jpg")
        feedline.open(folder, fields="={key}.jpg")
    """),
    **functions(globals()),
}
