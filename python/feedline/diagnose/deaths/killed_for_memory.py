# SPDX-License-Identifier: Apache-2.0
"""The kernel killed a process because memory ran out."""

from __future__ import annotations

import signal

from feedline.diagnose.rules.death import DeadRun, Death, Died, gb, memory_fixes, page


def _evaluate(run: DeadRun) -> Died | None:
    dead = next(iter(run.killed_by(signal.SIGKILL)), None)
    crash = run.crash
    logged = [line for line in crash.kernel if "oom" in line.lower() or "out of memory" in line.lower()]
    if dead is None or not (crash.cgroup_kills or crash.host_kills or logged):
        return None
    evidence = [f"{dead.name} was killed by SIGKILL"]
    if crash.cgroup_kills:
        evidence.append(f"the cgroup's counter of out-of-memory kills rose by {crash.cgroup_kills} during the run")
    if crash.host_kills:
        evidence.append(f"the machine's counter of out-of-memory kills rose by {crash.host_kills} during the run")
    evidence += run.kernel_sentences()
    peak, limit = run.memory_peak(), crash.memory_limit_bytes
    if peak is not None:
        evidence.append(f"the run's processes used up to {gb(peak)}{f' of {gb(limit)}' if limit else ''}")
    whose = "the cgroup's limit" if crash.cgroup_kills else "the machine's memory"
    return Died(f"the kernel killed {dead.name} because memory ran out ({whose})", tuple(evidence), memory_fixes(run))


DEATH = Death(
    page(
        "killed_for_memory",
        "the kernel killed a process of the run because memory ran out",
        means="The run needed more memory than its cgroup (container, job) or the machine has. The kernel then kills a "
        "process with SIGKILL, usually a worker or the script.",
        recognised="A process was killed by SIGKILL, and the cgroup's or the machine's counter of out-of-memory kills "
        "rose during the run, or the kernel's log shows it. On a shared machine, the machine's counter may have risen "
        "because of another run.",
        to_do="Try, in this order, prefetch_factor=1, fewer workers, smaller batches, and reading samples when they "
        "are needed instead of holding the dataset in memory; then raise the limit.",
        abstains="Neither a counter nor the log shows an out-of-memory kill: killed is reported instead.",
        example="the kernel killed worker 1 (pid 4711) because memory ran out (the cgroup's limit).",
    ),
    priority=60,
    evaluate=_evaluate,
)
