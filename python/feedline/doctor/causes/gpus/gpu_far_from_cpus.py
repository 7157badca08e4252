# SPDX-License-Identifier: Apache-2.0
"""The GPU is attached to a different socket than the CPUs."""

from __future__ import annotations

from collections.abc import Iterator

from ...rules import MACHINE, Analysis, Cause, Found, page


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    machine = analysis.machine
    nodes = {node for node, cpus in machine.cpus.nodes.items() if set(cpus) & set(machine.cpus.allowed)}
    far = {link.numa_node for link in machine.gpu_links}
    if nodes and far and None not in far and not far & nodes:
        of_gpus, of_cpus = (
            ", ".join(str(node) for node in sorted(one)) for one in ({n for n in far if n is not None}, nodes)
        )
        fix = CAUSE.page.to_do.replace("NODE", of_gpus.partition(",")[0])
        yield Found("warning", (f"GPUs are on NUMA node {of_gpus}, usable CPUs on node {of_cpus}",), fix)


CAUSE = Cause(
    page(
        "gpu_far_from_cpus",
        "the GPU is attached to a different socket than the CPUs",
        means="Batches are produced in the memory of one socket and cross to the other before they reach the "
        "GPU, together with the traffic of other programs.",
        recognised="No usable CPU is on the NUMA node of a GPU.",
        to_do="Use numactl --cpunodebind=NODE --membind=NODE, or request CPUs near the GPU (Slurm: "
        "--gpu-bind=closest, --gres-flags=enforce-binding).",
        example="GPUs are on NUMA node 1, usable CPUs on node 0.",
    ),
    priority=MACHINE + 50,
    evaluate=_evaluate,
)
