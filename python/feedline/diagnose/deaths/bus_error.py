# SPDX-License-Identifier: Apache-2.0
"""A process accessed mapped memory that is not backed by a file."""

from __future__ import annotations

import signal

from feedline.diagnose.rules.death import DeadRun, Death, Died, page, shm_fixes


def _evaluate(run: DeadRun) -> Died | None:
    dead = next(iter(run.killed_by(signal.SIGBUS)), None)
    if dead is None:
        return None
    evidence = [f"{dead.name} was killed by SIGBUS", *run.stack_sentences(dead), *run.kernel_sentences()]
    peak = run.shared_peak()
    if peak is not None:
        evidence.append(f"/dev/shm was at most {peak:.0%} full when it was sampled")
    return Died(
        f"{dead.name} was killed by a bus error",
        tuple(evidence),
        (
            "If the process reads a memory-mapped file (np.memmap, mmap, LMDB), check that no program shortens or "
            "replaces the file during the run, and that the file is complete: `feedline verify`.",
            *shm_fixes(run),
            "Check the file's disk or network mount for read errors (`dmesg`): a failed read of a mapped page is a bus "
            "error.",
        ),
    )


DEATH = Death(
    page(
        "bus_error",
        "a process was killed by a bus error",
        means="The process used memory that maps a file, but the page could not be provided: the file was shortened, "
        "its disk failed, or /dev/shm had no space.",
        recognised="A process was killed by SIGBUS, and neither its stack nor the use of /dev/shm shows that shared "
        "memory was full.",
        to_do="Check memory-mapped files and /dev/shm.",
        example="worker 0 (pid 4711) was killed by a bus error.",
    ),
    priority=80,
    evaluate=_evaluate,
)
