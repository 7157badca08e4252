# SPDX-License-Identifier: Apache-2.0
"""Tables of Hugging Face's datasets whose images are transformed by a recognised function. The engine reads the images
without copying them.
"""

from __future__ import annotations

import bisect
import itertools
import operator
import os
import sys
import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy

from .... import _engine
from ..functions import batch_functions
from ..functions.batch_functions import OfImages
from ..transforms import transforms
from . import sources

_CHANNELS = {"RGB": 3, "L": 1}
_FROM_ANY = ("RGB", "MaybeConvertMode", "_convert_to_rgb")  # transforms that convert images of any mode to RGB
_BINARY = {"binary": numpy.int32, "large_binary": numpy.int64}  # Arrow type -> dtype of its offsets


def is_one(dataset: Any) -> bool:
    """Returns whether `dataset` is exactly a `datasets.Dataset`, not a subclass."""
    return type(dataset) is getattr(sys.modules.get("datasets.arrow_dataset"), "Dataset", None)


class Encoded(NamedTuple):
    """The encoded image of a row. `data`: a view of Arrow's memory; None if the image is stored in the file at
    `path`.
    """

    path: str
    data: Any

    def given(self) -> tuple[bytes, int, int]:
        """Returns the image in the form that the engine accepts."""
        if self.data is None:
            return os.fsencode(self.path), 0, 0
        return os.fsencode(self.path or "image"), self.data.address, self.data.size


class ImageTable:
    """A column of images in the order of a dataset's rows, and the function that transforms its rows.

    Attributes:
        function: the dataset's transform function.
        names: (name in a sample, column) for each value of a sample, in order; the column is None for the transformed
            image.
        mode: the mode (as in Pillow) of the images passed to the transforms.
        dataset: the engine's dataset for the images, before any transform.
    """

    def __init__(self, leaf: Any) -> None:
        """Raises:
        ValueError: the engine does not support this dataset; the message is the reason.
        """
        self._data, self._indices, self._key = leaf._data, leaf._indices, _key_of(leaf)
        self.function, columns = _known_function(leaf)
        image = self.function.image
        feature = leaf.features[image]
        self.names = self.function.names(columns)
        if any(column == image for _, column in self.names):
            raise ValueError(f'a sample contains "{image}", a PIL image, in addition to "{self.function.made}"')
        self._column = _Column(leaf._data.column(image))
        self._rows = None if leaf._indices is None else leaf._indices.column("indices").to_numpy()
        self._size = len(leaf)
        others = sorted({column for _, column in self.names if column is not None})
        # datasets' own code creates the values of the other columns
        self._others = leaf.with_format(None).select_columns(others) if others else None
        is_rgb = self.function.converts or converts(self.function.transform)
        self._decides_mode = is_rgb or feature.mode is not None
        self.mode = feature.mode or ("RGB" if is_rgb else self._mode_of_first())
        if self.mode not in _CHANNELS:
            raise ValueError(
                f"the dataset's images have mode {self.mode or 'other than RGB and L'}, which the engine does not "
                "support"
            )
        if is_rgb and self.mode != "RGB":
            raise ValueError(
                f"the dataset's images have mode {self.mode}, and are converted to RGB only after the transform"
            )
        self.dataset = self._dataset(sources.GivenFiles("images"))

    @property
    def channels(self) -> int:
        return _CHANNELS[self.mode]

    def files(self) -> sources.GivenFiles:
        """Creates the object through which the engine receives images of this table."""
        files = sources.GivenFiles("images")
        files.engine.keep(self._data)
        files.dataset = self._dataset(files)
        return files

    def is_of(self, leaf: Any) -> bool:
        """Returns whether the dataset still has the same rows, format and function."""
        return self._data is leaf._data and self._indices is leaf._indices and self._key == _key_of(leaf)

    def row(self, index: Any) -> int:
        """Raises:
        IndexError, TypeError: `index` is not a valid, non-negative row number.
        """
        row = operator.index(index)
        if not 0 <= row < self._size:
            raise IndexError("not a row")
        return row

    def image(self, row: int) -> Encoded:
        return self._column.image(row if self._rows is None else int(self._rows[row]))

    def fits(self, image: Encoded) -> bool:
        """Returns whether an image has the mode that the transforms need."""
        return self._decides_mode or (
            image.data is not None and _engine.pillow_mode_of(memoryview(image.data)) == self.mode
        )

    def others(self, rows: Sequence[int]) -> list[dict[str, Any]]:
        """Returns, for each row, the values that are not images, by their names in a sample."""
        if self._others is None:
            return [{} for _ in rows]
        columns = self._others[list(rows)]
        names = [(name, column) for name, column in self.names if column is not None]
        return [{name: columns[column][i] for name, column in names} for i in range(len(rows))]

    def sample(self, made: Any, others: dict[str, Any]) -> dict[str, Any]:
        """Returns the sample of a row in the form that the dataset returns."""
        return {name: made if column is None else others[name] for name, column in self.names}

    def _dataset(self, files: sources.GivenFiles) -> Any:
        return files.dataset.decode(self.mode, apply_exif_orientation=True)

    def _mode_of_first(self) -> str:
        first = self.image(0) if self._size else None
        return _engine.pillow_mode_of(memoryview(first.data)) if first is not None and first.data is not None else ""


