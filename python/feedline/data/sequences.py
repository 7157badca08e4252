# SPDX-License-Identifier: Apache-2.0
"""Datasets that are arrays or tokens instead of files of images."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any, TypedDict

from .. import _engine
from ..errors import ConfigError, StorageError
from . import arguments, recorded_calls, rows, token_chunks, words
from .dataset import Dataset

_Path = str | os.PathLike[str]
_BIG = 2**62


class _DocumentOptions(TypedDict):
    separator: int | None
    documents: str
    shortest: int
    pad: int


def arrays(*, fields: str | Sequence[str] | Any = None, **arrays: Any) -> Dataset:
    """Samples are the rows of arrays with equally many: ``feedline.arrays(x=features, y=labels)``.

    Args:
        fields: arrays that are more than rows of numbers, as in :func:`feedline.open`, ``"NAME:KIND"`` each:
            ``feedline.arrays(photo=photos, objects=feedline.ragged(boxes, counts), fields=["photo:image",
            "objects:boxes"])``. Operations move and colour them as those of stored samples, and what moves the images
            moves masks, boxes and keypoints. Kinds, with the shape of a sample and the dtype:

            - ``image``: uint8, (height, width), (height, width, 1 or 3) or (3, height, width). Where either could be,
              channels come last. Pixels that do not come channel by channel are not copied.
            - ``mask``: labels, uint8 or uint16, (height, width).
            - ``boxes``: (N, 4), what they are by :meth:`Dataset.boxes`; ``keypoints``: (N, 2) or (N, K, 2). Floats or
              integers of up to 63 bits, given as float32 or int64, in a list unless ``collate`` says otherwise. As
              many for every sample, or any number, and none, by :func:`ragged`.
            - ``array``: as without a kind. Beside the others a ragged one is padded too, and is a list where
              :meth:`Dataset.sanitize_bounding_boxes` names it.

            Images and masks whose heights differ are :func:`ragged` too. A sample's key in errors is ``"row 17"``.
        arrays: NumPy arrays, memory-mapped ones too, or torch tensors on the CPU, by the name of their field in a
            batch. Of bool, integers up to 64 bits, or floats of 16, 32 or 64 bits; shape (rows, ...), at most six
            extents. The elements of a row must follow each other; rows may lie in any distance. What
            :func:`ragged` gives is a field whose samples have different lengths, and one more, ``NAME_length``.
            Tensors may be of bfloat16; NumPy has no such dtype, so as NumPy arrays their rows are float32.

    Nothing is copied but the rows of a batch, so what you write into an array shows in batches that are made later.

    Raises:
        ConfigError: not such arrays, their numbers of samples differ, a ragged one's lengths do not fit, or ``fields``
            names an array that there is not, no kind, or one whose shape or dtype the array has not.
    """
    if rows.is_column(fields):  # an array of that name
        arrays, fields = {"fields": fields, **arrays}, None
    kinds = rows.kinds_of(fields, list(arrays))
    described = [rows.of_field(name, array, kinds[name]) for name, array in arrays.items()]
    dataset = Dataset(_engine.arrays(described), ("arrays", "arrays", [], "", "error", False))
    dataset._held = rows.held_in(described)
    values = {name: rows.by_value(array, row) for (name, array), row in zip(arrays.items(), described, strict=True)}
    return recorded_calls.made_by(dataset, "data.sequences:arrays", options={"fields": fields, **values})


def tokens(
    source: _Path | Sequence[_Path],
    *,
    window: int,
    dtype: Any = None,
    stride: int | None = None,
    output_dtype: Any = "int64",
    vocabulary: int | None = None,
    check: bool = False,
    separator: int | None = None,
    documents: words.Documents | None = None,
    pad: int | None = None,
    min_length: int | None = None,
    memory: int | None = None,
) -> Dataset:
    """Windows of token files: ``x`` is ``window`` tokens, ``y`` the same one token later.

    Args:
        source: files of token numbers one behind the other, raw or ``.npy``, or folders of LitData's chunks of tokens
            (with ``index.json``). Windows are read as they are needed.
        window: tokens of a sample.
        dtype: of raw files: ``"uint8"``, ``"int16"``, ``"uint16"``, ``"int32"``, ``"uint32"`` or ``"int64"``,
            little-endian. A ``.npy`` file and LitData's index say themselves.
        stride: tokens from the start of a window to that of the next; None is ``window``. 1 makes every position the
            start of a sample.
        output_dtype: of x and y, ``"int64"`` or ``"int32"``.
        vocabulary: number of different tokens; with ``check=True`` every file is read once, now, and a token that is
            not below it is an error.
        separator: the token that ends a document.
        documents: with a separator, ``"pack"`` (the default) or ``"apart"``.
        pad: with ``"apart"``, what stands in ``x`` behind a sample that is shorter than others of its batch; 0 if not
            given. In ``y`` it is -100, which ``torch.nn.functional.cross_entropy`` leaves out by default.
        min_length: with ``"apart"``, documents of fewer tokens, the separator counted, are left out; 2, the fewest
            possible, if not given. :meth:`Dataset.explain` says how many.
        memory: where all files together have at most so many bytes, what was read of them stays in memory, once in each
            process. None is a 64th of the memory that this process may use, at most 256 MiB; 0 is never.

    A window lies in one file; what is left of a file behind its last whole window is not used.

    ``"pack"``: the windows are the same as without a separator, one document behind the other. A third field,
    ``document`` (int32), is the number of the token's document within the window, from 0, so that attention can stay
    inside a document, and ``y`` is -100 where ``x`` is a separator: the next token is another document's.

    ``"apart"``: no sample has tokens of two documents. A document, the separator at its end included, that has more
    than ``window + 1`` tokens is cut into pieces that begin ``stride`` tokens apart, until one reaches its end; a
    shorter one is a sample of its own length. A batch is as long as its longest sample; a third field, ``length``
    (int64), is the sample's own number of tokens in ``x``. The end of a file ends a document. All files are read
    once, now, to find the documents; 12 bytes of memory per sample say where they are.

    Raises:
        ConfigError: a wrong argument, a size that is no multiple of the token's, no file that holds a window; a
            separator that is outside the vocabulary or the dtype, or that no file has (``"pack"`` looks for it with
            ``check=True`` only).
        StorageError: a file cannot be opened.
        DataError: ``check`` found a token outside the vocabulary.
    """
    given = dict(locals())
    where = "tokens"
    if arguments.flag(where, "check", check) and vocabulary is None:
        raise ConfigError("tokens: check=True needs the vocabulary, the number of different tokens")
    given_paths = list(source) if arguments.is_iterable(source) and not isinstance(source, str | bytes) else [source]
    paths = [arguments.path_text(where, "source", path) for path in given_paths]
    wanted = None if dtype is None else arguments.array_dtype(where, dtype)
    found = [file for path in paths for file in _token_files(path, wanted)]
    stored = {name for _, _, name in found}
    if len(stored) > 1:
        raise ConfigError(f"tokens: the files have different dtypes: {', '.join(sorted(stored))}")
    engine = _engine.tokens(
        [(path, offset) for path, offset, _ in found],
        window=arguments.integer(where, "window", window, low=1, high=_BIG),
        stride=0 if stride is None else arguments.integer(where, "stride", stride, low=1, high=_BIG),
        stored=stored.pop() if stored else "uint16",
        output=arguments.array_dtype(where, output_dtype),
        vocabulary=arguments.integer(where, "vocabulary", vocabulary, low=1, high=_BIG) if check and vocabulary else 0,
        **_documents(separator, documents, pad, min_length, vocabulary),
        memory=None if memory is None else arguments.integer(where, "memory", memory, low=0, high=_BIG),
    )
    dataset = Dataset(engine, ("::".join(path for path, _, _ in found), "tokens", [], "", "error", False))
    return recorded_calls.made_by(dataset, "data.sequences:tokens", options=given)


def windows_of(dataset: Dataset, window: int, options: dict[str, Any]) -> Dataset:
    """What :meth:`Dataset.windows` gives."""
    from ..machine import storage  # with pathlib and urllib

    sources = storage.local_path(dataset.source).split("::")
    if dataset.format != "litdata":
        raise ConfigError(
            f"windows: {dataset.source} is {dataset.format}, and windows are of tokens in LitData's chunks"
        )
    if dataset.operations:
        raise ConfigError(f"windows: {dataset.operations[0]} comes before: cut windows first")
    remote = next((source for source in sources if "://" in source), None)
    if remote is not None:
        raise ConfigError(f"windows: {remote} is on another machine, and tokens are read from files of this one")
    if len(dataset) != sum(token_chunks.documents_of("windows", source) for source in sources):
        raise ConfigError("windows: this is a part of a dataset: cut windows first, and split them")
    wrong = next((name for name in ("source", "dtype") if name in options), None)
    if wrong is not None:
        raise ConfigError(f"windows: {wrong} is the dataset's own")
    return tokens(sources, window=window, **options)


def _documents(
    separator: int | None, documents: str | None, pad: int | None, min_length: int | None, vocabulary: int | None
) -> _DocumentOptions:
    where = "tokens"
    apart = {"documents": documents, "pad": pad, "min_length": min_length}
    if separator is None:
        for name, value in apart.items():
            if value is not None:
                raise ConfigError(f"tokens: {name} needs separator, the token that ends a document")
        return {"separator": None, "documents": "pack", "shortest": 2, "pad": 0}
    end = arguments.integer(where, "separator", separator, low=-_BIG, high=_BIG)
    if vocabulary is not None and not 0 <= end < vocabulary:
        raise ConfigError(f"tokens: separator {end} is outside the vocabulary of {vocabulary}")
    word = "pack" if documents is None else arguments.choice(where, "documents", documents, ("pack", "apart"))
    if word == "pack" and (pad is not None or min_length is not None):
        raise ConfigError('tokens: pad and min_length are for documents="apart": packed windows have one length')
    return {
        "separator": end,
        "documents": word,
        "shortest": 2 if min_length is None else arguments.integer(where, "min_length", min_length, low=2, high=_BIG),
        "pad": 0 if pad is None else arguments.integer(where, "pad", pad, low=-_BIG, high=_BIG),
    }


def _token_files(path: str, dtype: str | None) -> list[tuple[str, int, str]]:
    """Path, bytes before the first token, and dtype: of one file, or of the chunks of a folder."""
    if path.endswith(".npy"):
        found = [(path, *_npy_header(path))]
    elif token_chunks.is_one(path):
        found = token_chunks.files_of("tokens", path)
    elif dtype is None:
        raise ConfigError(f"tokens: {path} does not say what its tokens are: give dtype, such as dtype='uint16'")
    else:
        return [(path, 0, dtype)]
    for file, _, stored in found:
        if dtype is not None and dtype != stored:
            raise ConfigError(f"tokens: {file} holds {stored}, not {dtype}")
    return found


def _npy_header(path: str) -> tuple[int, str]:
    import numpy

    from ..machine import storage  # with pathlib and urllib

    place = storage.local_path(path)
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", place):
        return 0, "uint16"  # of another place: the engine says why it does not read there
    try:
        mapped = numpy.load(place, mmap_mode="r")
    except FileNotFoundError as error:
        raise StorageError(f"tokens: no such file or folder: {path}", errno=error.errno) from None
    except OSError as error:
        raise StorageError(f"tokens: cannot open {path}: {error.strerror or error}", errno=error.errno) from None
    except ValueError as error:
        raise ConfigError(f"tokens: {path} is no .npy file of numbers: {error}") from None
    if mapped.ndim != 1 or not mapped.dtype.isnative:
        raise ConfigError(
            f"tokens: {path} holds {mapped.dtype.str} of shape {mapped.shape}; one row of tokens was expected"
        )
    return int(mapped.offset), str(mapped.dtype.name)
