# SPDX-License-Identifier: Apache-2.0
"""What modules and their classes had before hooks were put in: for processes that outlive being watched."""

from __future__ import annotations

from typing import Any

_ABSENT = object()


class Originals:
    """Of one session. Of one thread."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[Any, dict[str, Any]]] = {}  # by id(): a module or class, and its attributes

    def keep(self, module: Any) -> None:
        """Called before hooks are put into `module`: into its functions, its classes, or what packs batches."""
        from multiprocessing import reduction

        classes = [value for value in vars(module).values() if isinstance(value, type)]
        for owner in (module, *classes, reduction.ForkingPickler):
            self._kept.setdefault(id(owner), (owner, dict(vars(owner))))

    def put_back(self) -> None:
        """Every hook gives its place back to what it hides; what somebody else put over one stays."""
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


_HOOKS = "/feedline/watching/"
