# SPDX-License-Identifier: Apache-2.0
"""An allocation of host memory failed."""

from __future__ import annotations

import errno

from feedline.diagnose.rules.death import DeadRun, Death, Died, memory_fixes, page, raised_text

_TEXT = r"can't allocate memory|Unable to allocate [\d.]+ \wi?B|Cannot allocate memory|std::bad_alloc"


def _evaluate(run: DeadRun) -> Died | None:
    error = run.error(_TEXT, "MemoryError", "_ArrayMemoryError")
    if error is None and run.has_number(errno.ENOMEM):
        error = next(run.errors(), None)
    if error is None:
        return None
    return Died(f"an allocation of memory failed{error.where}", (raised_text(error),), memory_fixes(run))


DEATH = Death(
    page(
        "allocation_failed",
        "an allocation of host memory failed",
        means="The system refused memory: the size was wrong, or `ulimit -v`, the commit limit or the memory itself is "
        "exhausted.",
        recognised="The run ended with a MemoryError, or with an allocation error from NumPy or torch.",
        to_do="Apply the fixes of killed_for_memory, and check `ulimit -v` and /proc/sys/vm/overcommit_memory.",
        example="MemoryError: Unable to allocate 93.1 GiB for an array.",
    ),
    priority=150,
    evaluate=_evaluate,
)
