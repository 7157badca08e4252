# SPDX-License-Identifier: Apache-2.0
"""CPUs are kept at low clocks."""

from __future__ import annotations

from collections.abc import Iterator

from ..case import MACHINE, Case, Cause, Found, page


def _judge(case: Case) -> Iterator[Found]:
    cpus = case.machine.cpus
    if cpus.governor == "powersave" and cpus.governor_driver not in (
        None,
        "intel_pstate",
        "amd-pstate-epp",
        "amd_pstate_epp",
    ):
        yield Found("warning", (f"governor powersave with {cpus.governor_driver}",))


CAUSE = Cause(
    page(
        "cpu_governor",
        "CPUs are kept at low clocks",
        means="The governor powersave holds the lowest clock, with every driver but intel_pstate and "
        "amd_pstate_epp, where it is the name of the usual one.",
        recognised="The governor and driver of the first CPU.",
        to_do="cpupower frequency-set -g performance (root), or schedutil.",
        example="governor powersave with acpi-cpufreq.",
    ),
    turn=MACHINE + 160,
    judge=_judge,
)
