# SPDX-License-Identifier: Apache-2.0
"""Analyses traces of torch.profiler: steps, operators, the loader's share, and the GPU's idle time with its causes.

::

    from feedline import trace
    result = trace.analyse([trace.read("rank0.pt.trace.json.gz")])
    with trace.record("stages.json"): ...  # Feedline's own stages, to be merged
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .events import Trace as Trace
    from .events import read as read
    from .report import analyse as analyse
    from .spans import record as record

# The module of each name. Importing Feedline imports `profile` from here, which must not import NumPy.
_MODULES = {"Trace": ".events", "analyse": ".report", "read": ".events", "record": ".spans"}

__all__ = ["Trace", "analyse", "read", "record"]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_MODULES[name], __name__), name)
