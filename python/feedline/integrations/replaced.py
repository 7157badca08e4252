# SPDX-License-Identifier: Apache-2.0
"""Names in modules of a framework that are Feedline's for a while."""

from __future__ import annotations

import types
from typing import Any

_ABSENT = object()


class Replaced:
    """What an `install()` gives. It holds until :meth:`uninstall`, or as a context manager until its end.

    Used by the thread that installs: frameworks look names up when they make a loader.
    """

    def __init__(self, names: list[tuple[Any, str, Any]]) -> None:
        """`names`: (module, name, what it is from now on)."""
        self._before = [(module, name, vars(module).get(name, _ABSENT)) for module, name, _ in names]
        for module, name, value in names:
            setattr(module, name, value)

    def uninstall(self) -> None:
        """The framework's own names again. A second call does nothing."""
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
