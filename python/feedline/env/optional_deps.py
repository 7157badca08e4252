# SPDX-License-Identifier: Apache-2.0
"""Imports the optional dependencies of `feedline env`, with an error that names the missing package."""

from __future__ import annotations

import importlib
from typing import Any

from ..errors import ConfigError

_PROJECTS = {"packaging": "packaging", "yaml": "pyyaml", "rattler": "py-rattler"}


def optional_dependency(module: str) -> Any:
    """Imports and returns `module`.

    Raises:
        ConfigError: the project of `module` is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != module.partition(".")[0]:
            raise
        project = _PROJECTS[module.partition(".")[0]]
        raise ConfigError(f'feedline env needs {project}; run: pip install "feedline[env]"') from None
