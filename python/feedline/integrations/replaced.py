# SPDX-License-Identifier: Apache-2.0
"""Temporarily replaces names in a framework's modules with Feedline's."""

from __future__ import annotations

import types
from typing import Any

_ABSENT = object()


class Replaced:
    """The replacement of a framework's names, which is active until :meth:`uninstall` is called or its ``with`` block
    ends.

    Create the loaders in the thread that called `install()`, since frameworks look up the names when they create a
    loader.
    """

    def __init__(self, names: list[tuple[Any, str, Any]]) -> None:
        """`names`: a (module, name, replacement) tuple for each name."""
        self._before = [(module, name, vars(module).get(name, _ABSENT)) for module, name, _ in names]
        for module, name, value in names:
            setattr(module, name, value)

    def uninstall(self) -> None:
        """Restores the framework's own names. A second call has no effect."""
        before, self._before = self._before, []
        for module, name, value in reversed(before):
            if value is _ABSENT:
                delattr(module, name)
            else:
                setattr(module, name, value)

    def __enter__(self) -> Replaced:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: types.TracebackType | None
    ) -> None:
        self.uninstall()
