# SPDX-License-Identifier: Apache-2.0
"""Reads traces of torch.profiler: steps, operators, the loader's share, the GPU's idle time and its causes.

::

    from feedline import trace
    result = trace.analyse([trace.read("rank0.pt.trace.json.gz")])
"""

from .events import Trace, read
from .report import analyse

__all__ = ["Trace", "analyse", "read"]
