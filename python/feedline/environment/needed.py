# SPDX-License-Identifier: Apache-2.0
"""Packages that only `feedline env` needs: imported where they are used, and missed in a sentence."""

from __future__ import annotations

import importlib
from typing import Any

from ..errors import ConfigError

_PROJECTS = {"packaging": "packaging", "yaml": "pyyaml", "rattler": "py-rattler"}


def needed(module: str) -> Any:
    """The module `module`.

    Raises:
        ConfigError: its project is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != module.partition(".")[0]:
            raise
        project = _PROJECTS[module.partition(".")[0]]
        raise ConfigError(f'feedline env needs {project}; run: pip install "feedline[env]"') from None
