# SPDX-License-Identifier: Apache-2.0
"""Discovers rules from the modules in a folder, so that no list of rules is needed."""

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
    """Returns the object `name` from each module that `modules_in` returns, with the module's thresholds added to the
    object's page.

    Args:
        kind: a dataclass whose `page` is an Entry. The page's code must be the file's name.

    Raises:
        ConfigError: as for `modules_in`, or a file does not define the object, or its code is not the file's name. The
            message names the file.
    """
    rules = []
    for module in modules_in(package, folders):
        made = getattr(module, name, None)
        if not isinstance(made, kind):
            raise ConfigError(
                f"{module.__file__} defines no {name}; see docs/findings.md for the contents of such a file"
            )
        rule: Any = made
        if rule.page.code != name_of(module):
            raise ConfigError(f"{module.__file__} defines {rule.page.code!r}; the code must be the name of the file")
        rules.append(replace(rule, page=replace(rule.page, thresholds=thresholds_of(module))))
    return rules


def modules_in(package: ModuleType, folders: Iterable[Path | str] = ()) -> list[ModuleType]:
    """Imports and returns the modules of a package sorted by name, then those in additional `folders`.

    Args:
        package: a package with one finding per module, in the package itself or in its subpackages; modules whose names
            begin with an underscore are skipped.
        folders: folders with files of the same form.

    Raises:
        ConfigError: one of `folders` does not exist, a file in it cannot be imported, or two files have the same name.
    """
    found = pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    names = [one.name for one in found if not one.ispkg and not one.name.rpartition(".")[2].startswith("_")]
    modules = sorted(map(importlib.import_module, names), key=name_of)
    for folder in map(Path, folders):
        if not folder.is_dir():
            raise ConfigError(f"no such folder: {folder}")
        modules += [_loaded(path, package) for path in sorted(folder.glob("[!_]*.py"))]
    files: dict[str, str] = {}
    for module in modules:
        stem, file = name_of(module), str(module.__file__)
        if stem in files:
            raise ConfigError(
                f"two files are named {stem}.py: {files[stem]} and {file}; rename one of them, and its code"
            )
        files[stem] = file
    return modules


def name_of(module: ModuleType) -> str:
    """Returns the name of the module's file, which is the code of its finding."""
    return Path(str(module.__file__)).stem


def _loaded(path: Path, package: ModuleType) -> ModuleType:
    digest = zlib.crc32(str(path.absolute()).encode())  # files with the same name in two folders are different modules
    name = f"{package.__name__}.added_{digest:08x}_{path.stem}"
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
