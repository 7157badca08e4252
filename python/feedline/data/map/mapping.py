# SPDX-License-Identifier: Apache-2.0
"""User functions on samples, called by the engine's threads: their inputs and results."""

from __future__ import annotations

import contextlib
import json
import pickle
import re
import struct
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from ..._engine import MAX_DIMENSIONS
from ...errors import ConfigError, WorkerDiedError
from .. import arguments

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
_MAX_DIMENSIONS = MAX_DIMENSIONS - 1  # of one value, without the batch dimension


class Step(NamedTuple):
    """One ``map()``. ``fields``: field names, or None for all. ``alone``: the function has one field, and its result is
    the field's new value. ``number``: index among the maps. ``preceding``: the number of preceding operations.
    ``processes``: number of worker processes, 0 for none. ``writable``: whether the function may change its arrays.
    """

    function: Callable[..., Any]
    fields: tuple[str, ...] | None
    alone: bool
    seeded: bool
    processes: int
    number: int
    preceding: int
    writable: bool

    def run(self, fields: Fields, draw: tuple[int, int, int]) -> Fields:
        """Returns the fields, with the function's inputs replaced by its results."""
        more = {"rng": generator(*draw, self.number)} if self.seeded else {}
        if self.fields is None:
            made = self.function(fields, **more)
            if not isinstance(made, Mapping):
                raise _WrongResult(f"the function must return a dict of fields by name, not {_kind(made)}")
            strange = [name for name in made if not isinstance(name, str)]
            if strange:
                raise _WrongResult(
                    f"the function must return a dict of fields by name, but the key {strange[0]!r:.80} is not text"
                )
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
        """Describes the step as a call to :meth:`Dataset.map`, or of the method that added it."""
        described = _described(self)
        if described is not None:
            return described.call
        named = self.fields[0] if self.fields and self.alone else self.fields
        fields = "" if named is None else f", fields={named!r}"
        processes = f", processes={self.processes}" if self.processes else ""
        flags = ("" if self.writable else ", writable=False") + (", seeded=True" if self.seeded else "")
        return f"map({name_of(self.function)}{fields}{processes}{flags})"


class Chain:
    """The functions of a dataset in sequence; each receives the unmodified result of the previous function."""

    def __init__(self, steps: Sequence[Step], processes: Processes | None = None) -> None:
        self.steps = tuple(steps)
        self._processes = processes
        with_processes = [step.number for step in self.steps if step.processes]
        first, last = (with_processes[0], with_processes[-1] + 1) if with_processes else (len(self.steps),) * 2
        self._before, self._apart, self._behind = self.steps[:first], self.steps[first:last], self.steps[last:]
        self.takes = _takes(self.steps)
        self.only_reads = not any(step.writable for step in self.steps)
        # functions of the user may write to their results in a later call
        self.gives_away = len(self._own_functions()) == len(self.steps)

    # ---- called by the engine, in any thread ----

    def call(self, names: list[str], values: list[Any], seed: int, epoch: int, draw: int) -> list[Row] | Failed:
        """Returns the functions' result for a sample's fields, or the error. Only exceptions that end the program are
        raised.
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
        return [f"{step}: {_runs(step)}, {self._where(step)}" for step in self.steps]

    def for_loader(self) -> Chain | None:
        """Returns a copy of the chain with its own processes, if any step requests processes."""
        if not self._apart:
            return None
        from .map_processes import Processes

        return Chain(self.steps, Processes(self._apart, max(step.processes for step in self._apart)))

    def begin(self) -> None:
        """Called before a loader's threads first call the functions."""
        for function in self._own_functions():
            function.begin()
        if self._processes is not None:
            self._processes.start()

    def end(self) -> None:
        """Called when the loader closes."""
        if self._processes is not None:
            self._processes.end()
        for function in self._own_functions():
            function.end()

    def _own_functions(self) -> list[Any]:
        return [step.function for step in self.steps if getattr(type(step.function), "gives_away", False)]

    def _run_apart(self, fields: Fields, draw: tuple[int, int, int]) -> Fields:
        if self._processes is not None:
            return self._processes.run(fields, draw)
        for step in self._apart:  # a single sample does not justify a process
            fields = step.run(fields, draw)
        return fields

    def _where(self, step: Step) -> str:
        if any(step.number == apart.number for apart in self._apart):
            return f"in {max(step.processes for step in self._apart)} worker processes of the loader"
        holding = "" if _described(step) else ", holding the GIL: Python code runs in one thread at a time"
        return f"in the loader's threads{holding}"


