# SPDX-License-Identifier: Apache-2.0
"""A process has mapped more than one copy of OpenMP."""

from ...findings import Abstention
from ..checking import LOADED, Case, Check, Told, page, told


def _judges(case: Case) -> Told:
    if case.seen.mapped is None:
        yield Abstention("openmp_copies", "what a run maps: name one by --pid while it runs")
        return
    paths = [one.path for one in case.seen.mapped if one.family == "OpenMP"]
    if len(paths) > 1:
        yield told(
            "openmp_copies", "warning", f"{case.seen.process} has mapped {len(paths)} copies of OpenMP: "
            f"{', '.join(paths)}",
            fix="Install what brings them from one source: all from conda-forge, or all wheels", copies=len(paths),
        )  # fmt: skip


CHECK = Check(
    page(
        code="openmp_copies",
        title="a process has mapped several copies of OpenMP",
        means="Each copy has threads of its own: they compete for the CPUs, and LLVM's beside Intel's can stand still.",
        recognised="/proc/PID/maps of a running process, by the names of files.",
        to_do="Let one be loaded: install numpy, torch and scikit-learn from one source, or import torch first. "
        "KMP_DUPLICATE_LIB_OK hides the message and not the cause.",
        abstains="No process was named by `--pid`. Copies that lie in an environment and are not loaded do no harm.",
        example="process 4711 has mapped 2 copies of OpenMP: /env/lib/libiomp5.so, .../torch/lib/libgomp.so.1",
    ),
    LOADED + 10,
    _judges,
)
