# SPDX-License-Identifier: Apache-2.0
"""Extensions: shared libraries with the C interface of plugins, and formats and operations in Python."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, overload

from .. import _engine
from ..errors import ConfigError
from . import arguments
from .format_names import EPISODES, FORMATS, MANIFESTS

_Function = TypeVar("_Function", bound=Callable[..., Any])


class Plugin(NamedTuple):
    """A plugin, and the names that it has registered.

    Attributes:
        path: the library's file, absolute, without symbolic links.
        storages: URL schemes, such as ``"demo"`` for ``demo://``.
        formats: values of ``open(format=)``.
        codecs: names of image formats, as in :class:`ImageInfo`.
        operations: names for :meth:`Dataset.apply`.
    """

    path: str
    storages: tuple[str, ...]
    formats: tuple[str, ...]
    codecs: tuple[str, ...]
    operations: tuple[str, ...]


def load_plugin(path: str | os.PathLike[str]) -> Plugin:
    """Loads a shared library that extends the engine, and returns the names that it registers; see docs/extending.md.

    The library stays loaded until the process ends. Loading the same file again only returns its names. Pickled
    datasets name the plugins of their process, and unpickling loads them, as in workers that are spawned.

    Args:
        path: the library. It is code that runs in this process: only load libraries that you trust.

    Raises:
        ConfigError: the file does not exist or cannot be loaded, is not a plugin, has another version of the plugin
            interface, fails to register, or registers a name that exists. Nothing is registered then.
    """
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(text, str):
        raise ConfigError(f"load_plugin: path must be a path, not {path!r}")
    return _plugin_of(_engine.load_plugin(text))


def include_folder() -> str:
    """Returns the folder of the C headers for plugins: ``#include "feedline/plugin/plugin.h"``.

    Raises:
        ConfigError: this installation has no headers.
    """
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "include", package.parents[1] / "include"):  # of a wheel, of a checkout
        if (folder / "feedline" / "plugin" / "plugin.h").is_file():
            return str(folder)
    raise ConfigError(f"include_folder: {package} has no folder 'include'; install Feedline from a wheel")


def _plugin_of(row: tuple[str, list[str], list[str], list[str], list[str]]) -> Plugin:
    path, *names = row
    return Plugin(path, *map(tuple, names))


# ---- extensions in Python ----


class _Format(NamedTuple):
    function: Callable[..., Any]
    extensions: tuple[str, ...]


class _Operation(NamedTuple):
    function: Callable[..., Any]
    batched: bool
    seeded: bool


_formats: dict[str, _Format] = {}
_operations: dict[str, _Operation] = {}


def format(name: str, *, extensions: Sequence[str] = ()) -> Callable[[_Function], _Function]:
    """Registers a function that opens sources of a format: ``feedline.open(source, format=name)``.

    ::

        @feedline.format("lines", extensions=["lines"])
        def open_lines(source):
            return [{"text": line} for line in open(source)]

    The function is called with the source as the user wrote it, and returns

    - a :class:`Dataset`, for example of :func:`feedline.files`: the engine reads and decodes it without Python;
    - a dict of columns, as the arguments of :func:`feedline.arrays`; or
    - samples, an object with ``len()`` and ``[index]``. A sample is a dict of values that :meth:`Dataset.map` supports.
      The loader's threads read samples concurrently and hold the GIL, so Python code runs in one thread at a time.

    Args:
        name: the name for ``format=``.
        extensions: files with these extensions (lower case, without a dot) are opened by the function if ``format`` is
            omitted.

    Raises:
        ConfigError: the name or an extension belongs to another format.
    """
    where = "format"
    if not isinstance(name, str) or not name:
        raise ConfigError(f"{where}: name must be text, not {name!r}")
    ends = tuple(extensions)
    if isinstance(extensions, str) or any(not isinstance(one, str) or one != one.lower().lstrip(".") for one in ends):
        raise ConfigError(
            f"{where}: extensions must be a list of names in lower case without a dot, not {extensions!r}"
        )

    def register(function: _Function) -> _Function:
        if not callable(function):
            raise ConfigError(f"{where}: {name!r} must be a function, not {function!r}")
        if name in (*FORMATS, *EPISODES, *MANIFESTS) or not _may_replace(_formats.get(name), function):
            raise ConfigError(f"{where}: the format {name!r} exists already; choose another name")
        for other, known in _formats.items():
            if other != name and (shared := set(ends).intersection(known.extensions)):
                raise ConfigError(f"{where}: the extension {min(shared)!r} belongs to the format {other!r}")
        _formats[name] = _Format(function, ends)
        return function

    return register


@overload
def operation(function: _Function) -> _Function: ...
@overload
def operation(
    *, name: str | None = None, batched: bool = False, seeded: bool = False
) -> Callable[[_Function], _Function]: ...
def operation(function: Any = None, *, name: str | None = None, batched: bool = False, seeded: bool = False) -> Any:
    """Registers a NumPy function as an operation: ``dataset.apply("NAME", argument=1)``.

    ::

        @feedline.operation
        def invert(image):
            return 255 - image

    The function receives a field of a sample, by default the image, as :meth:`Dataset.map` does: uint8 (3, height,
    width). It returns the new value. Each call holds the GIL; NumPy code that releases it runs on all threads. A plugin
    in C++ has no such limit (docs/extending.md).

    Args:
        function: the function. It must be pure and, for pickled datasets, defined at module level.
        name: the operation's name; by default that of the function.
        batched: the function is for batches, (samples, 3, height, width): it is called with a batch of one sample.
        seeded: the function has an argument ``rng``; see :meth:`Dataset.map`.

    Raises:
        ConfigError: an operation with this name exists.
    """
    where = "operation"
    flags = arguments.flag(where, "batched", batched), arguments.flag(where, "seeded", seeded)

    def register(function: Any) -> Any:
        if not callable(function):
            raise ConfigError(f"{where}: the decorated object must be a function, not {function!r}")
        key = name if name is not None else getattr(function, "__name__", "")
        if not isinstance(key, str) or not key:
            raise ConfigError(f"{where}: name must be text, not {key!r}")
        if not _may_replace(_operations.get(key), function):
            raise ConfigError(f"{where}: the operation {key!r} exists already; choose another name")
        _operations[key] = _Operation(function, *flags)
        return function

    return register if function is None else register(function)


def _may_replace(known: _Format | _Operation | None, function: Callable[..., Any]) -> bool:
    """Whether a name is free, or the function is defined again, as after a reload or in a spawned process."""
    return known is None or known.function.__qualname__ == getattr(function, "__qualname__", None)


def opened(name: str, source: Any) -> Any:
    """Calls the function of a format in Python."""
    return _formats[name].function(source)


def format_of(source: Any, format: Any) -> str | None:
    """Returns the name of the format in Python that opens the source, or None."""
    if not _formats:
        return None
    if format is not None:
        return format if isinstance(format, str) and format in _formats else None
    path = os.fspath(source) if isinstance(source, str | os.PathLike) else ""
    end = os.path.splitext(path)[1][1:].lower() if isinstance(path, str) else ""
    return next((name for name, known in _formats.items() if end and end in known.extensions), None)


class Applied:
    """A registered operation with its arguments, as the function for :meth:`Dataset.map`."""

    def __init__(self, name: str, given: Mapping[str, Any]) -> None:
        self._name, self._given = name, dict(given)

    @property
    def is_seeded(self) -> bool:
        return _operations[self._name].seeded

    def __call__(self, value: Any, **more: Any) -> Any:
        known = _operations[self._name]
        made = known.function(value[None] if known.batched else value, **self._given, **more)
        return made[0] if known.batched else made


def is_operation(name: Any) -> bool:
    """Whether a Python function was registered as an operation with this name."""
    return isinstance(name, str) and name in _operations


# ---- other processes ----


class Extensions(NamedTuple):
    """The extensions of a process, which another process needs to repeat its calls."""

    paths: tuple[str, ...]  # of plugins
    modules: tuple[str, ...]  # that register formats or operations


def loaded() -> Extensions | None:
    """Returns the extensions of this process; None if there are none."""
    paths = tuple(row[0] for row in _engine.loaded_plugins())
    functions = [known.function for known in (*_formats.values(), *_operations.values())]
    names = {getattr(function, "__module__", None) or "" for function in functions}
    modules = tuple(sorted(names - {"", "__main__", "__mp_main__"}))  # spawned processes import the main script first
    return Extensions(paths, modules) if paths or modules else None


def load(extensions: Extensions) -> None:
    """Loads the extensions of the process that pickled a dataset."""
    for path in extensions.paths:
        load_plugin(path)
    for module in extensions.modules:
        importlib.import_module(module)
