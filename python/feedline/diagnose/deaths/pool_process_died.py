# SPDX-License-Identifier: Apache-2.0
"""A process in a ProcessPoolExecutor died."""

from __future__ import annotations

from feedline.diagnose.rules.death import DeadRun, Death, Died, memory_fixes, page, raised_text


def _evaluate(run: DeadRun) -> Died | None:
    error = run.error("terminated abruptly while the future was running", "BrokenProcessPool")
    if error is None:
        return None
    kills = run.crash.cgroup_kills or run.crash.host_kills
    counted = (f"counters of out-of-memory kills rose by {kills} during the run",) if kills else ()
    fixes = (
        memory_fixes(run)
        if kills
        else (
            "Run the pool's function in the process itself to see its error.",
            "If the pool is inside a dataset, remove it, and raise the loader's num_workers instead.",
            "Check whether memory ran out: `feedline doctor -- SCRIPT` estimates the memory that the loader needs.",
        )
    )
    return Died(f"a process of a pool died{error.where}", (raised_text(error), *counted), fixes)


DEATH = Death(
    page(
        "pool_process_died",
        "a process of the script's own pool died",
        means="A ProcessPoolExecutor stops working if one of its processes dies, for example because memory ran out.",
        recognised="The run ended with a BrokenProcessPool error.",
        to_do="Run the function without the pool; inside a dataset, use the loader's workers only.",
        example="BrokenProcessPool: A process in the process pool was terminated abruptly.",
    ),
    priority=110,
    evaluate=_evaluate,
)
