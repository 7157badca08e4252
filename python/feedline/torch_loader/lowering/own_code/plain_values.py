# SPDX-License-Identifier: Apache-2.0
"""Types, functions and methods that only look up or compute a value, without side effects and without random
numbers.
"""

from __future__ import annotations

import builtins
import os
import pathlib
import sys
from typing import Any

_SIMPLE = (str, int, float, bool, type(None), bytes)
_BUILTINS = frozenset((*_SIMPLE, list, tuple, dict, range, slice, set, frozenset))
_PACKAGES = ("numpy", "pandas", "polars", "pyarrow", "pathlib")
_OF_TORCH = ("Tensor", "Size", "dtype")  # a module's methods may change the module
# Functions by module, if that module was imported.
_FUNCTIONS = {
    "builtins": (
        "str int float bool len min max abs round sum tuple list dict set sorted range enumerate zip isinstance any all"
    ),
    "os": "fspath",
    "os.path": "join basename dirname splitext normpath split abspath expanduser",
    "pathlib": "Path PurePath PosixPath",
    "torch": (
        "tensor as_tensor from_numpy is_tensor zeros ones LongTensor FloatTensor IntTensor Tensor long float float32"
    ),
    "torch.nn.functional": "one_hot",
    "numpy": "array asarray zeros ones float32 float64 int32 int64 uint8 argmax array_equal concatenate stack",
}
_FRESH = {"torch": "zeros ones", "numpy": "zeros ones"}
_METHODS = {
    "text and paths": (
        "split rsplit strip lstrip rstrip lower upper replace format join startswith endswith zfill find rfind index "
        "count partition rpartition joinpath as_posix with_suffix with_name removeprefix removesuffix relative_to "
        "title capitalize"
    ),
    "dicts": "get keys values items",
    "numbers, arrays, tensors and frames": (
        "item tolist astype to_numpy to_list to_dict squeeze unsqueeze reshape flatten ravel float long int bool "
        "double argmax max min sum copy clone transpose view numpy type row"
    ),
}


class NotPlain(Exception):
    """A value of a sample has an unknown type, so the dataset itself must read the sample."""


def is_plain(value: Any) -> bool:
    kind = type(value)
    if kind in _BUILTINS:
        return True
    package = kind.__module__.partition(".")[0]
    return package in _PACKAGES or (package == "torch" and kind.__name__ in _OF_TORCH)


def is_simple(value: Any) -> bool:
    """Returns whether `value` is an immutable constant."""
    return type(value) in _SIMPLE or isinstance(value, pathlib.PurePath)


def checked(value: Any) -> Any:
    """Returns `value` if its type is plain; otherwise raises NotPlain. Called by the code that is generated for a
    class.
    """
    if is_plain(value):
        return value
    raise NotPlain(type(value).__qualname__)


def immutable(value: Any) -> Any:
    """Returns `value` if `+=` on it cannot change another variable; otherwise raises NotPlain."""
    if type(value) in _SIMPLE:
        return value
    raise NotPlain(type(value).__qualname__)


def is_pure(function: Any) -> bool:
    """Returns whether calls to exactly this function only compute a value."""
    return _is_listed(_FUNCTIONS, function)


def makes_fresh(function: Any) -> bool:
    """Returns whether the function's result is a new object, which the code may therefore modify."""
    return _is_listed(_FRESH, function)


def is_pure_method(name: str) -> bool:
    return any(name in names.split() for names in _METHODS.values())


def _is_listed(table: dict[str, str], function: Any) -> bool:
    for module_name, names in table.items():
        module = sys.modules.get(module_name) if module_name != "os.path" else os.path
        if module is not None and any(getattr(module, name, None) is function for name in names.split()):
            return True
    return False


def builtin(name: str) -> Any:
    return getattr(builtins, name, None)
