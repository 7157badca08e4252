# SPDX-License-Identifier: Apache-2.0
"""Samples of different lengths, one behind the other in one array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import ConfigError
from . import arguments

_WHERE = "ragged"


class Ragged:
    """Samples of different lengths. Made by :func:`ragged`, for :func:`feedline.arrays`.

    Attributes:
        values: the samples' rows, one behind the other: an array of shape (total, ...).
        offsets: int64, (samples + 1,): sample i is ``values[offsets[i]:offsets[i + 1]]``.
        pad: the bytes of the number that stands in a batch behind its shorter samples.
    """

    __slots__ = ("offsets", "pad", "values")

    def __init__(self, values: Any, offsets: Any, pad: bytes) -> None:
        self.values = values
        self.offsets = offsets
        self.pad = pad

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __repr__(self) -> str:
        return f"<feedline.ragged of {len(self)} samples in {len(self.values)} rows>"


def ragged(values: Any, lengths: Any = None, *, offsets: Any = None, pad_value: float = 0) -> Ragged:
    """A field of samples of different lengths: ``feedline.arrays(text=feedline.ragged(tokens, lengths), label=y)``.

    In a batch, ``text`` has the shape (rows, longest of them, ...), and ``text_length`` (int64, (rows,)) says how
    much of a row is the sample; ``ds[i].text`` has the sample's own length. Every sample has at least one row,
    unless ``fields=`` of :func:`feedline.arrays` names kinds: then only images and masks must.

    Args:
        values: an array of shape (total, ...) as :func:`feedline.arrays` takes it, the samples one behind the other;
            it is not copied. Or a list of arrays (total_i, ...), one per sample and all of one dtype, which are
            copied, once, into one array.
        lengths: (samples,), rows of each sample. They sum to ``total``.
        offsets: instead of lengths, (samples + 1,): sample i is ``values[offsets[i]:offsets[i + 1]]``. They ascend
            from 0 to ``total``. Either way 8 bytes per sample are kept.
        pad_value: what stands in a batch behind its shorter samples; must be a number of the values' dtype.

    Raises:
        ConfigError: lengths and offsets, or neither; negative samples, or empty ones where there must be rows, or not
            as many rows as there are values; a pad_value that the dtype does not hold. Some of it is found by
            :func:`feedline.arrays`.
    """
    if isinstance(values, list | tuple):
        if lengths is not None or offsets is not None:
            raise ConfigError("ragged: a list of arrays has their lengths already: give no lengths or offsets")
        values, lengths = _joined(values)
    if (lengths is None) == (offsets is None):
        raise ConfigError("ragged: give either lengths or offsets")
    places = _offsets_of_lengths(lengths, values) if offsets is None else _integers("offsets", offsets).copy()
    if len(places) == 0:
        raise ConfigError("ragged: offsets are empty; there is one more than there are samples")
    return Ragged(values, places, _pad_bytes(values, pad_value))


def _joined(parts: Sequence[Any]) -> tuple[Any, list[int]]:
    if not parts:
        raise ConfigError("ragged: the list of arrays is empty")
    import numpy

    if not hasattr(parts[0], "data_ptr"):
        parts = [numpy.asarray(part) for part in parts]
    for index, part in enumerate(parts):
        if getattr(part, "ndim", 0) == 0:
            raise ConfigError(f"ragged: sample {index} is no array of rows: {part!r}")
        if part.dtype != parts[0].dtype or part.shape[1:] != parts[0].shape[1:]:
            raise ConfigError(
                f"ragged: sample {index} is {part.dtype} of shape {tuple(part.shape)}, sample 0 {parts[0].dtype} of "
                f"shape {tuple(parts[0].shape)}; only the first extent may differ"
            )
    lengths = [len(part) for part in parts]
    if not hasattr(parts[0], "data_ptr"):
        return numpy.concatenate(parts), lengths
    import torch

    return torch.cat(list(parts)), lengths


def _integers(name: str, values: Any) -> Any:
    """``values`` as int64, (n,)."""
    import numpy

    array = numpy.asarray(values)
    if array.ndim != 1 or (array.size > 0 and array.dtype.kind not in "iu"):
        raise ConfigError(f"ragged: {name} must be integers in one row, not {array.dtype} of shape {array.shape}")
    return array.astype("int64")


def _offsets_of_lengths(lengths: Any, values: Any) -> Any:
    import numpy

    counts = _integers("lengths", lengths)
    negative = numpy.flatnonzero(counts < 0)
    if negative.size > 0:
        raise ConfigError(f"ragged: sample {negative[0]} has the length {counts[negative[0]]}")
    offsets = numpy.zeros(len(counts) + 1, dtype="int64")
    numpy.cumsum(counts, out=offsets[1:])
    if hasattr(values, "shape") and len(values.shape) > 0 and offsets[-1] != values.shape[0]:
        raise ConfigError(f"ragged: the lengths sum to {offsets[-1]}, but there are {values.shape[0]} rows of values")
    return offsets


def _pad_bytes(values: Any, pad_value: Any) -> bytes:
    import numpy

    if not hasattr(values, "dtype"):
        return b""  # no array: arrays() says so, with the name of the field
    name = arguments.array_dtype(_WHERE, values.dtype)
    try:
        dtype = numpy.dtype(name)
    except TypeError:
        return b""  # likewise
    if dtype.kind in "iu":
        limits = numpy.iinfo(dtype)
        arguments.integer(_WHERE, f"pad_value of {name}", pad_value, low=int(limits.min), high=int(limits.max))
    elif dtype.kind == "b" and pad_value not in (0, 1):
        raise ConfigError(f"ragged: pad_value of bool must be True or False, not {pad_value!r}")
    try:
        return numpy.array(pad_value, dtype=dtype).tobytes()
    except (TypeError, ValueError):
        raise ConfigError(f"ragged: pad_value must be a number, not {pad_value!r}") from None
