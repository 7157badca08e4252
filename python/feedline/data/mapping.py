# SPDX-License-Identifier: Apache-2.0
"""User functions on samples, called by the engine's threads: their inputs and results."""

from __future__ import annotations

import contextlib
import json
import pickle
import struct
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import ConfigError, WorkerDiedError
from . import arguments

if TYPE_CHECKING:
    from .map_processes import Processes

# name, kind, dtype, shape, buffer: one value in the engine's form
Row = tuple[str, str, str, tuple[int, ...], Any]
_READ_ONLY = (
    "; writable=False passes read-only arrays: copy the arrays that the function changes, or omit writable=False"
)
Failed = tuple[str, str, BaseException | None]  # code, text, exception
Fields = dict[str, Any]

_DTYPES = frozenset(
    ("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "float32", "float64")
)


class Step(NamedTuple):
    """One ``map()``. ``fields``: field names, or None for all. ``alone``: the function has one field, and its result is
    the field's new value. ``place``: index among the maps. ``behind``: the number of preceding operations.
    ``processes``: number of worker processes, 0 for none. ``writable``: whether the function may change its arrays.
    """

    function: Callable[..., Any]
    fields: tuple[str, ...] | None
    alone: bool
    seeded: bool
    processes: int
    place: int
    behind: int
    writable: bool

    def run(self, fields: Fields, draw: tuple[int, int, int]) -> Fields:
        """Returns the fields, with the function's inputs replaced by its results."""
        more = {"rng": generator(*draw, self.place)} if self.seeded else {}
        if self.fields is None:
            made = self.function(fields, **more)
            if not isinstance(made, Mapping) or not all(isinstance(name, str) for name in made):
                raise _WrongResult(f"the function must return a dict of fields by name, not {_kind(made)}")
            return dict(made)
        missing = [name for name in self.fields if name not in fields]
        if missing:
            raise _NoField(f"field '{missing[0]}' does not exist; the fields are {', '.join(fields)}")
        made = self.function(*(fields[name] for name in self.fields), **more)
        if self.alone:
            return {**fields, self.fields[0]: made}
        if not isinstance(made, (tuple, list)) or len(made) != len(self.fields):
            raise _WrongResult(
                f"the function must return {len(self.fields)} values, one for each of its fields, not {_kind(made)}"
            )
        return {**fields, **dict(zip(self.fields, made, strict=True))}

    def __str__(self) -> str:
        """Describes the step as a call of :meth:`Dataset.map`."""
        named = self.fields[0] if self.fields and self.alone else self.fields
        fields = "" if named is None else f", fields={named!r}"
        processes = f", processes={self.processes}" if self.processes else ""
        flags = ("" if self.writable else ", writable=False") + (", seeded=True" if self.seeded else "")
        return f"map({name_of(self.function)}{fields}{processes}{flags})"


class Chain:
    """The functions of a dataset in sequence; each receives the previous one's unmodified result."""

    def __init__(self, steps: Sequence[Step], processes: Processes | None = None) -> None:
        self.steps = tuple(steps)
        self._processes = processes
        with_processes = [step.place for step in self.steps if step.processes]
        first, last = (with_processes[0], with_processes[-1] + 1) if with_processes else (len(self.steps),) * 2
        self._before, self._apart, self._behind = self.steps[:first], self.steps[first:last], self.steps[last:]
        self.takes = _takes(self.steps)
        self.only_reads = not any(step.writable for step in self.steps)

    # ---- called by the engine, in any thread ----

    def call(self, names: list[str], values: list[Any], seed: int, epoch: int, draw: int) -> list[Row] | Failed:
        """Returns the functions' result for a sample's fields, or the error. Raises only exceptions that end the
        program.
        """
        step: Step | None = None
        name: str | None = None
        try:
            fields = {name: _plain(value) for name, value in zip(names, values, strict=True)}
            del values[:]  # frees values that the functions do not reference, for the next sample
            for step in self._before:
                fields = step.run(fields, (seed, epoch, draw))
            if self._apart:
                step = self._apart[0]
                fields = self._run_apart(fields, (seed, epoch, draw))
            for step in self._behind:
                fields = step.run(fields, (seed, epoch, draw))
            rows = []
            for name in self.takes or fields:
                rows.append(row_of(name, fields[name]))
            return rows
        except Exception as error:
            return _failed(error, step, name)

    def explain(self) -> list[str]:
        """Lists the functions and the process or thread that runs each."""
        return [f"{step}: {_place(step)}, {self._where(step)}" for step in self.steps]

    def for_loader(self) -> Chain | None:
        """Returns a copy of the chain with its own processes, if any step requests processes."""
        if not self._apart:
            return None
        from .map_processes import Processes

        return Chain(self.steps, Processes(self._apart, max(step.processes for step in self._apart)))

    def begin(self) -> None:
        """Called before a loader's threads first call the functions."""
        if self._processes is not None:
            self._processes.start()

    def end(self) -> None:
        """Called when the loader ends."""
        if self._processes is not None:
            self._processes.end()

    def _run_apart(self, fields: Fields, draw: tuple[int, int, int]) -> Fields:
        if self._processes is not None:
            return self._processes.run(fields, draw)
        for step in self._apart:  # a single sample does not justify a process
            fields = step.run(fields, draw)
        return fields

    def _where(self, step: Step) -> str:
        if any(step.place == apart.place for apart in self._apart):
            return f"in {max(step.processes for step in self._apart)} worker processes of the loader"
        return "in the loader's threads, holding the GIL: Python code runs in one of them at a time"


class NotStarted(Exception):
    """A worker process exited while importing the main script. Reported as a ConfigError."""


class _NoField(ConfigError):
    """A function's field is missing from the previous one's result."""


class _WrongResult(TypeError):
    """A function's result is not valid for map()."""


def added(
    chain: Chain | None,
    function: Callable[..., Any],
    fields: str | Sequence[str] | None,
    processes: int,
    seeded: bool,
    writable: bool,
    behind: int,
) -> Chain:
    """Returns the chain with one more function, after checking its arguments."""
    where = "map"
    if not callable(function):
        raise ConfigError(f"{where}: fn must be a function, not {function!r}")
    names = None if fields is None else tuple(arguments.field_names(where, fields))
    if names is not None and len(set(names)) < len(names):
        raise ConfigError(f"{where}: fields contains a field twice: {fields!r}")
    steps = chain.steps if chain is not None else ()
    step = Step(
        function,
        names,
        isinstance(fields, str),
        arguments.flag(where, "seeded", seeded),
        arguments.integer(where, "processes", processes, low=0, high=4096),
        len(steps),
        behind,
        arguments.flag(where, "writable", writable),
    )
    if step.processes:
        _require_pickle(function)
    return Chain((*steps, step))


def name_of(function: Callable[..., Any]) -> str:
    """Returns the function's name for messages."""
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    return name.rpartition("<locals>.")[2]


def generator(seed: int, epoch: int, draw: int, place: int) -> Any:
    """Returns a random generator whose seed depends only on the sample and the map's index."""
    import numpy as np

    words = np.array([seed, epoch, draw, place], np.uint64).view(np.uint32)
    return np.random.default_rng(np.random.SeedSequence([int(word) for word in words]))


# ---- values ----


def row_of(name: str, value: Any) -> Row:
    """Converts one value for the engine; raises TypeError or ValueError if it cannot."""
    if value is None:
        return name, "none", "", (), b""
    if isinstance(value, bool):
        return name, "array", "bool", (), struct.pack("?", value)
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise _WrongResult(f"{value} does not fit into 64 bits")
        return name, "array", "int64", (), struct.pack("q", value)
    if type(value) is float:
        return name, "array", "float64", (), struct.pack("d", value)
    if isinstance(value, str):
        return _words(name, "text", value.encode())
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _words(name, "bytes", bytes(value))
    if isinstance(value, (dict, list, tuple)):
        return _words(name, "json", _json(value).encode())
    return _array(name, value)


def _words(name: str, kind: str, data: bytes) -> Row:
    return name, kind, "uint8", (len(data),), data


def _json(value: Any) -> str:
    try:
        return json.dumps(value)
    except (TypeError, ValueError) as error:
        raise _WrongResult(
            f"a {type(value).__name__} must be valid JSON, and this value is not ({error}): return an array, "
            "a number, "
            "text, bytes, or a JSON-compatible dict or list"
        ) from None


def _array(name: str, value: Any) -> Row:
    import numpy as np

    if not isinstance(value, (np.ndarray, np.generic)):
        if hasattr(value, "data_ptr"):
            value = value.numpy(force=True)
        elif not (hasattr(value, "__array__") or hasattr(value, "__array_interface__")):
            raise _WrongResult(f"{_kind(value)} is not an array, number, text, bytes, or JSON-compatible dict or list")
    array = np.asarray(value)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if array.dtype.name not in _DTYPES:
        raise _WrongResult(f"an array of dtype {array.dtype} cannot be batched")
    if not array.flags.c_contiguous:
        array = array.copy(order="C")
    return name, "array", array.dtype.name, array.shape, array


def _plain(value: Any) -> Any:
    """Converts a 0-d array to a number, as in ``ds[i]``."""
    return value.item() if getattr(value, "shape", None) == () else value


# ---- texts ----


def _takes(steps: Sequence[Step]) -> list[str]:
    names: dict[str, None] = {}
    for step in steps:
        if step.fields is None:
            return []
        names |= dict.fromkeys(step.fields)
    return list(names)


def _kind(value: Any) -> str:
    kind = type(value).__name__
    return (
        f"{len(value)} of them" if isinstance(value, (tuple, list)) else f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"
    )


def _place(step: Step) -> str:
    code = getattr(step.function, "__code__", None) or getattr(type(step.function).__call__, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code is not None else "not written in Python"


def _failed(error: Exception, step: Step | None, name: str | None) -> Failed:
    """Describes an error without the function's values: errors are stored, and the values may be large."""
    what = str(step) if step is not None else "map"
    field = "" if name is None else f"field '{name}': "
    if isinstance(error, (_NoField, NotStarted)):
        return "config", f"{what}: {error}", None
    if isinstance(error, (_WrongResult, WorkerDiedError)):
        return "data", f"{field}{what}: {error}", None
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    error.__traceback__ = trace
    with contextlib.suppress(Exception):
        traceback.clear_frames(trace)
    hint = _READ_ONLY if step and not step.writable and "read-only" in str(error) else ""
    about = field or (f"fields {', '.join(map(repr, step.fields))}: " if step and step.fields else "")
    return "data", f"{about}{what} raised {type(error).__name__}: {error}{hint}", error


def _require_pickle(function: Callable[..., Any]) -> None:
    try:
        pickle.dumps(function)
    except Exception as error:
        raise ConfigError(
            f"map: processes= requires a picklable function, but {name_of(function)} is not ({error}): define it with "
            "def at module level, or omit processes="
        ) from None
