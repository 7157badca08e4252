# SPDX-License-Identifier: Apache-2.0
"""Datasets from lists of files and from tables: :func:`files` and :func:`table`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from ...errors import ConfigError
from .. import recorded_calls
from ..dataset import Dataset
from .row_dataset import RowDataset
from .row_files import are_audio
from .table_columns import TableColumns, columns_of, image_column, index_of, require_column


def files(
    paths: Any,
    *,
    label: Any = None,
    multi_label: Any = None,
    separator: str | None = None,
    fields: str | Sequence[str] | None = None,
    root: str | os.PathLike[str] = "",
    cache: str | os.PathLike[str] | None = None,
    cache_limit: int | str | None = None,
    hedge: bool = False,
    **columns: Any,
) -> Dataset:
    """Creates a dataset from a list of image or audio files and their labels.

    ::

        train = feedline.files(paths, label=labels)                  # batch.image, batch.label
        train = feedline.files(paths, label=labels, boxes=boxes, mask=masks)

    Args:
        paths: one path or URL per sample, in a list, a NumPy array or a column of a pandas, polars or Arrow table; a
            path may occur several times. Local paths and URLs may be mixed. The field is ``image``, or ``audio`` if
            they are audio files. A list of paths per sample creates the fields ``image_0``, ``image_1`` and so on; in
            samples with fewer images these fields are None, so they must be batched as lists (``collate("list")``).
        label: one label per sample. Integers are used unchanged (int64). Text and pandas categories become class
            numbers (int64), with the names in :attr:`Dataset.classes`; text is numbered in sorted order, categories in
            their own order. Floats remain float64, or become int64 if all of them are whole numbers. Missing values are
            an error.
        multi_label: the tags of each sample, as a list or text, instead of `label`. The field ``label`` is a float32
            vector of shape (classes) with 1 for each tag; an empty cell means no tag.
        separator: the string that separates tags in text, such as ``" "``; if None, the text is one tag.
        fields: the fields to deliver, in order, as ``"NAME"``, ``"NAME:KIND"`` or ``"NEW=NAME:KIND"``; NAME is
            ``image``, ``audio``, ``label`` or a column. Kinds are ``image``, ``mask`` and ``audio`` (paths of files),
            ``class``, ``value``, ``array``, ``boxes`` (N, 4), ``keypoints`` (N, 2) or (N, K, 2), and ``text``. By
            default all.
        root: the folder to which relative paths refer; by default the working directory.
        cache, cache_limit, hedge: as in :func:`feedline.open`.
        columns: further fields, with one value per sample: numbers (integers are int64), arrays, text, or paths of
            images. Columns called ``boxes`` and ``keypoints`` have these kinds; a column of image paths whose name
            begins with ``mask`` or ``seg`` is a mask.

    The dataset has all methods of datasets from :func:`feedline.open`. NumPy arrays, Arrow columns and strings are not
    copied: do not change them afterwards. Messages number rows from 0, and add the row's index label if the columns are
    pandas Series whose index differs from the row numbers.

    Raises:
        ConfigError: there are no paths, columns differ in length, or a column has missing values, mixed types, or
            values that are not paths; the message names row, column and value. Files are not looked up when the dataset
            is created: a missing file raises StorageError when its sample is read, and :meth:`Dataset.inspect` reports
            it.
    """
    where = "files"
    given = {"image": paths, **columns}
    if label is not None and multi_label is not None:
        raise ConfigError("files: pass label= or multi_label=, not both")
    for name, value in (("label", label), ("multi_label", multi_label)):
        if value is not None:
            given[name] = value
    source = TableColumns("files", given, index_of(paths))
    made = RowDataset(where, source, _root(where, root))
    if are_audio(made.column("image")):
        made.audio = "image"
    else:
        made.images = "image"
    made.label = "label" if label is not None else None
    made.tags = "multi_label" if multi_label is not None else None
    made.separator = _separator(where, separator)
    made.more = list(columns)
    options = {
        "paths": source,
        "fields": fields,
        "separator": separator,
        "root": root,
        "cache": cache,
        "cache_limit": cache_limit,
        "hedge": hedge,
    }
    dataset = made.dataset(fields, cache, cache_limit, hedge)
    return recorded_calls.made_by(dataset, "data.memory.in_memory:_files_again", options=options)


def _files_again(paths: TableColumns, **options: Any) -> Dataset:
    """Repeats :func:`files` when a dataset is unpickled."""
    columns: dict[str, Any] = {**paths.columns, **options}
    return files(columns.pop("image"), **columns)


def table(
    source: Any,
    *,
    image: str | None = None,
    audio: str | None = None,
    label: str | None = None,
    target: str | Sequence[str] | None = None,
    multi_label: str | None = None,
    separator: str | None = None,
    root: str | os.PathLike[str] | None = None,
    template: str | None = None,
    fields: str | Sequence[str] | None = None,
    cache: str | os.PathLike[str] | None = None,
    cache_limit: int | str | None = None,
    hedge: bool = False,
) -> Dataset:
    """Creates a dataset from a table with one row per sample; the images are files.

    ::

        frame = pandas.read_csv("train.csv")
        train = feedline.table(frame, image="path", label="species", root="images")
        train = feedline.table("train.csv", template="{image_id}.jpg", target=("x", "y"), root="train_images")

    Args:
        source: a pandas or polars DataFrame, an Arrow table, a dict of columns, or the path or URL of CSV, TSV, JSONL,
            JSON or Parquet files.
        image: the column of paths or URLs, or of lists of paths (as in :func:`feedline.files`). By default a column
            called ``image``, ``path``, ``file_name``, ``filename``, ``filepath``, ``file``, ``img``, ``image_path`` or
            ``image_file``, or else the first column of image paths.
        audio: the column of paths or URLs of audio files; without `image`, samples then have no image.
        label: the column of labels, as in :func:`feedline.files`.
        target: names of columns of numbers. The field ``target`` is float32 of shape (columns), or a float32 scalar if
            a single name is given.
        multi_label: the column of tags, as lists or as text with `separator`, instead of `label`. The field ``label``
            is float32 of shape (classes), 1 for each tag; an empty cell means no tag.
        separator: the string that separates tags in text, such as ``" "``; if None, the text is one tag.
        root: the folder to which relative paths refer. By default the folder of the table's file, or the working
            directory if the table is in memory.
        template: builds the path of a row's image from its columns, in Python's format syntax: ``"{image_id}.jpg"``,
            ``"{folder}/{number:06d}.png"``. Instead of `image`.
        fields: the fields to deliver, in order, as in :func:`feedline.files`; NAME is ``image``, ``label``, ``target``
            or a column of the table: ``("image", "label", "age", "mask=mask_path:mask")``. By default the image and the
            fields of the arguments above; :attr:`Dataset.unopened` lists other columns.
        cache, cache_limit, hedge: as in :func:`feedline.open`.

    Columns are not copied: do not change the frame in place afterwards.

    Raises:
        ConfigError: a column does not exist, or a column that is used has missing values, mixed types, or values that
            are not paths; the message names row, column and value.
        DataError, StorageError: the table's file cannot be read.
    """
    where = "table"
    if image is not None and template is not None:
        raise ConfigError("table: pass image= or template=, not both")
    if label is not None and multi_label is not None:
        raise ConfigError("table: pass label= or multi_label=, not both")
    read = columns_of(source)
    for option, value in (("image", image), ("audio", audio), ("label", label), ("multi_label", multi_label)):
        if value is not None:
            require_column(option, value, read)
    names = [target] if isinstance(target, str) else list(target or ())
    for name in names:
        require_column("target", name, read)
    made = RowDataset(where, read, read.folder if root is None else _root(where, root))
    made.images, made.template, made.audio = image, template, audio
    if image is None and template is None and audio is None:
        made.images = image_column(where, read)
    made.label, made.tags, made.separator = label, multi_label, _separator(where, separator)
    made.targets, made.is_scalar = names, isinstance(target, str)
    dataset = made.dataset(fields, cache, cache_limit, hedge)
    options = {
        "source": read.only(made.used) if read.is_frame else source,
        "image": image if template is not None else made.images,
        "audio": audio,
        "label": label,
        "target": target,
        "multi_label": multi_label,
        "separator": separator,
        "root": root,
        "template": template,
        "fields": fields,
        "cache": cache,
        "cache_limit": cache_limit,
        "hedge": hedge,
    }
    return recorded_calls.made_by(dataset, "data.memory.in_memory:table", options=options)


def _root(where: str, root: str | os.PathLike[str]) -> str:
    text = os.fspath(root) if isinstance(root, os.PathLike) else root
    if not isinstance(text, str):
        raise ConfigError(f"{where}: root must be the path of a folder, such as 'data/images', not {root!r}")
    return text


def _separator(where: str, separator: Any) -> str | None:
    if separator is not None and (not isinstance(separator, str) or not separator):
        raise ConfigError(f"{where}: separator must be text such as ' ', not {separator!r}")
    return separator
