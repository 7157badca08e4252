# SPDX-License-Identifier: Apache-2.0
"""Native code crashed."""

from __future__ import annotations

import signal

from feedline.diagnose.rules.death import DeadRun, Death, Died, page, signal_name

_SIGNALS = tuple(getattr(signal, name) for name in ("SIGSEGV", "SIGABRT", "SIGFPE", "SIGILL", "SIGSYS", "SIGTRAP"))


def _evaluate(run: DeadRun) -> Died | None:
    dead = next(iter(run.killed_by(*_SIGNALS)), None)
    if dead is None:
        return None
    name = signal_name(dead)
    stack = run.stack_sentences(dead)
    evidence = [f"{dead.name} was killed by {name}", *stack, *run.kernel_sentences()]
    fixes = [] if stack else ["Run with `python -X faulthandler` to see the line that crashes."]
    if -dead.exit == signal.SIGILL:
        fixes.append("Install a build for this processor: an instruction of a package is not supported here.")
    if dead.role == "worker":
        fixes.append("Run once with num_workers=0: if the crash remains, the sample or the library is at fault.")
        fixes.append(
            "If it does not, a library's state does not survive fork: open files and connections (h5py, LMDB, OpenCV "
            'threads) in the worker, or set multiprocessing_context="spawn".'
        )
    fixes.append(
        "Check that compiled packages match (`feedline env check`): two copies of OpenMP or cuDNN, or NumPy 1 and 2."
    )
    return Died(f"native code in {dead.name} crashed ({name})", tuple(evidence), tuple(fixes))


DEATH = Death(
    page(
        "native_crash",
        "native code in the run crashed",
        means="A compiled library, not Python code, failed: a damaged sample, a library that does not survive fork, or "
        "packages that do not match.",
        recognised="A process was killed by SIGSEGV, SIGABRT, SIGFPE, SIGILL, SIGSYS or SIGTRAP. The evidence includes "
        "its Python stack, which diagnose records unless the script uses faulthandler itself.",
        to_do="Find the line, try num_workers=0, then spawn, and check the environment.",
        example="native code in worker 0 (pid 4711) crashed (SIGSEGV).",
    ),
    priority=90,
    evaluate=_evaluate,
)
