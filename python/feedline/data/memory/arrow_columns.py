# SPDX-License-Identifier: Apache-2.0
"""Converts columns of Arrow tables, without copies if possible."""

from __future__ import annotations

from typing import Any

from ... import _engine
from ..._engine import TextCells
from ...errors import DataError
from .column import Column
from .list_columns import of_numpy


def of_arrow(where: str, name: str, raw: Any) -> Column:
    import pyarrow
    import pyarrow.compute
    import pyarrow.types as types

    chunked = raw if isinstance(raw, pyarrow.ChunkedArray) else pyarrow.chunked_array([raw])
    missing = None
    if chunked.null_count:
        missing = int(pyarrow.compute.index(chunked.is_null(), True).as_py())
    if types.is_dictionary(chunked.type) and types.is_string(chunked.type.value_type):
        chunked = chunked.cast(chunked.type.value_type)
    if _is_text(chunked.type):
        are_views = _is_view(chunked.type)
        made = Column(where, name, len(chunked), missing=missing)
        try:
            made.cells = _arrow_views(chunked) if are_views else _arrow_cells(chunked)
        except DataError as error:
            raise DataError(f"{where}: the column {name!r}: {error}") from None
        made.encode = None if are_views else lambda: _arrow_codes(chunked)
        made.texts = lambda most: chunked.slice(0, most).to_pylist()
        return made
    is_number = types.is_integer(chunked.type) or types.is_floating(chunked.type) or types.is_boolean(chunked.type)
    if is_number and missing is None:
        return of_numpy(where, name, chunked.to_numpy())
    if types.is_fixed_size_list(chunked.type) and missing is None:
        flat = chunked.combine_chunks().flatten()
        if not flat.null_count and (types.is_integer(flat.type) or types.is_floating(flat.type)):
            return of_numpy(where, name, flat.to_numpy().reshape(len(chunked), chunked.type.list_size))
    made = Column(where, name, len(chunked), objects_of=chunked.to_pylist, missing=missing)
    if (types.is_list(chunked.type) or types.is_large_list(chunked.type)) and _is_text(chunked.type.value_type):
        made.lists = lambda: _arrow_lists(chunked)
    return made


def _is_text(kind: Any) -> bool:
    import pyarrow.types as types

    return bool(types.is_string(kind) or types.is_large_string(kind) or _is_view(kind))


def _is_view(kind: Any) -> bool:
    import pyarrow.types as types

    return hasattr(types, "is_string_view") and bool(types.is_string_view(kind))


def _arrow_cells(chunked: Any) -> TextCells:
    import pyarrow.types as types

    size = 8 if types.is_large_string(chunked.type) else 4
    chunks = []
    for chunk in chunked.chunks:
        if len(chunk) == 0:
            continue
        _, offsets, data = chunk.buffers()
        chunks.append((len(chunk), offsets.address + chunk.offset * size, size, _buffer(data)))
    return _engine.text_cells_of_arrow(chunks, chunked)


def _buffer(buffer: Any) -> tuple[int, int]:
    return (buffer.address, buffer.size) if buffer else (0, 0)


def _arrow_views(chunked: Any) -> TextCells:
    chunks = []
    for chunk in chunked.chunks:
        if len(chunk) == 0:
            continue
        _, views, *buffers = chunk.buffers()
        at = views.address + chunk.offset * 16  # a view has 16 bytes
        chunks.append((len(chunk), at, [_buffer(buffer) for buffer in buffers]))
    return _engine.text_cells_of_arrow_views(chunks, chunked)


def _arrow_codes(chunked: Any) -> tuple[Any, list[Any]]:
    import pyarrow

    encoded = pyarrow.compute.dictionary_encode(chunked).unify_dictionaries()
    chunks = [chunk for chunk in encoded.chunks if len(chunk)]
    texts = chunks[0].dictionary.to_pylist()
    codes = pyarrow.chunked_array([chunk.indices for chunk in chunks])
    if codes.null_count:
        texts.append(None)
        codes = pyarrow.compute.fill_null(codes, len(texts) - 1)
    return codes.to_numpy(), texts


def _arrow_lists(chunked: Any) -> tuple[Any, Any, list[str]] | None:
    """Returns lists of text as offsets (rows + 1), codes and names; None if a list contains a missing value. The list
    of a missing row is empty.
    """
    import numpy
    import pyarrow
    import pyarrow.compute

    counts = pyarrow.compute.fill_null(pyarrow.compute.list_value_length(chunked), 0).to_numpy()
    offsets = numpy.zeros(len(counts) + 1, numpy.int64)
    numpy.cumsum(counts, out=offsets[1:])
    texts = pyarrow.compute.list_flatten(chunked)
    if texts.null_count:
        return None
    if _is_view(texts.type):
        texts = texts.cast(pyarrow.large_string())  # older versions of Arrow cannot encode views
    if not len(texts):
        return offsets, numpy.zeros(0, numpy.int32), []
    return offsets, *_arrow_codes(texts)
