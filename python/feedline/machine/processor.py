# SPDX-License-Identifier: Apache-2.0
"""Processor and kernel settings that make machines of the same model differ in speed.

`root` replaces "/" in tests. Data that a virtual machine or container hides are omitted.
"""

from __future__ import annotations

import re
from pathlib import Path

Facts = dict[str, str | int | float | bool | None]
# Instruction sets that decoders, resizers and tensor libraries select code by; records omit the others.
_FLAGS = re.compile(r"(sse4_[12]|ssse3|avx\w*|fma|f16c|bmi[12]|amx_\w+|vaes|gfni|erms|fsrm|asimd\w*|sve\w*|i8mm|bf16)")
_CPUS = "sys/devices/system/cpu"


def processor_facts(root: Path = Path("/")) -> Facts:
    """``cpu_flags``, ``cpu_max_mhz``, ``cpu_governor``, ``numa_nodes``, ``smt``, ``huge_pages``, ``hypervisor``."""
    cpuinfo = _text(root / "proc/cpuinfo") or ""
    listed = re.search(r"^(?:flags|Features)\s*:\s*(.+)$", cpuinfo, re.MULTILINE)
    words = listed[1].split() if listed else []
    facts: Facts = {}
    if words:
        facts["cpu_flags"] = " ".join(sorted({word for word in words if _FLAGS.fullmatch(word)}))
        facts["hypervisor"] = "hypervisor" in words
    khz = _text(root / _CPUS / "cpu0/cpufreq/cpuinfo_max_freq")
    if khz and khz.isdigit():
        facts["cpu_max_mhz"] = int(khz) // 1000
    for name, path in (("cpu_governor", "cpu0/cpufreq/scaling_governor"), ("smt", "smt/control")):
        if text := _text(root / _CPUS / path):
            facts[name] = text
    nodes = list((root / "sys/devices/system/node").glob("node[0-9]*"))
    if nodes:
        facts["numa_nodes"] = len(nodes)
    pages = _text(root / "sys/kernel/mm/transparent_hugepage/enabled")
    if pages and (chosen := re.search(r"\[(\w+)\]", pages)):
        facts["huge_pages"] = chosen[1]
    return facts


def _text(path: Path) -> str | None:
    try:
        return path.read_text(errors="replace").strip() or None
    except OSError:
        return None
