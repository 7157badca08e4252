# SPDX-License-Identifier: Apache-2.0
"""A disk is full."""

from __future__ import annotations

import errno

from feedline.diagnose.rules.death import DeadRun, Death, Died, page, raised_text


def _evaluate(run: DeadRun) -> Died | None:
    error = run.error("No space left on device|Disk quota exceeded")
    if error is None and run.has_number(errno.ENOSPC):
        error = next(run.errors(), None)
    if error is None:
        return None
    return Died(
        f"a disk was full{error.where}",
        (raised_text(error),),
        (
            "Free space or inodes of the file system in the message: `df -h` and `df -i`.",
            "Store checkpoints and caches on another file system, and keep fewer of them.",
        ),
    )


DEATH = Death(
    page(
        "disk_full",
        "a disk is full",
        means="A file could not be written, for example a checkpoint, a cache or a temporary file.",
        recognised='The run ended with "No space left on device" or "Disk quota exceeded", and not for shared memory.',
        to_do="Free space, or write elsewhere.",
        example="OSError: [Errno 28] No space left on device: 'last.ckpt'.",
    ),
    priority=140,
    evaluate=_evaluate,
)
