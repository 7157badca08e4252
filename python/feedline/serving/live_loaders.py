# SPDX-License-Identifier: Apache-2.0
"""The loaders of this process that have begun an epoch and are not closed: the source of process-wide metrics.

Without locks, which a fork in another thread could leave locked in the child: each step is one operation on a dict.
"""

from __future__ import annotations

import itertools
import os
import weakref
from typing import Any, Protocol


class CountingLoader(Protocol):
    """A loader whose statistics can be served."""

    def _counters(self) -> dict[str, Any]: ...


_loaders: dict[int, tuple[int, weakref.ref[Any]]] = {}  # by serial number, with the process that uses the loader
_numbers = itertools.count()


def add(loader: CountingLoader) -> None:
    """Adds `loader` until :func:`remove` is called or it is garbage collected. Idempotent."""
    if not any(live is loader for _, live in _live()):
        _loaders[next(_numbers)] = (os.getpid(), weakref.ref(loader))


def remove(loader: CountingLoader) -> None:
    """Removes `loader`, if it was added."""
    for number, live in _live():
        if live is loader:
            _loaders.pop(number, None)


def statistics() -> dict[str, dict[str, Any]]:
    """Returns the counters of every loader by its serial number, in the order of their first epochs."""
    return {str(number): loader._counters() for number, loader in _live()}


def _live() -> list[tuple[int, Any]]:
    found = []
    for number in list(_loaders):
        pid, reference = _loaders.get(number, (0, None))
        loader = reference() if reference is not None and pid == os.getpid() else None
        if loader is None:
            _loaders.pop(number, None)  # garbage collected, or a parent's
        else:
            found.append((number, loader))
    return found
