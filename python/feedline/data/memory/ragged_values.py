# SPDX-License-Identifier: Apache-2.0
"""Fields whose samples have different lengths, stored concatenated in one array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import ConfigError
from .. import arguments

_WHERE = "ragged"


class Ragged:
    """A field whose samples have different lengths. Created by :func:`ragged`, for :func:`feedline.arrays`.

    Attributes:
        values: array of shape (total, ...) with the concatenated rows of all samples.
        offsets: int64 array of shape (samples + 1,); sample i is ``values[offsets[i]:offsets[i + 1]]``.
        pad: the number that pads shorter samples in a batch, as bytes.
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
    """Creates a field of samples of different lengths: ``feedline.arrays(text=feedline.ragged(tokens, lengths),
    label=y)``.

    In a batch, ``text`` has the shape (rows, length of the longest row, ...), and ``text_length``, an int64 array of
    shape (rows,), contains the lengths without padding; ``ds[i].text`` is not padded. Every sample must have at least
    one row, except for box, keypoint and array fields declared in ``fields=`` of :func:`feedline.arrays`.

    Args:
        values: an array of shape (total, ...) that :func:`feedline.arrays` accepts, with concatenated samples; it is
            not copied. Or a list of arrays (total_i, ...), one per sample and all of one dtype, which are copied once
            into one array.
        lengths: number of rows of each sample, of shape (samples,). The lengths must sum to ``total``.
        offsets: alternative to lengths, of shape (samples + 1,); sample i is ``values[offsets[i]:offsets[i + 1]]``. The
            offsets must ascend from 0 to ``total``. Lengths and offsets both need 8 bytes per sample.
        pad_value: number that pads shorter samples in a batch; it must be valid for the values' dtype.

    Raises:
        ConfigError: both lengths and offsets are given, or neither; lengths are negative, are 0 although rows are
            required, or do not sum to the number of rows; or pad_value is not in the range of the dtype.
            :func:`feedline.arrays` raises some of these errors.
    """
    if isinstance(values, list | tuple):
        if lengths is not None or offsets is not None:
            raise ConfigError("ragged: a list of arrays defines the lengths; do not pass lengths or offsets")
        values, lengths = _joined(values)
    if (lengths is None) == (offsets is None):
        raise ConfigError("ragged: pass either lengths or offsets")
    places = _offsets_of_lengths(lengths, values) if offsets is None else _integers("offsets", offsets).copy()
    if len(places) == 0:
        raise ConfigError("ragged: offsets is empty; pass one offset per sample, and the end of the last sample")
    return Ragged(values, places, _pad_bytes(values, pad_value))


def _joined(parts: Sequence[Any]) -> tuple[Any, list[int]]:
    if not parts:
        raise ConfigError("ragged: the list of arrays is empty; pass at least one array")
    import numpy

    if not hasattr(parts[0], "data_ptr"):
        parts = [numpy.asarray(part) for part in parts]
    for index, part in enumerate(parts):
        if getattr(part, "ndim", 0) == 0:
            raise ConfigError(f"ragged: sample {index} is not an array of rows: {part!r}")
        if part.dtype != parts[0].dtype or part.shape[1:] != parts[0].shape[1:]:
            raise ConfigError(
                f"ragged: sample {index} is {part.dtype} of shape {tuple(part.shape)}, but sample 0 is "
                f"{parts[0].dtype} of shape {tuple(parts[0].shape)}; only the first dimension may differ"
            )
    lengths = [len(part) for part in parts]
    if not hasattr(parts[0], "data_ptr"):
        return numpy.concatenate(parts), lengths
    import torch

    return torch.cat(list(parts)), lengths


def _integers(name: str, values: Any) -> Any:
    """Returns ``values`` as int64, (n,)."""
    import numpy

    array = numpy.asarray(values)
    if array.ndim != 1 or (array.size > 0 and array.dtype.kind not in "iu"):
        raise ConfigError(
            f"ragged: {name} must be a one-dimensional array of integers, not {array.dtype} of shape {array.shape}"
        )
    return array.astype("int64")


def _offsets_of_lengths(lengths: Any, values: Any) -> Any:
    import numpy

    counts = _integers("lengths", lengths)
    negative = numpy.flatnonzero(counts < 0)
    if negative.size > 0:
        raise ConfigError(f"ragged: sample {negative[0]} has the negative length {counts[negative[0]]}")
    offsets = numpy.zeros(len(counts) + 1, dtype="int64")
    numpy.cumsum(counts, out=offsets[1:])
    if hasattr(values, "shape") and len(values.shape) > 0 and offsets[-1] != values.shape[0]:
        raise ConfigError(f"ragged: the lengths sum to {offsets[-1]}, but there are {values.shape[0]} rows of values")
    return offsets


def _pad_bytes(values: Any, pad_value: Any) -> bytes:
    import numpy

    if not hasattr(values, "dtype"):
        return b""  # not an array: arrays() reports the error with the field's name
    name = arguments.array_dtype(_WHERE, values.dtype)
    try:
        dtype = numpy.dtype(name)
    except TypeError:
        return b""  # arrays() reports this too
    if dtype.kind in "iu":
        limits = numpy.iinfo(dtype)
        arguments.integer(_WHERE, f"pad_value of {name}", pad_value, low=int(limits.min), high=int(limits.max))
    elif dtype.kind == "b" and pad_value not in (0, 1):
        raise ConfigError(f"ragged: pad_value must be True or False for bool values, not {pad_value!r}")
    try:
        return numpy.array(pad_value, dtype=dtype).tobytes()
    except (TypeError, ValueError):
        raise ConfigError(f"ragged: pad_value must be a number, not {pad_value!r}") from None
