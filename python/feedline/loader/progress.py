# SPDX-License-Identifier: Apache-2.0
"""A tqdm bar for terminals and notebooks that shows how long the loop waits for the loader."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import Any

from ..errors import ConfigError
from ..machine import ranks


class Timed:
    """Measures the time spent in a loader's ``next()``. Threads other than the iterating one may read the numbers.

    Attributes:
        waited_s: seconds spent in the loader's ``next()`` since :meth:`__iter__`.
        started_s: time of the :meth:`__iter__` call, by ``time.perf_counter``; None before the call.
    """

    def __init__(self, loader: Any, samples: Callable[[], int] | None) -> None:
        """`samples`: a function that returns the number of samples that the loader has delivered; None if the loader
        does not count them.
        """
        self._loader = loader
        self._samples = samples
        self._samples_before = 0
        self.waited_s = 0.0
        self.started_s: float | None = None

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[Any]:
        self._samples_before = self._samples() if self._samples is not None else 0
        self.waited_s, self.started_s = 0.0, time.perf_counter()
        before = self.started_s
        batches = iter(self._loader)
        while True:
            try:
                batch = next(batches)
            except StopIteration:
                return
            finally:
                self.waited_s += time.perf_counter() - before
            yield batch
            before = time.perf_counter()

    def postfix(self) -> str:
        """Returns text such as ``1,250 samples/s, waiting 12%``; empty before the first batch."""
        passed = time.perf_counter() - self.started_s if self.started_s is not None else 0.0
        if passed <= 0:
            return ""
        parts = [f"waiting {min(1.0, self.waited_s / passed):.0%}"]
        if self._samples is not None:
            parts.insert(0, f"{(self._samples() - self._samples_before) / passed:,.0f} samples/s")
        return ", ".join(parts)


def bar(loader: Any, *, samples: Callable[[], int] | None, initial: int, is_first: bool | None, options: Any) -> Any:
    """Returns a ``tqdm.auto.tqdm`` over `loader`, which starts at batch number `initial`.

    `is_first`: whether this is the first rank, the only one that shows a bar; if None, it is detected from the
    environment.
    `options`: arguments for tqdm, which override the defaults.
    """
    try:
        from tqdm.auto import tqdm
    except ImportError:
        raise ConfigError("progress: tqdm is required; pip install tqdm") from None

    class Bar(tqdm):  # type: ignore[type-arg,misc]
        """A tqdm bar that shows the loader's figures, computed when the bar is drawn, before the user's postfix."""

        @property
        def format_dict(self) -> dict[str, Any]:
            shown: dict[str, Any] = super().format_dict
            shown["postfix"] = ", ".join(part for part in (timed.postfix(), shown.get("postfix")) if part)
            return shown

    if is_first is None:
        is_first = (ranks.from_torch() or ranks.from_environment(os.environ) or (0, 1))[0] == 0
    timed = Timed(loader, samples)
    chosen = {"unit": "batch", "initial": initial, "total": _length(loader), "disable": not is_first}
    return Bar(timed, **{**chosen, **options})


def _length(loader: Any) -> int | None:
    try:
        return len(loader)
    except (TypeError, NotImplementedError):  # endless, or a stream
        return None
