# SPDX-License-Identifier: Apache-2.0
"""Describes arrays for the engine: where their rows are in memory, and errors about unsupported arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...errors import ConfigError
from .ragged_values import Ragged

# name, owner, address, rows, row stride in bytes, dtype, row shape, offsets of a ragged array, its padding
_Array = tuple[str, Any, int, int, int, str, list[int], Any, bytes]
# the same members, and the kind
_Row = tuple[str, Any, int, int, int, str, list[int], Any, bytes, str]


def of_field(name: str, field: Any, kind: str) -> _Row:
    """Describes an array or a :class:`Ragged` for the engine; raises ConfigError if it is unsupported."""
    if not isinstance(field, Ragged):
        return (*_of_array(name, field), kind)
    *described, _offsets, _pad = _of_array(name, field.values)
    return (*described, field.offsets, field.pad, kind)


class HeldTensor:
    """A torch tensor whose memory the engine reads.

    ``data`` is an alias of the user's tensor, so ``.data =``, ``.half()`` and ``.set_()`` of that tensor do not change
    the alias's storage. A NumPy view of the tensor prevents resizing of its storage. :meth:`check` detects a move by
    ``share_memory_()``.
    """

    def __init__(self, name: str, tensor: Any) -> None:
        self.name = name
        self.data = tensor.detach()
        self._view = _numpy_view(self.data)
        self.address = self.data.data_ptr()

    @property
    def is_bfloat16(self) -> bool:
        return str(self.data.dtype) == "torch.bfloat16"

    def check(self) -> None:
        """Raises ConfigError if the tensor's memory was moved."""
        if self.data.data_ptr() != self.address:
            raise ConfigError(
                f"arrays: the tensor {self.name!r} was moved to other memory after feedline.arrays() (share_memory_() "
                "and sending it to another process move it); call feedline.arrays() after the move"
            )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles by value: torch's own pickling would move the tensor to shared memory."""
        return _tensor_of, (self._view, str(self.data.dtype).removeprefix("torch."), tuple(self.data.shape))


def _numpy_view(tensor: Any) -> Any:
    """Returns a NumPy view of the tensor's memory. A dtype that NumPy lacks becomes an integer dtype of the same
    size.
    """
    import torch

    integers = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    return tensor.view(integers.get(tensor.element_size(), tensor.dtype)).numpy()


def _tensor_of(view: Any, dtype: str, shape: tuple[int, ...]) -> Any:
    import torch

    return torch.from_numpy(view.copy()).view(getattr(torch, dtype)).reshape(shape)


def held_in(described: Iterable[_Row]) -> tuple[HeldTensor, ...]:
    """Returns the tensors that own the memory of the described arrays."""
    return tuple(row[1] for row in described if isinstance(row[1], HeldTensor))


def by_value(value: Any, described: _Row) -> Any:
    """Returns an argument of ``arrays()`` in a form that pickles tensors by value."""
    owner = described[1]
    if not isinstance(owner, HeldTensor):
        return value
    return Ragged(owner, value.offsets, value.pad) if isinstance(value, Ragged) else owner


def kinds_of(specs: Any, names: Sequence[str]) -> dict[str, str]:
    """Returns each array's kind from ``fields=``; "array" is the default."""
    if specs is None:
        specs = ()
    if isinstance(specs, str):
        specs = (specs,)
    if not isinstance(specs, list | tuple) or not all(isinstance(spec, str) for spec in specs):
        raise ConfigError(f"arrays: fields must be names with kinds, such as 'boxes:boxes', not {specs!r}")
    kinds: dict[str, str] = {}
    for spec in specs:
        name, _, kind = spec.rpartition(":") if ":" in spec else (spec, "", "array")
        if name not in names:
            raise ConfigError(f"arrays: fields: array {name!r} does not exist; the arrays are {', '.join(names)}")
        if name in kinds:
            raise ConfigError(f"arrays: fields: {name!r} occurs twice")
        kinds[name] = kind
    return {name: kinds.get(name, "array") for name in names}


def is_column(value: Any) -> bool:
    """Whether the argument is an array, not an option."""
    return isinstance(value, Ragged) or hasattr(value, "data_ptr") or hasattr(value, "__array_interface__")


def _of_array(name: str, array: Any) -> _Array:
    """Describes one array for the engine."""
    if hasattr(array, "data_ptr"):
        return _of_tensor(name, array)
    if not hasattr(array, "__array_interface__"):
        raise ConfigError(f"arrays: {name} must be a NumPy array or a torch tensor, not {type(array).__name__}")
    _require_rows(name, array.shape)
    if not array.dtype.isnative:
        raise ConfigError(f"arrays: {name} is not in this machine's byte order ({array.dtype.str}); convert it first")
    _require_dense(name, array.shape, array.strides, array.itemsize)
    address = array.__array_interface__["data"][0]
    extents = list(array.shape[1:])
    return name, array, address, array.shape[0], array.strides[0], array.dtype.name, extents, None, b""


def _of_tensor(name: str, tensor: Any) -> _Array:
    if tensor.device.type != "cpu" or str(tensor.layout) != "torch.strided":
        raise ConfigError(f"arrays: {name} must be a dense tensor on the CPU")
    _require_rows(name, tensor.shape)
    size = tensor.element_size()
    strides = [stride * size for stride in tensor.stride()]
    _require_dense(name, tensor.shape, strides, size)
    dtype = str(tensor.dtype).removeprefix("torch.")
    held = HeldTensor(name, tensor)
    extents = list(tensor.shape[1:])
    return name, held, held.address, tensor.shape[0], strides[0], dtype, extents, None, b""


def _require_rows(name: str, shape: Sequence[int]) -> None:
    if not shape:
        raise ConfigError(f"arrays: {name} is a single number without rows; pass an array of one or more dimensions")


def _require_dense(name: str, shape: Sequence[int], strides: Sequence[int], itemsize: int) -> None:
    if 0 in shape:
        return  # the engine reports the error
    expected = itemsize
    for extent, stride in zip(reversed(shape[1:]), reversed(strides[1:]), strict=True):
        if extent > 1 and stride != expected:
            raise ConfigError(f"arrays: the elements of a row of {name} are not contiguous; copy the array first")
        expected *= extent
