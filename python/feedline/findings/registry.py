# SPDX-License-Identifier: Apache-2.0
"""Finds rules by their modules in a folder, so that there is no list of rules."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import sys
import zlib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from ..errors import ConfigError
from .catalogue import thresholds_of

_Rule = TypeVar("_Rule")


def rules_in(package: ModuleType, folders: Iterable[Path | str], name: str, kind: type[_Rule]) -> list[_Rule]:
    """Returns the object `name` of each of `modules_in`, with the file's thresholds on its page.

    Args:
        kind: a dataclass whose `page` is an Entry. The page's code is the file's name.

    Raises:
        ConfigError: as `modules_in`; or a file defines no such object, or one with another code. The message names the
            file.
    """
    rules = []
    for module in modules_in(package, folders):
        made = getattr(module, name, None)
        if not isinstance(made, kind):
            raise ConfigError(f"{module.__file__} defines no {name}; docs/findings.md describes the file of a cause")
        rule: Any = made
        if rule.page.code != name_of(module):
            raise ConfigError(f"{module.__file__} defines {rule.page.code!r}; give both the same name")
        rules.append(replace(rule, page=replace(rule.page, thresholds=thresholds_of(module))))
    return rules


def modules_in(package: ModuleType, folders: Iterable[Path | str] = ()) -> list[ModuleType]:
    """Imports and returns the modules of a package by name, then those of further `folders`.

    Args:
        package: a package with one finding per module; names that begin with an underscore are skipped.
        folders: folders of files of the same form.

    Raises:
        ConfigError: one of `folders` does not exist, a file in it cannot be imported, or two files have the same name.
    """
    names = sorted(found.name for found in pkgutil.iter_modules(package.__path__) if found.name[0] != "_")
    modules = [importlib.import_module(f"{package.__name__}.{name}") for name in names]
    for folder in map(Path, folders):
        if not folder.is_dir():
            raise ConfigError(f"no such folder: {folder}")
        modules += [_loaded(path, package) for path in sorted(folder.glob("[!_]*.py"))]
    files: dict[str, str] = {}
    for module in modules:
        stem, file = name_of(module), str(module.__file__)
        if stem in files:
            raise ConfigError(f"two files are named {stem}.py: {files[stem]} and {file}; rename one, with its code")
        files[stem] = file
    return modules


def name_of(module: ModuleType) -> str:
    """Returns the name of its file, which is the code of its finding."""
    return Path(str(module.__file__)).stem


def _loaded(path: Path, package: ModuleType) -> ModuleType:
    place = zlib.crc32(str(path.absolute()).encode())  # files with the same name in two folders are different modules
    name = f"{package.__name__}.added_{place:08x}_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ConfigError(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look up their module there
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # a user's file may raise anything
        del sys.modules[name]
        raise ConfigError(f"{path} cannot be imported: {type(error).__name__}: {error}") from error
    return module
