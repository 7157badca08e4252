# SPDX-License-Identifier: Apache-2.0
"""/dev/shm, through which workers pass tensors, was full."""

from __future__ import annotations

import signal

from feedline.diagnose.rules.death import SHM_FULL, DeadRun, Death, Died, page, raised_text, shm_fixes

_TEXT = (
    r"unable to (allocate|write|mmap|open|resize)[^\n]*(shm|/torch_)|insufficient shared memory|"
    r"/dev/shm[^\n]*No space left|No space left[^\n]*(/dev/shm|/torch_)"
)
_WRITERS = ("_utils/collate.py", "torch/multiprocessing/", "torch/storage.py")  # write into shared memory


def _evaluate(run: DeadRun) -> Died | None:
    peak, total = run.shared_peak(), run.crash.shared_bytes
    size = "" if total is None else f"/dev/shm has {total / 1e6:,.0f} MB"
    used = f"{size}, and was {peak:.0%} full during the run" if peak is not None and size else size
    seen = (used,) if used else ()
    dead = next(iter(run.killed_by(signal.SIGBUS)), None)
    if dead is not None:
        stack = run.stack_of(dead)
        writes = bool(stack) and any(part in stack[0][0] for part in _WRITERS)
        if writes or (peak is not None and peak >= SHM_FULL):
            evidence = [f"{dead.name} was killed by SIGBUS", *run.stack_sentences(dead), *seen]
            if writes:
                evidence.append("it was writing a batch into shared memory")
            return Died(f"{dead.name} could not write into /dev/shm, which was full", tuple(evidence), shm_fixes(run))
    error = run.error(_TEXT)
    if error is None:
        return None
    return Died(f"/dev/shm was full{error.where}", (raised_text(error), *seen), shm_fixes(run))


DEATH = Death(
    page(
        "shared_memory_full",
        "`/dev/shm`, through which workers pass batches, was full",
        means="torch's workers store each batch in files in /dev/shm. If /dev/shm is full, a worker gets a bus error "
        'or "No space left on device". By default, a container\'s /dev/shm has only 64 MB.',
        recognised="A worker was killed by SIGBUS while it wrote a batch into shared memory or while /dev/shm was more "
        "than 90 % full, or a torch error names shared memory.",
        to_do="Enlarge /dev/shm, or keep fewer batches in flight.",
        abstains="A worker was killed by SIGBUS, but neither its stack nor the use of /dev/shm points to shared "
        "memory: bus_error is reported instead.",
        example="worker 0 (pid 4711) could not write into /dev/shm, which was full.",
    ),
    priority=40,
    evaluate=_evaluate,
)
