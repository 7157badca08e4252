# SPDX-License-Identifier: Apache-2.0
"""Formats an examination as text and as one JSON object."""

from __future__ import annotations

import platform
from dataclasses import asdict
from typing import Any, NamedTuple

from ..findings import Finding
from ..machine import media_libraries
from ..machine.planned_load import PlannedLoad, need_of
from ..machine.preflight_facts import PreflightFacts
from ..version import installed_version
from .evaluation import has_problems
from .examination import Examination
from .rules import gb
from .source import Source

SCHEMA = "feedline-doctor-1"
_NAME = 9  # column width of a line's name


class Line(NamedTuple):
    text: str
    style: str = ""


_STYLES = {"note": "cyan", "warning": "yellow", "critical": "bold red", "error": "bold red"}


def lines(seen: Examination) -> list[Line]:
    """Formats one screen: the machine, the plan, findings by severity, and what could not be examined."""
    output = [Line(f"{name:<{_NAME}}{text}") for name, text in _machine(seen.analysis.machine)]
    if seen.analysis.source is not None:
        output.append(Line(f"{'source':<{_NAME}}{_source(seen.analysis.source)}"))
    if seen.analysis.load is not None:
        output.append(Line(f"{'planned':<{_NAME}}{_load(seen.analysis.load)}"))
    advice = f"num_workers={seen.advice.workers}, prefetch_factor={seen.advice.prefetch}"
    if seen.advice.pin is not None:
        advice += f", pin_memory={seen.advice.pin}"
    output.append(Line(f"{'start at':<{_NAME}}{advice} ({'; '.join(seen.advice.why)}); then measure: feedline tune"))
    if seen.advice.link:
        output.append(Line(f"{'':<{_NAME}}{seen.advice.link}"))
    output.append(Line(""))
    for finding in seen.findings:
        output += _finding(finding)
    if not seen.findings:
        output.append(Line("no problems found", "green"))
    if seen.unseen:
        output += [Line(""), Line("not seen"), *(Line(f"  {sentence}") for sentence in seen.unseen)]
    return output


def as_dict(seen: Examination) -> dict[str, Any]:
    machine, load = seen.analysis.machine, seen.analysis.load
    return {
        "schema": SCHEMA,
        "feedline": installed_version(),
        "machine": asdict(machine) | {"gpu_links": [asdict(link) for link in machine.gpu_links]},
        "audio": [one._asdict() for one in media_libraries.for_audio()],
        "video": media_libraries.for_videos()._asdict(),
        "source": _source_dict(seen.analysis.source),
        "planned": None if load is None else {**asdict(load), "needs": _need(load)},
        "script": None if seen.analysis.script is None else {"path": seen.analysis.script.path},
        "advice": asdict(seen.advice),
        "findings": [as_finding(finding) for finding in seen.findings],
        "unseen": list(seen.unseen),
        "has_problems": has_problems(seen.findings),
    }


def as_finding(finding: Finding) -> dict[str, Any]:
    return {
        "code": finding.code,
        "severity": finding.severity,
        "evidence": list(finding.evidence),
        "fix": finding.fix,
        "about": dict(finding.about),
    }


def _finding(finding: Finding) -> list[Line]:
    first, *others = finding.evidence
    output = [Line(f"{finding.severity:<{_NAME}}{finding.code}: {first}", _STYLES[finding.severity])]
    output += [Line(f"{'':<{_NAME}}{sentence}") for sentence in others]
    return [*output, Line(f"{'':<{_NAME}}-> {finding.fix}")]


