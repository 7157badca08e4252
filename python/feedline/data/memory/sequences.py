# SPDX-License-Identifier: Apache-2.0
"""Datasets of arrays or tokens instead of image files."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any, TypedDict

from ... import _engine
from ...errors import ConfigError, StorageError
from .. import arguments, literals, recorded_calls
from ..dataset import Dataset
from ..source_spec import SourceSpec
from . import litdata_tokens, rows

_BIG = 2**62


class _DocumentOptions(TypedDict):
    separator: int | None
    documents: str
    shortest: int
    pad: int


def arrays(*, fields: str | Sequence[str] | Any = None, **arrays: Any) -> Dataset:
    """Creates a dataset whose samples are the rows of equally long arrays: ``feedline.arrays(x=features, y=labels)``.

    Args:
        fields: kinds of arrays that are not plain numbers, as ``"NAME:KIND"``, as in :func:`feedline.open`:
            ``feedline.arrays(photo=photos, objects=feedline.ragged(boxes, counts), fields=["photo:image",
            "objects:boxes"])``. Operations treat these arrays like stored fields, and geometric operations on images
            also transform masks, boxes and keypoints. Kinds, with the shape of a sample and the dtype:

            - ``image``: uint8, (height, width), (height, width, 1 or 3) or (3, height, width). Ambiguous shapes are
              treated as channels-last. Channels-last pixels are not copied.
            - ``mask``: labels, uint8 or uint16, (height, width).
            - ``boxes``: (N, 4), in the format set by :meth:`Dataset.boxes`; ``keypoints``: (N, 2) or (N, K, 2). The
              dtype is a float or an integer of up to 63 bits; in batches it is float32 or int64, as lists unless
              :meth:`Dataset.collate` sets another form. N is the same for all samples, or any number, including 0, with
              :func:`ragged`.
            - ``array``: the default. Ragged arrays are padded; if :meth:`Dataset.sanitize_bounding_boxes` names them,
              they are batched as lists.

            Images and masks with different heights are also passed as :func:`ragged`. In errors, a sample's key is its
            row, such as ``"row 17"``.
        arrays: NumPy arrays, including memory-mapped ones, or torch tensors on the CPU; the keyword is the field's name
            in a batch. Dtypes are bool, integers of up to 64 bits, and floats of 16, 32 or 64 bits; shapes are (rows,
            ...), with at most six dimensions. The elements of a row must be contiguous; rows may have any stride. The
            result of :func:`ragged` is a field whose samples have different lengths, and adds a field ``NAME_length``.
            Tensors may be bfloat16; as NumPy arrays, their rows are float32, because NumPy has no bfloat16.

    Only the rows of a batch are copied, so later changes to an array are visible in later batches.

    Raises:
        ConfigError: an array is not supported, arrays have different numbers of samples, ragged lengths do not match,
            or ``fields`` names an unknown array or kind, or a kind that does not match the array's shape or dtype.
    """
    if rows.is_column(fields):  # an array with that name
        arrays, fields = {"fields": fields, **arrays}, None
    kinds = rows.kinds_of(fields, list(arrays))
    described = [rows.of_field(name, array, kinds[name]) for name, array in arrays.items()]
    dataset = Dataset(_engine.arrays(described), SourceSpec("arrays", "arrays"))
    dataset._held = rows.held_in(described)
    values = {name: rows.by_value(array, row) for (name, array), row in zip(arrays.items(), described, strict=True)}
    return recorded_calls.made_by(dataset, "data.memory.sequences:arrays", options={"fields": fields, **values})


def tokens(
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    window: int | None = None,
    dtype: Any = None,
    stride: int | None = None,
    output_dtype: Any = "int64",
    vocabulary: int | None = None,
    check: bool = False,
    separator: int | None = None,
    documents: literals.Documents | None = None,
    pad: int | None = None,
    min_length: int | None = None,
    memory: int | None = None,
    boundaries: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
    loss_masks: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
) -> Dataset:
    """Reads windows of token files: ``x`` contains ``window`` tokens, and ``y`` the same window shifted by one token.

    Args:
        source: files of consecutive token numbers, raw or ``.npy``, patterns such as ``"part-*.npy"``, or folders of
            LitData's token chunks (with ``index.json``). Windows are read on demand.
        window: tokens per sample; required unless ``documents="whole"``.
        dtype: dtype of raw files, and of ``.npy`` files without NumPy's header, as OLMo-core writes them: ``"uint8"``,
            ``"int8"``, ``"int16"``, ``"uint16"``, ``"int32"``, ``"uint32"`` or ``"int64"``, little-endian. Other
            ``.npy`` files and LitData's index specify their dtype.
        stride: tokens between the starts of windows; None is ``window``. With a stride of 1, a sample starts at every
            position.
        output_dtype: dtype of x and y, ``"int64"`` or ``"int32"``.
        vocabulary: number of different tokens; with ``check=True`` every file is read once, immediately, and a token
            that is not below ``vocabulary`` raises an error.
        separator: the token that ends a document.
        documents: how documents are placed in samples if there is a separator: ``"pack"`` (the default), ``"apart"``
            or ``"whole"``, as described below.
        pad: with ``"apart"``, the token that pads the shorter samples of a batch in ``x``; by default 0. ``y`` is
            padded with -100, which ``torch.nn.functional.cross_entropy`` ignores by default.
        min_length: with ``"apart"``, documents with fewer tokens, including the separator, are skipped; by default 2,
            the minimum. :meth:`Dataset.explain` shows the number of skipped documents.
        memory: if all files together have at most this many bytes, each process keeps in memory the data that it has
            read. None is 1/64 of the memory that this process may use, at most 256 MiB; 0 disables this cache.
        boundaries: with ``"whole"``, instead of ``separator``: a file for each token file, in the same order, or a
            pattern, with the documents' first tokens and the tokens after their last: lines ``START,END``
            (``.csv.gz``, as OLMo-core writes them next to its ``.npy`` files) or ``{"start": 0, "end": 5}``
            (``.jsonl.gz``). Documents follow one another; tokens after the last one are not used.
        loss_masks: with ``"whole"``: a file for each token file, in the same order, or a pattern, with a byte per
            token, which is 0 if the token is not trained, such as OLMo-core's label masks. They become the field
            ``loss_mask`` (bool), which :meth:`Dataset.pack_sequences` applies.

    Windows do not cross files; tokens after the last complete window of a file are not used.

    ``"pack"``: windows are the same as without a separator and may contain several documents. A third field,
        ``document`` (int32), is the number of the token's document within the window, from 0, so that attention can be
        restricted to a document. ``y`` is -100 at positions where ``x`` is a separator, because the next token belongs
        to another document.

    ``"apart"``: samples do not cross documents. A document of more than ``window + 1`` tokens, including its separator,
    is split into pieces that begin ``stride`` tokens apart, until a piece reaches the document's end; a shorter
    document is a shorter sample. A batch is as long as its longest sample; a third field, ``length`` (int64), is the
    sample's number of tokens in ``x``. The end of a file ends a document. All files are read once, immediately, to find
    the documents; their positions take 12 bytes of memory per sample.

    ``"whole"``: each sample is a document with its separator, as :meth:`Dataset.pack_sequences` requires. The fields
        are ``tokens`` (int64), and ``tokens_length``. The end of a file ends a document. All files are read once,
        immediately, to find the documents, whose ends take 8 bytes of memory each.

    Raises:
        ConfigError: an argument is wrong, a file size is not a multiple of the token size, no file contains a complete
            window, or the separator is outside the vocabulary or the dtype, or occurs in no file (``"pack"`` checks the
            files only with ``check=True``).
        StorageError: a file cannot be opened.
        DataError: ``check`` found a token outside the vocabulary, or boundaries or a loss mask do not match their
            token file.
    """
    given = dict(locals())
    where = "tokens"
    if arguments.flag(where, "check", check) and vocabulary is None:
        raise ConfigError("tokens: check=True requires vocabulary, the number of different tokens")
    whole = isinstance(documents, str) and documents == "whole"
    if window is None and not whole:
        raise ConfigError('tokens: pass window, the number of tokens per sample, or documents="whole"')
    for name, value in {"window": window, "stride": stride}.items():
        if whole and value is not None:
            raise ConfigError(f'tokens: documents="whole" does not support {name}: each sample is a document')
    for name, files in {"boundaries": boundaries, "loss_masks": loss_masks}.items():
        if files is not None and not whole:
            raise ConfigError(f'tokens: {name} require documents="whole"')
    if boundaries is not None and separator is not None:
        raise ConfigError("tokens: pass separator or boundaries, not both")
    paths = _paths("source", source)
    wanted = None if dtype is None else arguments.array_dtype(where, dtype)
    found = [file for path in paths for file in _token_files(path, wanted)]
    stored = {name for _, _, name in found}
    if len(stored) > 1:
        raise ConfigError(f"tokens: the files have different dtypes: {', '.join(sorted(stored))}")
    ends: list[bytes | None] = [None] * len(found)
    if boundaries is not None:
        from . import document_boundaries  # few datasets need it

        local = _companions("boundaries", boundaries, len(found))
        ends = [document_boundaries.ends_of(where, path) for path in local]
    masks = [""] * len(found) if loss_masks is None else _companions("loss_masks", loss_masks, len(found))
    engine = _engine.tokens(
        [(path, offset, end, mask) for (path, offset, _), end, mask in zip(found, ends, masks, strict=True)],
        window=0 if whole else arguments.integer(where, "window", window, low=1, high=_BIG),
        stride=0 if stride is None else arguments.integer(where, "stride", stride, low=1, high=_BIG),
        stored=stored.pop() if stored else "uint16",
        output=arguments.array_dtype(where, output_dtype),
        vocabulary=arguments.integer(where, "vocabulary", vocabulary, low=1, high=_BIG) if check and vocabulary else 0,
        **_documents(separator, documents, pad, min_length, vocabulary, boundaries is not None),
        memory=None if memory is None else arguments.integer(where, "memory", memory, low=0, high=_BIG),
    )
    dataset = Dataset(engine, SourceSpec("::".join(path for path, _, _ in found), "tokens"))
    return recorded_calls.made_by(dataset, "data.memory.sequences:tokens", options=given)


def windows_of(dataset: Dataset, window: int, options: dict[str, Any]) -> Dataset:
    """Implements :meth:`Dataset.windows`."""
    from ...machine import storage  # imports pathlib and urllib

    sources = storage.local_path(dataset.source).split("::")
    if dataset.format != "litdata":
        raise ConfigError(
            f"windows: the format of {dataset.source} is {dataset.format}; windows() requires LitData's token chunks"
        )
    if dataset.operations:
        raise ConfigError(f"windows: windows() follows {dataset.operations[0]}; call windows() first")
    remote = next((source for source in sources if "://" in source), None)
    if remote is not None:
        raise ConfigError(f"windows: {remote} is remote; tokens are read only from local files")
    if len(dataset) != sum(litdata_tokens.documents_of("windows", source) for source in sources):
        raise ConfigError("windows: the dataset is a subset; call windows first and split the result")
    wrong = next((name for name in ("source", "dtype") if name in options), None)
    if wrong is not None:
        raise ConfigError(f"windows: the dataset sets {wrong}; omit {wrong}=")
    return tokens(sources, window=window, **options)


def _paths(name: str, given: Any) -> list[str]:
    """Returns the paths of files, with those of patterns in the order of their names."""
    listed = list(given) if arguments.is_iterable(given) and not isinstance(given, str | bytes) else [given]
    found: list[str] = []
    for path in (arguments.path_text("tokens", name, one) for one in listed):
        is_pattern = any(mark in path for mark in "*?[{") and "://" not in path and not os.path.exists(path)
        found += map(os.fsdecode, _engine.StoredSource(path).shards().names) if is_pattern else [path]
    return found


def _companions(name: str, given: Any, count: int) -> list[str]:
    """Returns the local paths of files that belong to the token files."""
    from ...machine import storage  # imports pathlib and urllib

    paths = [storage.local_path(path) for path in _paths(name, given)]
    if len(paths) != count:
        raise ConfigError(
            f"tokens: {name} has {len(paths)} files, but there are {count} token files; pass one for each"
        )
    return paths


def _documents(
    separator: int | None,
    documents: str | None,
    pad: int | None,
    min_length: int | None,
    vocabulary: int | None,
    has_boundaries: bool,
) -> _DocumentOptions:
    where = "tokens"
    apart = {"documents": documents, "pad": pad, "min_length": min_length}
    if has_boundaries:
        if pad is not None or min_length is not None:
            raise ConfigError('tokens: pad and min_length require documents="apart"')
        return {"separator": None, "documents": "whole", "shortest": 2, "pad": 0}
    if separator is None:
        for name, value in apart.items():
            if value is not None:
                raise ConfigError(f"tokens: {name} requires separator=, the token that ends a document")
        return {"separator": None, "documents": "pack", "shortest": 2, "pad": 0}
    end = arguments.integer(where, "separator", separator, low=-_BIG, high=_BIG)
    if vocabulary is not None and not 0 <= end < vocabulary:
        raise ConfigError(f"tokens: separator {end} is outside the vocabulary of {vocabulary}")
    choices = ("pack", "apart", "whole")
    word = "pack" if documents is None else arguments.choice(where, "documents", documents, choices)
    if word != "apart" and (pad is not None or min_length is not None):
        raise ConfigError('tokens: pad and min_length require documents="apart"')
    return {
        "separator": end,
        "documents": word,
        "shortest": 2 if min_length is None else arguments.integer(where, "min_length", min_length, low=2, high=_BIG),
        "pad": 0 if pad is None else arguments.integer(where, "pad", pad, low=-_BIG, high=_BIG),
    }


def _token_files(path: str, dtype: str | None) -> list[tuple[str, int, str]]:
    """Returns the path, the number of bytes before the first token, and the dtype of one file, or of each chunk in a
    folder.
    """
    if path.endswith(".npy") and not (dtype is not None and _is_raw(path)):
        found = [(path, *_npy_header(path))]
    elif litdata_tokens.is_one(path):
        found = litdata_tokens.files_of("tokens", path)
    elif dtype is None:
        raise ConfigError(f"tokens: {path} does not specify a dtype: pass one, such as dtype='uint16'")
    else:
        return [(path, 0, dtype)]
    for file, _, stored in found:
        if dtype is not None and dtype != stored:
            raise ConfigError(f"tokens: {file} contains {stored}, not {dtype}")
    return found


def _is_raw(path: str) -> bool:
    """Whether a local file lacks NumPy's header."""
    from ...machine import storage  # imports pathlib and urllib

    try:
        with open(storage.local_path(path), "rb") as file:
            return file.read(6) != b"\x93NUMPY"
    except OSError:
        return False  # _npy_header() reports the error


def _npy_header(path: str) -> tuple[int, str]:
    import numpy

    from ...machine import storage  # imports pathlib and urllib

    local = storage.local_path(path)
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", local):
        return 0, "uint16"  # the engine reports why it cannot read remote tokens
    try:
        mapped = numpy.load(local, mmap_mode="r")
    except FileNotFoundError as error:
        raise StorageError(f"tokens: no such file or folder: {path}", errno=error.errno) from None
    except OSError as error:
        raise StorageError(f"tokens: cannot open {path}: {error.strerror or error}", errno=error.errno) from None
    except ValueError as error:
        raise ConfigError(
            f"tokens: {path} is not a .npy file of numbers: {error}; without NumPy's header, pass dtype="
        ) from None
    if mapped.ndim != 1 or not mapped.dtype.isnative:
        raise ConfigError(
            f"tokens: {path} contains {mapped.dtype.str} of shape {mapped.shape}; tokens must be one-dimensional"
        )
    return int(mapped.offset), str(mapped.dtype.name)
