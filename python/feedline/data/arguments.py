# SPDX-License-Identifier: Apache-2.0
"""Converts torchvision's argument forms to the engine's.

Every function raises :class:`ConfigError`, with a message that begins with the operation's name. This module does not
import torch, torchvision or Pillow; it recognises their enumerations by value and name.
"""

from __future__ import annotations

import math
import numbers
import operator
import os
import re
from collections.abc import Iterable, Sequence
from typing import Any, TypeGuard

from .. import _engine
from ..errors import ConfigError

_INTERPOLATIONS = ("nearest", "box", "bilinear", "bicubic", "lanczos", "random", "torch_bilinear", "torch_bicubic")
# Pillow's Image.Resampling values, which torchvision also accepts as plain integers
_PILLOW_RESAMPLING = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic", 4: "box", 5: "hamming"}
_DTYPES = ("uint8", "int64", "float16", "float32")
_INT_MAX = 2**31 - 1
MOST_WORKERS = 1024  # more threads than any machine has CPUs; matches kMaxThreads in the engine
_BYTE_UNITS = {
    "": 1,
    **{prefix: 1000**power for power, prefix in enumerate(("K", "M", "G", "T"), 1)},
    **{f"{prefix}B": 1000**power for power, prefix in enumerate(("", "K", "M", "G", "T"))},
    **{f"{prefix}iB": 1024**power for power, prefix in enumerate(("", "K", "M", "G", "T"))},
}


def integer(where: str, name: str, value: Any, low: int = -_INT_MAX, high: int = _INT_MAX) -> int:
    """Returns ``value`` as an int in [low, high]; rejects floats and booleans."""
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise ConfigError(f"{where}: {name} must be an integer, not {value!r}") from None
    if not low <= number <= high:
        raise ConfigError(f"{where}: {name} must be from {low} to {high}, not {number}")
    return number


def worker_count(where: str, value: Any, low: int = 0) -> int:
    """Returns ``num_workers`` as an int; applies the engine's limit (kMaxThreads) and uses its error message."""
    try:
        count = operator.index(value)
    except TypeError:
        raise ConfigError(f'{where}: num_workers must be an integer or "auto", not {value!r}') from None
    if isinstance(value, bool):
        raise ConfigError(f'{where}: num_workers must be an integer or "auto", not {value!r}')
    if not low <= count <= MOST_WORKERS:
        raise ConfigError(f"{where}: num_workers must be between {low} and {MOST_WORKERS}, got {count}")
    return count


def real(where: str, name: str, value: Any) -> float:
    """Returns ``value`` as a finite float."""
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value):
        raise ConfigError(f"{where}: {name} must be a finite number, not {value!r}")
    return float(value)


def weights(where: str, values: Any) -> list[float]:
    """Returns the numbers in a list, array or Series; the engine checks their values."""
    if isinstance(values, str | bytes) or not is_iterable(values):
        raise ConfigError(f"{where}: weights must be a list or an array of numbers, not {values!r:.200}")
    items = _items(values)
    if all(type(value) is float for value in items):
        return list(items)
    return [_weight(where, i, value) for i, value in enumerate(items)]


def _weight(where: str, position: int, value: Any) -> float:
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        raise ConfigError(f"{where}: the weight at position {position} is {value!r:.80}, which is not a number")
    try:
        return float(value)
    except OverflowError:
        raise ConfigError(
            f"{where}: the weight at position {position} is too large for a float; divide all weights by the largest"
        ) from None


def path_text(where: str, name: str, value: Any) -> str:
    """Returns a path as a str."""
    path = os.fspath(value) if isinstance(value, str | os.PathLike) else value
    if not isinstance(path, str) or not path:
        raise ConfigError(f"{where}: {name} must be a path, not {value!r}")
    return path


def flag(where: str, name: str, value: Any, or_word: str | None = None) -> bool:
    """Returns ``value``, which must be a bool; the error message lists ``or_word`` as another accepted value."""
    if not isinstance(value, bool):
        allowed = "True or False" if or_word is None else f'True, False or "{or_word}"'
        raise ConfigError(f"{where}: {name} must be {allowed}, not {value!r}")
    return value


def is_sequence(value: Any) -> bool:
    """Whether ``value`` is a list, tuple or array; strings and 0-d arrays are not sequences."""
    return (isinstance(value, Sequence) and not isinstance(value, str | bytes)) or getattr(value, "ndim", 0) > 0


