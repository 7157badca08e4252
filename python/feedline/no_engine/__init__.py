# SPDX-License-Identifier: Apache-2.0
"""The package without its engine, from the wheel for any platform: imports work, `DataLoader` is torch's.

All other names that need the engine can be imported and used as types; they raise ConfigError when they are called.
Submodules that need the engine, such as `feedline.packing`, raise ModuleNotFoundError with the same advice.
"""

from __future__ import annotations

import sys
from typing import Any, NoReturn

from ..errors import ConfigError

_REMEDIES = {
    "win32": "run Python in WSL 2 (Windows Subsystem for Linux) and install Feedline there",
    "darwin": "run Python in a Linux container or virtual machine and install Feedline there",
}
_OTHER = "install the wheel of this processor and Python version, or build it with tools/wheel"


def advice(name: str) -> str:
    """Returns why `name` cannot be used in this installation, and what to do."""
    return (
        f"{name} needs Feedline's engine, which runs on Linux (x86-64, aarch64) and is not installed here; "
        f"{_REMEDIES.get(sys.platform, _OTHER)}. Without the engine, feedline.DataLoader is torch's DataLoader"
    )


class _Unusable(type):
    """Metaclass of stand-ins: reading an attribute or calling one raises an error."""

    def __call__(cls, *_: Any, **__: Any) -> NoReturn:
        raise ConfigError(advice(f"feedline.{cls.__name__}"))

    def __getattr__(cls, name: str) -> NoReturn:
        raise AttributeError(advice(f"feedline.{cls.__name__}.{name}"))


def stand_in(name: str) -> Any:
    """Returns a replacement for the public `name`, which needs the engine."""
    if name == "DataLoader":
        from .stock_loader import DataLoader

        return DataLoader
    return _Unusable(name, (), {"__module__": "feedline", "__doc__": advice(f"feedline.{name}")})
