# SPDX-License-Identifier: Apache-2.0
"""A process has mapped more than one copy of OpenMP."""

from ....findings import Abstention
from ...rules import LOADED, Analysis, Check, Problems, page, problem


def _evaluate(analysis: Analysis) -> Problems:
    if analysis.seen.mapped is None:
        yield Abstention("openmp_copies", "the check needs a running process: pass --pid")
        return
    paths = [one.path for one in analysis.seen.mapped if one.family == "OpenMP"]
    if len(paths) > 1:
        yield problem(
            "openmp_copies", "warning", f"{analysis.seen.process} has mapped {len(paths)} copies of OpenMP: "
            f"{', '.join(paths)}",
            fix="Install their packages from one source: all from conda-forge, or all as wheels", copies=len(paths),
        )  # fmt: skip


CHECK = Check(
    page(
        code="openmp_copies",
        title="a process has mapped several copies of OpenMP",
        means="Each copy has its own threads, which compete for the CPUs; LLVM's and Intel's OpenMP together can "
        "deadlock.",
        recognised="Checks the file names in /proc/PID/maps of a running process.",
        to_do="Load only one copy: install numpy, torch and scikit-learn from one source, or import torch first. "
        "KMP_DUPLICATE_LIB_OK hides the message, not the cause.",
        abstains="Without `--pid`, no process is checked. Installed copies that are not loaded do no harm.",
        example="process 4711 has mapped 2 copies of OpenMP: /env/lib/libiomp5.so, .../torch/lib/libgomp.so.1",
    ),
    LOADED + 10,
    _evaluate,
)
