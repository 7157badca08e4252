# SPDX-License-Identifier: Apache-2.0
"""Reads traces of torch.profiler: steps, operators, the loader's share, the GPU's idle time and its causes.

::

    from feedline import trace
    result = trace.analyse([trace.read("rank0.pt.trace.json.gz")])
    with trace.record("stages.json"): ...  # Feedline's own stages, to be merged
"""

from .events import Trace, read
from .report import analyse
from .spans import record

__all__ = ["Trace", "analyse", "read", "record"]
