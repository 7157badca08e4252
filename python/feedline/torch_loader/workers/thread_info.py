# SPDX-License-Identifier: Apache-2.0
"""torch's worker info for worker threads: each thread has its own info."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from torch.utils.data._utils import worker as torch_worker

_infos = threading.local()


def set_thread_info(info: Any) -> None:
    """Sets the worker info of the current thread. torch stores only one worker info per process, so its getter is
    replaced by one that checks the thread's info first.
    """
    _infos.info = info
    getter = torch_worker.get_worker_info
    if getter.__globals__.get("_feedline_thread_infos") is None:
        getter.__globals__["_feedline_thread_infos"] = _infos
        # Users have imported the function object, so its code is replaced, not the name.
        getter.__code__ = _get_worker_info.__code__


@contextlib.contextmanager
def hidden_info() -> Iterator[None]:
    """Makes a worker thread look like a thread that is not a worker."""
    info, _infos.info = _infos.info, None
    try:
        yield
    finally:
        _infos.info = info


def _get_worker_info() -> Any:
    info = getattr(_feedline_thread_infos, "info", None)  # type: ignore[name-defined]  # noqa: F821
    return _worker_info if info is None else info  # type: ignore[name-defined]  # noqa: F821
