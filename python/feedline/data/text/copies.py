# SPDX-License-Identifier: Apache-2.0
"""Copies of an object for concurrent threads."""

from __future__ import annotations

import contextlib
import copy
import os
from collections.abc import Iterator
from typing import Generic, TypeVar

from ..map.mapping import UnusableFunction

T = TypeVar("T")


class Copies(Generic[T]):
    """One copy of an object per concurrent thread. The original is only copied, never called.

    Copies are not made per thread identity: the engine's threads have no lasting Python thread state. A thread takes an
    idle copy, or makes one. A pickle contains the original only.
    """

    def __init__(self, original: T) -> None:
        self._original = original
        self._idle: list[T] = []
        self._pid = os.getpid()

    @contextlib.contextmanager
    def one(self) -> Iterator[T]:
        """Lends a copy. Raises UnusableFunction in a forked process, where threads of tokenizers do not work."""
        if os.getpid() != self._pid:
            raise UnusableFunction(
                "a tokenizer does not work in a forked process, where its threads are missing and the call can hang: "
                'iterate ds.loader(), or pass multiprocessing_context="spawn" to the DataLoader'
            )
        try:
            lent = self._idle.pop()  # atomic: it needs no lock
        except IndexError:
            lent = copy.deepcopy(self._original)
        try:
            yield lent
        finally:
            self._idle.append(lent)

    def __getstate__(self) -> T:
        return self._original

    def __setstate__(self, original: T) -> None:
        Copies.__init__(self, original)
