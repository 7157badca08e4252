# SPDX-License-Identifier: Apache-2.0
"""Datasets of lists of files and of tables: :func:`files` and :func:`table`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from .. import _engine
from ..errors import ConfigError
from . import arguments, node_cache, recorded_calls
from .dataset import Dataset
from .frame_columns import Column, FileColumn, OwnedList, column_of
from .row_fields import RowFields
from .source_spec import SourceSpec

# Usual names of the column of paths, in order of preference.
_PATH_NAMES = ("image", "path", "file_name", "filename", "filepath", "file", "img", "image_path", "image_file")


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
    """Creates a dataset from a list of image files and their labels.

    ::

        train = feedline.files(paths, label=labels)                  # batch.image, batch.label
        train = feedline.files(paths, label=labels, boxes=boxes, mask=masks)

    Args:
        paths: one path or URL per sample, in a list, a NumPy array or a column of a pandas, polars or Arrow table; a
            path may occur several times. Local paths and URLs may be mixed. A list of paths per sample gives the fields
            ``image_0``, ``image_1`` and so on; samples with fewer images have None there, so such fields must be lists
            (``collate("list")``).
        label: one label per sample. Integers are used as they are (int64). Text and pandas categories become class
            numbers (int64), with the names in :attr:`Dataset.classes`: text in sorted order, categories in their own.
            Floats stay float64, unless all are whole numbers. Missing values are an error.
        multi_label: instead of `label`, the tags of each sample: a list, or text. The field ``label`` is float32 of
            shape (classes), 1 for each tag; an empty cell means no tag.
        separator: separates tags in text, such as ``" "``; None: the text is one tag.
        fields: the fields to deliver, in order, as ``"NAME"``, ``"NAME:KIND"`` or ``"NEW=NAME:KIND"``; NAME is
            ``image``, ``label`` or a column. Kinds are ``image`` and ``mask`` (paths of files), ``class``, ``value``,
            ``array``, ``boxes`` (N, 4), ``keypoints`` (N, 2) or (N, K, 2), and ``text``. By default all.
        root: the folder of relative paths; by default the working directory.
        cache, cache_limit, hedge: as in :func:`feedline.open`.
        columns: further fields, with one value per sample: numbers (integers are int64), arrays, text, or paths of
            images. Columns called ``boxes`` and ``keypoints`` have these kinds; a column of image paths whose name
            begins with ``mask`` or ``seg`` is a mask.

    The dataset has all methods of datasets from :func:`feedline.open`. NumPy arrays, Arrow columns and strings are not
    copied: do not change them afterwards. Messages number rows from 0, with the row's index label if the columns are
    pandas Series with another index.

    Raises:
        ConfigError: no path, columns of different lengths, a missing value, mixed types, or values that are not paths;
            the message names row, column and value. Files are not looked up when the dataset is created: a missing
            file is a StorageError when its sample is read, and a finding of :meth:`Dataset.inspect`.
    """
    where = "files"
    given = {"image": paths, **columns}
    if label is not None and multi_label is not None:
        raise ConfigError("files: pass label= or multi_label=, not both")
    for name, value in (("label", label), ("multi_label", multi_label)):
        if value is not None:
            given[name] = value
    source = _Columns("files", given, _index_of(paths))
    made = _Making(where, source, _root(where, root))
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
    return recorded_calls.made_by(dataset, "data.in_memory:_files_again", options=options)


def _files_again(paths: _Columns, **options: Any) -> Dataset:
    """Repeats :func:`files` when a dataset is unpickled."""
    columns: dict[str, Any] = {**paths.columns, **options}
    return files(columns.pop("image"), **columns)


def table(
    source: Any,
    *,
    image: str | None = None,
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
    """Creates a dataset from a table with a row per sample, whose images are files.

    ::

        frame = pandas.read_csv("train.csv")
        train = feedline.table(frame, image="path", label="species", root="images")
        train = feedline.table("train.csv", template="{image_id}.jpg", target=("x", "y"), root="train_images")

    Args:
        source: a pandas or polars DataFrame, an Arrow table, a dict of columns, or the path or URL of CSV, TSV, JSONL,
            JSON or Parquet files.
        image: the column of paths or URLs, or of lists of them (as in :func:`feedline.files`). By default a column
            called ``image``, ``path``, ``file_name``, ``filename``, ``filepath``, ``file``, ``img``, ``image_path`` or
            ``image_file``, or else the first column of image paths.
        label: the column of labels, as in :func:`feedline.files`.
        target: columns of numbers: the field ``target`` is float32 of shape (columns), and for one name float32
            without dimensions.
        multi_label: the column of tags, instead of `label`: lists, or text with `separator`. The field ``label`` is
            float32 of shape (classes), 1 for each tag; an empty cell means no tag.
        separator: separates tags in text, such as ``" "``; None: the text is one tag.
        root: the folder of relative paths. By default the working directory, and for the path of a table the table's
            folder.
        template: the path of a row's image from its columns, in Python's format syntax: ``"{image_id}.jpg"``,
            ``"{folder}/{number:06d}.png"``. Instead of `image`.
        fields: the fields to deliver, in order, as in :func:`feedline.files`; NAME is ``image``, ``label``, ``target``
            or a column of the table: ``("image", "label", "age", "mask=mask_path:mask")``. By default the image and the
            fields of the arguments above; :attr:`Dataset.unopened` lists other columns.
        cache, cache_limit, hedge: as in :func:`feedline.open`.

    Columns are not copied: do not change the frame in place afterwards.

    Raises:
        ConfigError: no such column, a missing value in a column that is used, mixed types, a column that does not hold
            paths; the message names row, column and value.
        DataError, StorageError: the table's file cannot be read.
    """
    where = "table"
    if image is not None and template is not None:
        raise ConfigError("table: pass image= or template=, not both")
    if label is not None and multi_label is not None:
        raise ConfigError("table: pass label= or multi_label=, not both")
    read = _columns_of(source)
    for option, value in (("image", image), ("label", label), ("multi_label", multi_label)):
        if value is not None:
            _require_column(option, value, read)
    names = [target] if isinstance(target, str) else list(target or ())
    for name in names:
        _require_column("target", name, read)
    made = _Making(where, read, read.folder if root is None else _root(where, root))
    made.images, made.template = image, template
    if image is None and template is None:
        made.images = _image_column(where, read)
    made.label, made.tags, made.separator = label, multi_label, _separator(where, separator)
    made.targets, made.is_scalar = names, isinstance(target, str)
    dataset = made.dataset(fields, cache, cache_limit, hedge)
    options = {
        "source": read.only(made.used) if read.is_frame else source,
        "image": image if template is not None else made.images,
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
    return recorded_calls.made_by(dataset, "data.in_memory:table", options=options)


class _Columns:
    """The columns of a table, and the index of its frame. Pickled with a dataset."""

    def __init__(
        self, source: str, columns: Mapping[str, Any], index: Any = None, folder: str = "", is_frame: bool = True
    ) -> None:
        self.source = source
        # lists are copied, as the caller may change them before the dataset is pickled
        self.columns = {
            name: OwnedList(values) if type(values) in (list, tuple) else values for name, values in columns.items()
        }
        self.index = index  # None: rows are named by their positions
        self.folder = folder
        self.is_frame = is_frame
        self.unread: list[tuple[str, str]] = []

    def only(self, names: Sequence[str]) -> _Columns:
        return _Columns(self.source, {name: self.columns[name] for name in names}, self.index, self.folder)

    def row_label(self, row: int) -> str:
        return "" if self.index is None else f" (index {self.index[row]!r})"


class _Making:
    """The choices of one call of :func:`files` or :func:`table`."""

    images: str | None = None
    template: str | None = None
    label: str | None = None
    tags: str | None = None
    separator: str | None = None
    targets: Sequence[str] = ()
    is_scalar = False
    more: Sequence[str] = ()

    def __init__(self, where: str, source: _Columns, root: str) -> None:
        self._where, self._source = where, source
        self._fields = RowFields(where, root)
        self._converted: dict[str, Column] = {}

    @property
    def used(self) -> list[str]:
        return list(self._converted)

    def column(self, name: str) -> Column:
        if name not in self._converted:
            column = column_of(self._where, name, self._source.columns[name])
            column.row_label = self._source.row_label
            first = next(iter(self._converted.values()), column)
            if column.length != first.length:
                raise ConfigError(
                    f"{self._where}: {name!r} has {column.length} rows, but {first.name!r} has {first.length}"
                )
            if column.length == 0:
                raise ConfigError(f"{self._where}: {name!r} has no rows")
            self._converted[name] = column
        return self._converted[name]

    def dataset(self, fields: Any, cache: Any, cache_limit: Any, hedge: Any) -> Dataset:
        specs = arguments.field_specs(self._where, fields)
        for name, role, kind in [self._parsed(spec) for spec in specs] or self._usual():
            if name in self._fields.names:
                raise ConfigError(f"{self._where}: two fields are called {name!r}; put NAME= before one of them")
            self._add(name, role, kind)
        if self._source.index is not None:
            self._fields.columns.set_row_names(_name_cells(self._source.index))
        self._fields.columns.set_unopened(self._unopened())
        options = {
            **node_cache.of_open(cache, cache_limit),
            "hedge": arguments.flag(self._where, "hedge", hedge),
        }
        try:
            engine = self._fields.columns.open(self._source.source, options)
        except ConfigError as error:
            raise ConfigError(f"{self._where}: {error}") from None
        return Dataset(engine, SourceSpec(self._source.source, engine.format))

    def _unopened(self) -> list[tuple[str, str, str, str]]:
        """Returns names, types, reasons and specs of the columns that are not used."""
        left = [
            (name, _type_of(raw), "not in fields=", name)
            for name, raw in self._source.columns.items()
            if name not in self._converted
        ]
        return left + [(name, holds, "this version cannot read it", "") for name, holds in self._source.unread]

    def _usual(self) -> list[tuple[str, str, str]]:
        names = ["image"]
        names += ["label"] if self.label is not None or self.tags is not None else []
        names += ["target"] if self.targets else []
        return [(name, name, "") for name in (*names, *self.more)]

    def _parsed(self, spec: str) -> tuple[str, str, str]:
        """Returns field, column and kind of a spec."""
        name, equals, rest = spec.partition("=")
        rest = rest if equals else spec
        column, colon, kind = rest.rpartition(":")
        if not colon or rest in self._source.columns:
            column, kind = rest, ""
        return (name if equals else column), column, kind

    def _add(self, name: str, role: str, kind: str) -> None:
        fields = self._fields
        if role == "image" and (self.images is not None or self.template is not None):
            if self.template is not None:
                fields.add_template(name, self.template, list(self._source.columns), self.column)
            else:
                fields.add_files(name, self.column(str(self.images)), kind or "image")
        elif role == "label" and self.tags is not None:
            fields.add_multi_hot(name, self.column(self.tags), self.separator)
        elif role == "label" and self.label is not None:
            column = self.column(self.label)
            fields.add_any(name, column, kind) if kind else fields.add_label(name, column)
        elif role == "target" and self.targets:
            fields.add_target(name, [self.column(one) for one in self.targets], self.is_scalar)
        elif role in self._source.columns:
            fields.add_any(name, self.column(role), kind)
        else:
            raise ConfigError(
                f"{self._where}: fields: there is no column {role!r}; the columns are {', '.join(self._source.columns)}"
            )


def _columns_of(source: Any) -> _Columns:
    """Reads or wraps the columns of a table."""
    if isinstance(source, _Columns):
        return source
    if isinstance(source, str | os.PathLike):
        path = arguments.path_text("table", "source", source)
        folder, columns, unread = _engine.read_table(path)
        made = _Columns(path, {row[0]: FileColumn(*row) for row in columns}, None, folder, is_frame=False)
        made.unread = unread
        return made
    module = type(source).__module__.partition(".")[0]
    if module == "pandas" and hasattr(source, "columns"):
        return _Columns("table", {str(name): source[name] for name in source.columns}, _index_of(source))
    if module == "polars" and hasattr(source, "get_columns"):
        return _Columns("table", {column.name: column for column in source.get_columns()})
    if module == "pyarrow" and hasattr(source, "column_names"):
        return _Columns("table", {name: source.column(i) for i, name in enumerate(source.column_names)})
    if isinstance(source, Mapping):
        return _Columns("table", {str(name): values for name, values in source.items()})
    raise ConfigError(
        "table: source must be a pandas or polars DataFrame, an Arrow table, a dict of columns, or the path of a CSV, "
        f"JSONL or Parquet file, not {type(source).__name__}"
    )


def _type_of(raw: Any) -> str:
    if isinstance(raw, FileColumn):
        return raw.holds
    return str(getattr(raw, "dtype", getattr(raw, "type", "")))


def _require_column(option: str, name: Any, source: _Columns) -> None:
    if not isinstance(name, str):
        raise ConfigError(f"table: {option} must be the name of a column, not {name!r}")
    if name in source.columns:
        return
    unread = dict(source.unread)
    if name in unread:
        raise ConfigError(
            f"table: {option}: the column {name!r} of {source.source!r} ({unread[name]}) cannot be read from this "
            "file; read the file with pandas or pyarrow, and pass the table"
        )
    raise ConfigError(f"table: {option}: there is no column {name!r}; the columns are {', '.join(source.columns)}")


def _image_column(where: str, source: _Columns) -> str:
    from .row_fields import _are_images

    for name in _PATH_NAMES:
        if name in source.columns:
            return name
    for name, raw in source.columns.items():
        column = column_of(where, name, raw)
        if column.cells is not None and _are_images(column):
            return name
    raise ConfigError(
        f"{where}: no column holds paths of images; name it with image=, or pass template='{{COLUMN}}.jpg'; the "
        f"columns are {', '.join(source.columns)}"
    )


def _index_of(frame: Any) -> Any:
    """Returns the index of a pandas object; None if it has the positions."""
    index = getattr(frame, "index", None)
    if type(frame).__module__.partition(".")[0] != "pandas" or index is None:
        return None
    if type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1:
        return None
    return index


def _name_cells(index: Any) -> Any:
    numbers = index.to_numpy()
    if numbers.dtype.kind in "iu":
        address = numbers.__array_interface__["data"][0]
        return _engine.text_cells_of_integers(address, len(numbers), numbers.strides[0], numbers.dtype.name, numbers)
    return _engine.text_cells_of_list([str(one) for one in index])


def _root(where: str, root: str | os.PathLike[str]) -> str:
    text = os.fspath(root)
    if not isinstance(text, str):
        raise ConfigError(f"{where}: root must be a folder, not {root!r}")
    return text


def _separator(where: str, separator: Any) -> str | None:
    if separator is not None and (not isinstance(separator, str) or not separator):
        raise ConfigError(f"{where}: separator must be text such as ' ', not {separator!r}")
    return separator
