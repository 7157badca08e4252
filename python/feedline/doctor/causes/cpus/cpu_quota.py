# SPDX-License-Identifier: Apache-2.0
"""Programs see more CPUs than the quota allows."""

from __future__ import annotations

from collections.abc import Iterator

from ....findings import Threshold
from ...rules import MACHINE, Analysis, Cause, Found, page

PART = Threshold(0.5, "ratio of the quota to the visible CPUs; with a larger quota, threads hardly compete")


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    cpus = analysis.machine.cpus
    if cpus.quota is None or cpus.quota > PART * len(cpus.allowed):
        return
    threads = analysis.machine.environment.get("OMP_NUM_THREADS", "")
    if threads.isdecimal() and 1 <= int(threads) <= cpus.threads:
        return
    fix = CAUSE.page.to_do.replace("N,", f"{cpus.threads},", 1).replace("(N)", f"({cpus.threads})")
    yield Found("warning", (f"{len(cpus.allowed)} CPUs are visible, but the quota allows {cpus.quota:g}",), fix)


CAUSE = Cause(
    page(
        "cpu_quota",
        "programs see more CPUs than the quota allows",
        means="A container's quota limits CPU time, not CPUs: Python and the libraries of NumPy and torch see all "
        "CPUs and start as many threads as there are CPUs, and the kernel stops all threads for the rest of "
        "each 100 ms period once the CPU time is used up.",
        recognised="The quota is at most half of the visible CPUs, and OMP_NUM_THREADS is not set to a number that "
        "the quota allows.",
        to_do="Set OMP_NUM_THREADS=N, torch.set_num_threads(N) and num_workers according to the quota, which "
        "feedline.DataLoader(num_workers='auto') respects.",
        example="64 CPUs are visible, but the quota allows 8.",
    ),
    priority=MACHINE + 70,
    evaluate=_evaluate,
)