_known: weakref.WeakKeyDictionary[Any, ImageTable] = weakref.WeakKeyDictionary()


def of(leaf: Any) -> ImageTable:
    """Returns the table of a dataset. The object is reused as long as the dataset has the same rows and transform.

    Raises:
        ValueError: see ImageTable.
    """
    table = _known.get(leaf)
    if table is None or not table.is_of(leaf):
        table = _known[leaf] = ImageTable(leaf)
    return table


def _key_of(leaf: Any) -> tuple[Any, ...]:
    kwargs, columns = leaf._format_kwargs or {}, leaf._format_columns
    return (leaf._format_type, kwargs.get("transform"), columns and tuple(columns), leaf._output_all_columns)


def _known_function(leaf: Any) -> tuple[OfImages, list[str]]:
    """Returns the dataset's transform function, and the columns that it receives."""
    if leaf._format_type != "custom":
        raise ValueError(
            f"the dataset's format is {leaf._format_type or 'Python'!s}, not one set by with_transform() or "
            "set_transform()"
        )
    if leaf._output_all_columns:
        raise ValueError("output_all_columns=True")
    if set(leaf._format_kwargs) != {"transform"}:
        raise ValueError("the dataset's format has arguments other than a transform")
    transform = leaf._format_kwargs["transform"]
    function = batch_functions.of_images(transform)
    name = getattr(transform, "__qualname__", type(transform).__qualname__)
    if function is None:
        raise ValueError(f"{name} is not a function that the engine recognises")
    columns = [name for name in leaf.column_names if leaf._format_columns is None or name in leaf._format_columns]
    missing = {column for _, column in function.names(columns) if column is not None} | {function.image}
    if not missing.issubset(columns):
        raise ValueError(f"{name} uses columns that do not exist")
    feature = leaf.features[function.image]
    if type(feature) is not getattr(sys.modules.get("datasets.features.image"), "Image", None) or not feature.decode:
        raise ValueError(f'the column "{function.image}" is not an Image feature with decoding enabled')
    return function, columns


def converts(transform: Any) -> bool:
    """Returns whether the first transform converts images of any mode to RGB."""
    members = transforms.members_of(transform)
    return bool(members) and transforms.name_of(members[0]) in _FROM_ANY and transforms.is_known(members[0])


# -- Arrow


class _Column:
    """The images in a table's column, as views of memory that Arrow owns or maps."""

    def __init__(self, column: Any) -> None:
        """Raises:
        ValueError: the column does not store images in a supported type.
        """
        self._chunks = list(column.chunks)
        self._ends = list(itertools.accumulate(map(len, self._chunks)))
        self._opened: dict[int, _Chunk] = {}
        fields = {field.name: str(field.type) for field in column.type} if str(column.type).startswith("struct") else {}
        if fields.get("bytes") not in _BINARY or fields.get("path") != "string":
            raise ValueError(f"the dataset's images are stored as {column.type}")

    def image(self, row: int) -> Encoded:
        number = bisect.bisect_right(self._ends, row)
        chunk = self._opened.get(number)
        if chunk is None:
            chunk = self._opened[number] = _Chunk(self._chunks[number])
        return chunk.image(row - (self._ends[number - 1] if number else 0))


class _Chunk:
    def __init__(self, chunk: Any) -> None:
        self._paths = chunk.field("path")
        self._whole = chunk
        files = chunk.field("bytes")
        _, offsets, self._data = files.buffers()
        dtype = numpy.dtype(_BINARY[str(files.type)])
        first = files.offset * dtype.itemsize
        self._offsets = numpy.frombuffer(offsets, dtype, len(files) + 1, first) if len(files) else None
        self._valid = files.is_valid() if files.null_count else None

    def image(self, row: int) -> Encoded:
        path = self._paths[row].as_py() or ""
        is_absent = self._whole.null_count and not self._whole[row].is_valid
        if is_absent or self._offsets is None or self._data is None:
            return Encoded("" if is_absent else path, None)
        if self._valid is not None and not self._valid[row].as_py():
            return Encoded("" if "://" in path else path, None)
        begin, end = int(self._offsets[row]), int(self._offsets[row + 1])
        return Encoded(path, self._data.slice(begin, end - begin))
