# SPDX-License-Identifier: Apache-2.0
"""Extensions: shared libraries with the C interface of plugins, and formats and operations in Python."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, TypeVar, overload

from .. import _engine
from ..errors import ConfigError
from . import arguments
from .format_names import EPISODES, FORMATS, MANIFESTS

Function = TypeVar("Function", bound=Callable[..., Any])


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
            interface, fails to register, or registers a name or an extension that exists. Nothing is registered then.
    """
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(text, str):
        raise ConfigError(f"load_plugin: path must be a path, not {path!r}")
    return _plugin_of(_engine.load_plugin(text, list(_formats), list(_operations)))


def include_folder() -> str:
    """Returns the folder of the C headers for plugins: ``#include "feedline/plugin/plugin.h"``.

    Raises:
        ConfigError: this installation has no headers.
    """
    package = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    checkout = os.path.dirname(os.path.dirname(package))
    for folder in (os.path.join(package, "include"), os.path.join(checkout, "include")):
        if os.path.isfile(os.path.join(folder, "feedline", "plugin", "plugin.h")):
            return folder
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


def format(name: str, *, extensions: Sequence[str] = ()) -> Callable[[Function], Function]:
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
    are_several = isinstance(extensions, Sequence) and not isinstance(extensions, str)
    ends: tuple[Any, ...] = tuple(extensions) if are_several else (None,)
    if any(not isinstance(one, str) or not one or one != one.lower().lstrip(".") for one in ends):
        raise ConfigError(
            f"{where}: extensions must be a list of names in lower case without a dot, not {extensions!r}"
        )

    def register(function: Function) -> Function:
        if not callable(function):
            raise ConfigError(f"{where}: {name!r} must be a function, not {function!r}")
        existing = (*FORMATS, *EPISODES, *MANIFESTS, *formats())
        if name in existing or not _may_replace(_formats.get(name), function):
            raise ConfigError(f"{where}: the format {name!r} exists already; choose another name")
        for other, known in _formats.items():
            if other != name and (shared := set(ends).intersection(known.extensions)):
                raise ConfigError(f"{where}: the extension {min(shared)!r} belongs to the format {other!r}")
        for end in ends:
            if _engine.reads_extension(end):
                raise ConfigError(
                    f"{where}: Feedline or a plugin reads files with the extension {end!r}; choose another"
                )
        _formats[name] = _Format(function, ends)
        return function

    return register


@overload
def operation(function: Function) -> Function: ...
@overload
def operation(
    *, name: str | None = None, batched: bool = False, seeded: bool = False
) -> Callable[[Function], Function]: ...
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
        existing = [one for plugin in _plugins() for one in plugin.operations]
        if key in existing or not _may_replace(_operations.get(key), function):
            raise ConfigError(f"{where}: the operation {key!r} exists already; choose another name")
        _operations[key] = _Operation(function, *flags)
        return function

    return register if function is None else register(function)


def _may_replace(known: _Format | _Operation | None, function: Callable[..., Any]) -> bool:
    """Whether a name is free, or the function is defined again, as after a reload."""
    return known is None or _name_of(known.function) == _name_of(function)


def _name_of(function: Callable[..., Any]) -> tuple[str, str]:
    module = (getattr(function, "__module__", None) or "").replace("__mp_main__", "__main__")
    return module, getattr(function, "__qualname__", repr(function))


def _plugins() -> list[Plugin]:
    return [_plugin_of(row) for row in _engine.loaded_plugins()]


def formats() -> list[str]:
    """Returns the names of the formats of plugins."""
    return [name for plugin in _plugins() for name in plugin.formats]


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
    """A registered operation with its arguments, as the function for :meth:`Dataset.map`.

    A pickle names the function, not the operation, so that unpickling imports the function's module.
    """

    describes_itself: ClassVar[bool] = True

    def __init__(self, name: str, given: Mapping[str, Any]) -> None:
        self.__wrapped__, self._is_batched, self.is_seeded = _operations[name]
        self._given = dict(given)
        self.call = f"apply({', '.join([repr(name), *(f'{key}={value!r:.80}' for key, value in given.items())])})"
        self.runs = f"{_name_of(self.__wrapped__)[1]}, a Python function"

    def __call__(self, value: Any, **more: Any) -> Any:
        made = self.__wrapped__(value[None] if self._is_batched else value, **self._given, **more)
        return made[0] if self._is_batched else made


def is_operation(name: Any) -> bool:
    """Whether a Python function was registered as an operation with this name."""
    return isinstance(name, str) and name in _operations


# ---- other processes ----


class Extensions(NamedTuple):
    """What another process must load to repeat the calls that created a dataset."""

    paths: tuple[str, ...]  # of plugins
    modules: tuple[str, ...]  # that register formats


def needed(opening: Mapping[str, Any]) -> Extensions | None:
    """Returns all plugins of this process, and the module of the format in Python that `open` uses with these
    arguments; None if there are none. The main script is omitted: spawned processes run it first.
    """
    paths = tuple(plugin.path for plugin in _plugins())
    name = format_of(opening.get("source"), opening.get("format"))
    modules = [] if name is None else [_name_of(_formats[name].function)[0]]
    modules = [module for module in modules if module not in ("", "__main__")]
    return Extensions(paths, tuple(modules)) if paths or modules else None


def load(extensions: Extensions) -> None:
    """Loads the extensions that unpickling a dataset needs."""
    for path in extensions.paths:
        load_plugin(path)
    for module in extensions.modules:
        importlib.import_module(module)
