# SPDX-License-Identifier: Apache-2.0
"""CPUs are limited to low clocks."""

from __future__ import annotations

from collections.abc import Iterator

from ...rules import MACHINE, Analysis, Cause, Found, page


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    cpus = analysis.machine.cpus
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
        "CPUs are limited to low clocks",
        means="The powersave governor uses the lowest clock with every driver except intel_pstate and "
        "amd_pstate_epp, for which it is the normal governor.",
        recognised="The first CPU has this governor and another driver.",
        to_do="Run cpupower frequency-set -g performance as root, or use schedutil.",
        example="governor powersave with acpi-cpufreq.",
    ),
    priority=MACHINE + 160,
    evaluate=_evaluate,
)
