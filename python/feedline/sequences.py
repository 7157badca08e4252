# SPDX-License-Identifier: Apache-2.0
"""Data sets that are arrays or tokens instead of files of images."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from . import _engine, arguments
from .dataset import Dataset
from .errors import ConfigError, StorageError

_Path = str | os.PathLike[str]
_BIG = 2**62


def arrays(**fields: Any) -> Dataset:
    """Samples are the rows of arrays with equally many: ``feedline.arrays(x=features, y=labels)``.

    Args:
        fields: NumPy arrays, memory-mapped ones too, or torch tensors on the CPU, by the name of their field in a
            batch. Of bool, integers up to 64 bits, or floats of 16, 32 or 64 bits; shape (rows, ...), at most six
            extents. The elements of a row must follow each other; rows may lie in any distance.

    Nothing is copied but the rows of a batch, so what you write into an array shows in batches that are made later.

    Raises:
        ConfigError: not such arrays, or their numbers of rows differ.
    """
    return Dataset(_engine.arrays([_row(name, array) for name, array in fields.items()]), ("arrays", "arrays", [], ""))


def tokens(
    source: _Path | Sequence[_Path],
    *,
    window: int,
    dtype: Any = None,
    stride: int | None = None,
    output_dtype: Any = "int64",
    vocabulary: int | None = None,
    check: bool = False,
) -> Dataset:
    """Windows of token files: ``x`` is ``window`` tokens, ``y`` the same one token later.

    Args:
        source: files of token numbers one behind the other, raw or ``.npy``. Windows are read as they are needed.
        window: tokens of a sample.
        dtype: of raw files: ``"uint8"``, ``"int16"``, ``"uint16"``, ``"int32"``, ``"uint32"`` or ``"int64"``,
            little-endian. A ``.npy`` file says itself.
        stride: tokens from the start of a window to that of the next; None is ``window``. 1 makes every position the
            start of a sample.
        output_dtype: of x and y, ``"int64"`` or ``"int32"``.
        vocabulary: number of different tokens; with ``check=True`` every file is read once, now, and a token that is
            not below it is an error.

    A window lies in one file; what is left of a file behind its last whole window is not used.

    Raises:
        ConfigError: a wrong argument, a size that is no multiple of the token's, no file that holds a window.
        StorageError: a file cannot be opened.
        DataError: ``check`` found a token outside the vocabulary.
    """
    where = "tokens"
    if check and vocabulary is None:
        raise ConfigError("tokens: check=True needs the vocabulary, the number of different tokens")
    paths = [source] if isinstance(source, str | os.PathLike) else list(source)
    found = [
        _token_file(os.fspath(path), None if dtype is None else arguments.array_dtype(where, dtype)) for path in paths
    ]
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
    )
    return Dataset(engine, ("::".join(path for path, _, _ in found), "tokens", [], ""))


def _row(name: str, array: Any) -> tuple[str, Any, int, int, int, str, list[int]]:
    """What the engine needs to know of an array."""
    if hasattr(array, "data_ptr"):
        return _tensor_row(name, array)
    if not hasattr(array, "__array_interface__"):
        raise ConfigError(f"arrays: {name} must be a NumPy array or a torch tensor, not {type(array).__name__}")
    _require_rows(name, array.shape)
    if not array.dtype.isnative:
        raise ConfigError(f"arrays: {name} has the byte order of another machine ({array.dtype.str})")
    _require_dense(name, array.shape, array.strides, array.itemsize)
    address = array.__array_interface__["data"][0]
    return name, array, address, array.shape[0], array.strides[0], array.dtype.name, list(array.shape[1:])


def _tensor_row(name: str, tensor: Any) -> tuple[str, Any, int, int, int, str, list[int]]:
    if tensor.device.type != "cpu" or str(tensor.layout) != "torch.strided":
        raise ConfigError(f"arrays: {name} must be a dense tensor on the CPU")
    _require_rows(name, tensor.shape)
    size = tensor.element_size()
    strides = [stride * size for stride in tensor.stride()]
    _require_dense(name, tensor.shape, strides, size)
    dtype = str(tensor.dtype).removeprefix("torch.")
    return name, tensor, tensor.data_ptr(), tensor.shape[0], strides[0], dtype, list(tensor.shape[1:])


def _require_rows(name: str, shape: Sequence[int]) -> None:
    if not shape:
        raise ConfigError(f"arrays: {name} is a single number, which has no rows")


def _require_dense(name: str, shape: Sequence[int], strides: Sequence[int], itemsize: int) -> None:
    if 0 in shape:
        return  # the engine says what is missing
    expected = itemsize
    for extent, stride in zip(reversed(shape[1:]), reversed(strides[1:]), strict=True):
        if extent > 1 and stride != expected:
            raise ConfigError(f"arrays: the elements of a row of {name} do not follow each other; copy it first")
        expected *= extent


def _token_file(path: str, dtype: str | None) -> tuple[str, int, str]:
    """Path, bytes before the first token, and dtype."""
    if not path.endswith(".npy"):
        if dtype is None:
            raise ConfigError(f"tokens: {path} does not say what its tokens are: give dtype, such as dtype='uint16'")
        return path, 0, dtype
    offset, stored = _npy_header(path)
    if dtype is not None and dtype != stored:
        raise ConfigError(f"tokens: {path} holds {stored}, not {dtype}")
    return path, offset, stored


def _npy_header(path: str) -> tuple[int, str]:
    import numpy

    try:
        mapped = numpy.load(path, mmap_mode="r")
    except OSError as error:
        raise StorageError(f"tokens: cannot open {path}: {error.strerror or error}", errno=error.errno) from None
    except ValueError as error:
        raise ConfigError(f"tokens: {path} is no .npy file of numbers: {error}") from None
    if mapped.ndim != 1 or not mapped.dtype.isnative:
        raise ConfigError(
            f"tokens: {path} holds {mapped.dtype.str} of shape {mapped.shape}; one row of tokens was expected"
        )
    return int(mapped.offset), str(mapped.dtype.name)
