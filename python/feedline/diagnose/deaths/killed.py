# SPDX-License-Identifier: Apache-2.0
"""A process was killed by SIGKILL, and nothing shows why."""

from __future__ import annotations

import signal

from feedline.diagnose.rules.death import DeadRun, Death, Died, gb, memory_fixes, page


def _evaluate(run: DeadRun) -> Died | None:
    dead = next(iter(run.killed_by(signal.SIGKILL)), None)
    if dead is None:
        return None
    crash = run.crash
    evidence = [f"{dead.name} was killed by SIGKILL"]
    counters = (("the cgroup's", crash.cgroup_kills), ("the machine's", crash.host_kills))
    unchanged = [name for name, kills in counters if kills is not None]
    if unchanged:
        counted = f"{' and '.join(unchanged)} counter of out-of-memory kills did not rise"
        evidence.append(f"{counted}, so this was not an out-of-memory kill")
    else:
        evidence.append("no counter of out-of-memory kills can be read, so lack of memory is likely but not shown")
    if (peak := run.memory_peak()) is not None:
        evidence.append(f"the run's processes used up to {gb(peak)}")
    others = (
        "Look for a program that sends SIGKILL: a scheduler (time or memory limit of the job), a watchdog, `kill -9`, "
        "or a systemd or Kubernetes limit outside this container (`kubectl describe pod`: OOMKilled).",
        "Read the kernel's log as root: `dmesg | grep -i -E 'killed|oom'`.",
    )
    fixes = others if unchanged else (*reversed(others), *memory_fixes(run))
    return Died(
        f"{dead.name} was killed by SIGKILL{'' if unchanged else ', probably for memory'}", tuple(evidence), fixes
    )


DEATH = Death(
    page(
        "killed",
        "a process of the run was killed by SIGKILL",
        means="Another program, such as a scheduler, or the kernel killed the process.",
        recognised="A process was killed by SIGKILL. The evidence states whether counters of out-of-memory kills could "
        "be read; if they were readable and did not rise, memory was not the reason in this container.",
        to_do="Find the sender: the scheduler's log, `dmesg`, or the events of the pod.",
        example="worker 1 (pid 4711) was killed by SIGKILL.",
    ),
    priority=70,
    evaluate=_evaluate,
)
