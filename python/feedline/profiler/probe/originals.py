# SPDX-License-Identifier: Apache-2.0
"""Saves the attributes of modules and classes before hooks are installed, for processes that outlive profiling."""

from __future__ import annotations

from typing import Any

_ABSENT = object()


class Originals:
    """The attributes saved in one session. Not thread-safe."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[Any, dict[str, Any]]] = {}  # by id(): a module or class, and its attributes

    def keep(self, module: Any) -> None:
        """Called before hooks are installed in `module`; saves the attributes of the module, its classes, and the
        pickler.
        """
        from multiprocessing import reduction

        classes = [value for value in vars(module).values() if isinstance(value, type)]
        for owner in (module, *classes, reduction.ForkingPickler):
            self._kept.setdefault(id(owner), (owner, dict(vars(owner))))

    def put_back(self) -> None:
        """Restores the original of every hook, except hooks that other code has wrapped."""
        for owner, before in self._kept.values():
            for name, value in list(vars(owner).items()):
                if value is not before.get(name, _ABSENT) and _is_hook(value):
                    if name in before:
                        setattr(owner, name, before[name])
                    else:
                        delattr(owner, name)
        self._kept.clear()


def _is_hook(value: Any) -> bool:
    function = getattr(value, "__func__", value)  # of a classmethod or staticmethod
    code = getattr(function, "__code__", None)
    return code is not None and _HOOKS in code.co_filename.replace("\\", "/")


_HOOKS = "/feedline/profiler/"