class NotStarted(Exception):
    """A worker process exited while importing the main script. The exit is reported as a ConfigError."""


class UnusableFunction(ConfigError):
    """Why a function cannot run for any sample, such as a missing field. Reported as a ConfigError."""


class BadField(ValueError):
    """Why a function cannot use a field of this sample. Reported as the sample's error, which names the field.

    Args:
        field: the field's name.
        why: the reason.
    """

    def __init__(self, field: str, why: str) -> None:
        super().__init__(field, why)
        self.field, self.why = field, why

    def __str__(self) -> str:
        return self.why


class _NoField(UnusableFunction):
    """A field that the function needs is missing from the previous function's result."""


class Described(Protocol):
    """A function of this package that is shown as its own method instead of as ``map(...)``."""

    describes_itself: ClassVar[bool]
    call: str  # such as "tokenize('tokenizer.json')"
    runs: str  # for explain(): where and how it runs


class _WrongResult(TypeError):
    """A function's result is not valid for map()."""


def added(
    chain: Chain | None,
    function: Callable[..., Any],
    fields: str | Sequence[str] | None,
    processes: int,
    seeded: bool,
    writable: bool,
    preceding: int,
) -> Chain:
    """Checks the arguments of :meth:`Dataset.map`, and returns the chain with the function appended."""
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
        preceding,
        arguments.flag(where, "writable", writable),
    )
    if step.processes:
        _require_pickle(function)
    return Chain((*steps, step))


def name_of(function: Callable[..., Any]) -> str:
    """Returns the function's name for messages."""
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    return name.rpartition("<locals>.")[2]


def generator(seed: int, epoch: int, draw: int, index: int) -> Any:
    """Returns a random generator whose seed depends only on the sample and the map's index."""
    import numpy as np

    words = np.array([seed, epoch, draw, index], np.uint64).view(np.uint32)
    return np.random.default_rng(np.random.SeedSequence([int(word) for word in words]))


# ---- values ----


def row_of(name: str, value: Any) -> Row:
    """Converts one value to the engine's form; raises TypeError or ValueError if it is not supported."""
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
    if array.ndim > _MAX_DIMENSIONS:
        raise _WrongResult(f"an array with {array.ndim} dimensions cannot be batched; the maximum is {_MAX_DIMENSIONS}")
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


def _described(step: Step) -> Described | None:
    function: Any = step.function
    return function if hasattr(type(function), "describes_itself") else None


def _runs(step: Step) -> str:
    described = _described(step)
    if described is not None:
        return described.runs
    code = getattr(step.function, "__code__", None) or getattr(type(step.function).__call__, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code is not None else "not written in Python"


def _failed(error: Exception, step: Step | None, name: str | None) -> Failed:
    """Describes an error without references to the function's local variables, because errors are stored, and these
    variables may be large.
    """
    what = str(step) if step is not None else "map"
    field = "" if name is None else f"field '{name}': "
    if isinstance(error, (UnusableFunction, NotStarted)):
        return "config", f"{what}: {error}", None
    if isinstance(error, BadField):
        cause = error.__cause__
        return "data", f"field '{error.field}': {what}: {error}", cause if isinstance(cause, Exception) else None
    if isinstance(error, (_WrongResult, WorkerDiedError)):
        return "data", f"{field}{what}: {error}", None
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    error.__traceback__ = trace
    with contextlib.suppress(Exception):
        traceback.clear_frames(trace)
    hint = _READ_ONLY if step and not step.writable and "read-only" in str(error) else ""
    if step and step.fields is None and _is_from_dict(error):
        hint = f"; the function receives a dict of all fields: map({name_of(step.function)}, 'NAME') passes one field"
    about = field or (f"fields {', '.join(map(repr, step.fields))}: " if step and step.fields else "")
    return "data", f"{about}{what} raised {type(error).__name__}: {error}{hint}", error


def _is_from_dict(error: Exception) -> bool:
    """Returns whether the error is typical of a function that was given a dict instead of an array."""
    if isinstance(error, KeyError):
        return not (error.args and isinstance(error.args[0], str))
    return isinstance(error, TypeError | AttributeError) and re.search(r"\bdict\b|'slice'", str(error)) is not None


def _require_pickle(function: Callable[..., Any]) -> None:
    try:
        pickle.dumps(function)
    except Exception as error:
        why = re.sub(r" at 0x[0-9a-f]+", "", str(error))
        raise ConfigError(
            f"map: processes= requires a picklable function, but {name_of(function)} is not ({why}): define it with "
            "def at module level, or omit processes="
        ) from None