def is_iterable(value: Any) -> TypeGuard[Iterable[Any]]:
    """Whether iter() accepts ``value``: a 0-d array has __iter__, but iter() raises."""
    return isinstance(value, Iterable) and getattr(value, "ndim", 1) > 0


def _items(value: Any) -> list[Any]:
    return list(value.tolist()) if hasattr(value, "tolist") else list(value)


def square_size(where: str, size: Any) -> tuple[int, int]:
    """Returns the size of a crop: converts ``s`` or ``(s,)`` to (s, s) and leaves ``(h, w)`` unchanged."""
    height, width = edge_size(where, size)
    return height, width or height


def edge_size(where: str, size: Any) -> tuple[int, int]:
    """Returns the target size of a resize: converts ``s`` or ``(s,)`` to (s, 0), the engine's form of "smaller edge",
    and leaves ``(h, w)`` unchanged.
    """
    extents = _items(size) if is_sequence(size) else [size]
    if len(extents) not in (1, 2):
        raise ConfigError(f"{where}: size must be an integer or (height, width), not {size!r}")
    edges = [integer(where, "size", extent, low=1) for extent in extents]
    return edges[0], edges[1] if len(edges) == 2 else 0


def sides(where: str, padding: Any) -> tuple[int, int, int, int]:
    """Converts torchvision's 1, 2 or 4 numbers to (left, top, right, bottom); ``None`` means no padding."""
    extents = [0] if padding is None else _items(padding) if is_sequence(padding) else [padding]
    if len(extents) not in (1, 2, 4):
        raise ConfigError(
            f"{where}: padding must be one number, (left and right, top and bottom) or (left, top, right, bottom), "
            f"not {padding!r}"
        )
    edges = [integer(where, "padding", extent, low=0) for extent in extents]
    left, top, right, bottom = edges * (4 // len(edges))
    return left, top, right, bottom


def color(where: str, fill: Any) -> tuple[int, int, int]:
    """Returns a grey value or (red, green, blue), each from 0 to 255; ``None`` is black."""
    values = [0] if fill is None else _items(fill) if is_sequence(fill) else [fill]
    if len(values) not in (1, 3):
        raise ConfigError(f"{where}: fill must be one number or (red, green, blue), not {fill!r}")
    # torchvision accepts 0.0 for 0, so whole floats are accepted
    whole = [int(v) if isinstance(v, float) and v.is_integer() else v for v in values]
    red, green, blue = [integer(where, "fill", v, 0, 255) for v in whole] * (3 // len(values))
    return red, green, blue


def interpolation(where: str, value: Any) -> str:
    """Converts an interpolation (a name, torchvision's InterpolationMode, or Pillow's Resampling or its integer) to the
    engine's name.
    """
    word = value
    if isinstance(value, int) and not isinstance(value, bool):
        word = _PILLOW_RESAMPLING.get(int(value), value)
    elif not isinstance(value, str):
        word = getattr(value, "value", value)
    word = word.lower() if isinstance(word, str) else word
    if isinstance(word, str) and word == "nearest-exact":  # torchvision treats both alike on PIL images
        word = "nearest"
    if not isinstance(word, str) or word not in _INTERPOLATIONS:
        advice = (
            f"; pass two sizes as one pair: {where}((height, {value}))" if isinstance(value, int) and value > 5 else ""
        )
        raise ConfigError(f"{where}: interpolation must be one of {', '.join(_INTERPOLATIONS)}, not {value!r}{advice}")
    return str(word)


def padding_mode(where: str, value: Any) -> str:
    """Checks that ``padding_mode`` is one of torchvision's four modes."""
    modes = ("constant", "edge", "reflect", "symmetric")
    if not isinstance(value, str) or value not in modes:
        raise ConfigError(f"{where}: padding_mode must be one of {', '.join(modes)}, not {value!r}")
    return str(value)


def refuse_aliased(where: str, antialias: Any) -> None:
    """Rejects antialias=False: the only filters are Pillow's, which always antialias."""
    if antialias is not True and antialias is not None:
        raise ConfigError(
            f"{where}: antialias={antialias!r} is not supported: Pillow's filters always antialias; omit the argument"
        )


def reals(where: str, name: str, values: Any) -> list[float]:
    """Converts a sequence of finite numbers to a list of floats."""
    if not is_sequence(values):
        raise ConfigError(f"{where}: {name} must be numbers, not {values!r}")
    return [real(where, name, value) for value in _items(values)]


def low_high(where: str, name: str, value: Any) -> tuple[float, float]:
    """Returns a pair of numbers, lower bound first."""
    pair = _items(value) if is_sequence(value) else []
    if len(pair) != 2:
        raise ConfigError(f"{where}: {name} must be (low, high), not {value!r}")
    low, high = (real(where, name, bound) for bound in pair)
    if low > high:
        raise ConfigError(f"{where}: {name} must have its lower bound first, not {value!r}")
    return low, high


def pair(where: str, name: str, value: Any) -> tuple[float, float]:
    """Returns a pair of numbers, for x and y."""
    numbers_given = _items(value) if is_sequence(value) else []
    if len(numbers_given) != 2:
        raise ConfigError(f"{where}: {name} must be two numbers (x, y), not {value!r}")
    x, y = (real(where, name, number) for number in numbers_given)
    return x, y


def whole_pair(where: str, name: str, value: Any, low: int) -> tuple[int, int]:
    """Returns a pair of integers, in pixels."""
    extents = _items(value) if is_sequence(value) else []
    if len(extents) != 2:
        raise ConfigError(f"{where}: {name} must be two integers (pixels), not {value!r}")
    first, second = (integer(where, name, extent, low=low) for extent in extents)
    return first, second


def integers(where: str, name: str, value: Any, low: int) -> list[int]:
    """Converts an integer or a sequence of integers to a list."""
    numbers_given = _items(value) if is_sequence(value) else [value]
    if not numbers_given:
        raise ConfigError(f"{where}: {name} must be an integer or a sequence of integers, not {value!r}")
    return [integer(where, name, number, low=low) for number in numbers_given]


def both_directions(where: str, name: str, value: Any) -> tuple[float, float]:
    """Converts one number for both directions, or (x, y), to a pair."""
    given = _items(value) if is_sequence(value) else [value]
    if len(given) == 1:
        given = given * 2
    return pair(where, name, given)


def angles(where: str, name: str, value: Any) -> tuple[float, float]:
    """Converts degrees by torchvision's rule: a number d is (-d, d)."""
    if is_sequence(value):
        return low_high(where, name, value)
    most = real(where, name, value)
    if most < 0:
        raise ConfigError(f"{where}: {name} must not be negative if it is a single number, not {value!r}")
    return -most, most


def shears(where: str, value: Any) -> tuple[tuple[float, float] | None, tuple[float, float] | None]:
    """Converts ``shear``, which is None or one, two or four numbers, to ranges along x and y."""
    if value is None:
        return None, None
    bounds = _items(value) if is_sequence(value) else value
    if not isinstance(bounds, list) or len(bounds) == 2:
        return angles(where, "shear", bounds), None
    if len(bounds) != 4:
        raise ConfigError(f"{where}: shear must be one number, (low, high) or (low, high, low, high), not {value!r}")
    return low_high(where, "shear", bounds[:2]), low_high(where, "shear", bounds[2:])


def jitter(where: str, name: str, value: Any, center: float, low: float, high: float) -> tuple[float, float]:
    """Converts a colour factor by torchvision's rule: a number is the distance from ``center``, a pair is the range."""
    if is_sequence(value):
        bounds = low_high(where, name, value)
    else:
        distance = real(where, name, value)
        if distance < 0:
            raise ConfigError(f"{where}: {name} must not be negative, not {value!r}")
        bounds = center - distance, center + distance
        if name != "hue":
            bounds = max(bounds[0], 0.0), bounds[1]
    if bounds[0] < low or bounds[1] > high:
        raise ConfigError(f"{where}: {name} must be in [{low:g}, {high:g}], not {value!r}")
    return bounds


def channel_values(where: str, name: str, value: Any) -> list[float]:
    """Returns one number per channel."""
    if not is_sequence(value):
        raise ConfigError(f"{where}: {name} must be one number per channel, not {value!r}")
    return [real(where, name, item) for item in _items(value)]


def array_dtype(where: str, value: Any) -> str:
    """Converts a name, a NumPy dtype or type, or a torch dtype to NumPy's name, without checking support."""
    word = value if isinstance(value, str) else getattr(value, "__name__", None) or str(value)
    return word.removeprefix("torch.").removeprefix("numpy.")


def dtype(where: str, value: Any, also: tuple[str, ...] = ()) -> str:
    """Returns NumPy's name of an image dtype; raises ConfigError for dtypes that images do not support."""
    word = array_dtype(where, value)
    if word not in _DTYPES and word not in also:
        raise ConfigError(f"{where}: dtype must be one of {', '.join(_DTYPES + also)}, not {value!r}")
    return word


def field_names(where: str, fields: Any) -> list[str]:
    """Returns field names from None (all fields: an empty list), a str (one field) or a sequence of names."""
    if fields is None:
        return []
    names: list[Any] = [fields] if isinstance(fields, str) else list(fields) if is_sequence(fields) else [None]
    if not names or not all(isinstance(name, str) and name for name in names):
        raise ConfigError(f'{where}: fields must be a list of field names, such as ["left.jpg"], not {fields!r}')
    return names


def field_specs(where: str, fields: Any) -> list[str]:
    """Returns field specs from None (the format's default fields), a sequence of specs, or a str of specs separated by
    spaces.
    """
    specs = [] if fields is None else fields.split() if isinstance(fields, str) else fields
    specs = list(specs) if is_iterable(specs) else [specs]
    if not all(isinstance(spec, str) for spec in specs):
        raise ConfigError(f'{where}: fields must be one spec per field, such as ("jpg;png", "cls"), not {fields!r}')
    return specs


def choice(where: str, name: str, value: Any, words: Sequence[str]) -> str:
    """Checks that ``value`` is one of ``words``."""
    if not isinstance(value, str) or value not in words:
        raise ConfigError(f"{where}: {name} must be one of {', '.join(map(repr, words))}, not {value!r}")
    return str(value)


def buckets(where: str, value: Any) -> tuple[list[int], int]:
    """Converts ``buckets`` (``None``, a number of buckets, or their bounds) to (bounds, number); values that were not
    given are empty or 0.
    """
    high = 2**63 - 1
    if value is None:
        return [], 0
    if not is_sequence(value):
        return [], integer(where, "buckets", value, low=1, high=high)
    bounds = [integer(where, "a bucket bound", bound, low=1, high=high) for bound in _items(value)]
    if not bounds:
        raise ConfigError(f"{where}: buckets is empty; pass bounds, a number of buckets, or None")
    return bounds, 0


def output_path(where: str, name: str, value: Any, *, urls: bool = False) -> str:
    """Checks that an output path is local and in an existing, writable folder.

    With `urls`, object storage URLs are also accepted, and only write support is checked for them.

    Folders are not created, because a missing folder is usually a typing error.
    """
    path = path_text(where, name, value)
    scheme = re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", path)
    if scheme and urls:
        try:
            return _engine.ObjectFolder(path).url
        except ConfigError as error:
            raise ConfigError(f"{where}: {name}: {error.message}; or write to a local folder and copy it") from None
    if scheme:
        raise ConfigError(
            f"{where}: {name} {path!r}: this version writes only local paths, not {scheme[0]}; write to a local folder "
            "and copy it there"
        )
    parent = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(parent):
        missing = "is not a folder" if os.path.exists(parent) else "does not exist"
        raise ConfigError(
            f"{where}: {name} {path!r}: the folder {parent!r} {missing}; create it first, or correct the path"
        )
    if not os.access(path if os.path.isdir(path) else parent, os.W_OK | os.X_OK):
        raise ConfigError(f"{where}: {name} {path!r}: permission denied; choose another folder")
    return path


def byte_count(where: str, name: str, value: Any) -> int:
    """Parses bytes given as an int or text: ``"512 MB"`` or ``"5G"`` (powers of 1000), ``"2 GiB"`` (powers of 1024)."""
    refusal = ConfigError(f'{where}: {name} must be bytes, or text such as "512 MB" or "2 GiB", not {value!r}')
    if not isinstance(value, str):
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise refusal
        return integer(where, name, value, low=1, high=2**63 - 1)
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", value)
    units = {unit.lower(): factor for unit, factor in _BYTE_UNITS.items()}
    if match is None or match[2].lower() not in units:
        raise refusal
    count = float(match[1]) * units[match[2].lower()]
    if not math.isfinite(count):
        raise refusal
    return integer(where, name, int(count), low=1, high=2**63 - 1)