def _machine(machine: PreflightFacts) -> list[tuple[str, str]]:
    where = [f"Linux {machine.kernel}", f"Python {platform.python_version()}"]
    where += [f"in {machine.container}" if machine.container else "", f"at {machine.cloud}" if machine.cloud else ""]
    output = [("machine", ", ".join(filter(None, where))), ("cpu", _cpu(machine)), ("memory", _memory(machine))]
    shared = machine.shared
    if shared is not None:
        output.append(("/dev/shm", f"{gb(shared.free_bytes)} of {gb(shared.total_bytes)} free"))
    for gpu in machine.gpus:
        memory = ""
        if gpu.memory_bytes and gpu.memory_used_bytes is not None:
            memory = f"{gb(gpu.memory_bytes - gpu.memory_used_bytes)} of {gb(gpu.memory_bytes)} free"
        busy = f"{gpu.utilisation:.0%} utilization" if gpu.utilisation is not None else ""
        output.append((f"gpu {gpu.index}", ", ".join(filter(None, (gpu.name, memory, busy)))))
    if not machine.gpus:
        output.append(("gpu", "none seen"))
    for kind, libraries in (("audio", media_libraries.for_audio()), ("video", [media_libraries.for_videos()])):
        output.append((kind, ", ".join(one.version or f"no {one.name}" for one in libraries)))
    for link in machine.gpu_links:
        speed = f", {link.speed:g} of {link.most_speed:g} GT/s" if link.speed and link.most_speed else ""
        node = f", NUMA node {link.numa_node}" if link.numa_node is not None else ""
        output.append(("pcie", f"{link.place}: {link.width or '?'} of {link.most_width or '?'} lanes{speed}{node}"))
    return output


def _cpu(machine: PreflightFacts) -> str:
    cpus = machine.cpus
    by = []
    if len(cpus.allowed) < cpus.online:
        by.append(f"affinity or cpuset allows {len(cpus.allowed)}")
    if cpus.quota is not None:
        by.append(f"a quota of {cpus.quota:g}")
    limit = f" ({', '.join(by)})" if by else ""
    cores = f", {cpus.cores} cores" if cpus.cores is not None and cpus.cores < len(cpus.allowed) else ""
    nodes = f", {len(cpus.nodes)} NUMA nodes" if len(cpus.nodes) > 1 else ""
    load = f", load {cpus.load:.1f}" if cpus.load is not None else ""
    return f"{cpus.threads} usable of {cpus.online}{limit}{cores}{nodes}{load}; {cpus.model or 'unknown model'}"


def _memory(machine: PreflightFacts) -> str:
    memory = machine.memory
    if not memory.is_known:
        return "not told"
    limit = f", limited to {gb(memory.limit)}" if memory.limit is not None and memory.limit < memory.physical else ""
    swap = f"; swap {gb(memory.swap_used)} of {gb(memory.swap)} used" if memory.swap else "; no swap"
    return f"{gb(memory.left)} left of {gb(memory.physical)}{limit}{swap}"


def _source(source: Source) -> str:
    kind = source.kind or "unknown storage"
    mount = f", {source.mount.kind} at {source.mount.point}" if source.mount is not None else ""
    model = f" ({source.model})" if source.model else ""
    held = ""
    if source.files is not None and source.total_bytes is not None:
        more = "" if source.whole else "more than "
        held = f"; {more}{source.files:,} file{'s' if source.files != 1 else ''}, {gb(source.total_bytes)}"
    return f"{source.name}: {kind}{model}{mount}{held}"


def _load(load: PlannedLoad) -> str:
    ranks = f"{load.ranks} ranks x " if load.ranks > 1 else ""
    pinned = ", page-locked" if load.pinned else ""
    batch = f" of {gb(load.batch_bytes)}" if load.batch_bytes else ""
    copies = f", and {gb(load.dataset_bytes)} of the dataset in each worker" if load.dataset_bytes else ""
    needs = f": {gb(need_of(load).least)}" if load.batch_bytes or load.dataset_bytes else ""
    plan = f"{ranks}{load.workers} worker{'s' if load.workers != 1 else ''} x {load.prefetch} prefetched batches"
    return f"{plan}{batch}{pinned}{copies}{needs}"


def _need(load: PlannedLoad) -> dict[str, int] | None:
    if load.batch_bytes is None:
        return None
    need = need_of(load)
    return {**asdict(need), "least": need.least, "most": need.most}


def _source_dict(source: Source | None) -> dict[str, Any] | None:
    if source is None:
        return None
    output = asdict(source)
    output["mount"] = None if source.mount is None else {"kind": source.mount.kind, "point": source.mount.point}
    return output
