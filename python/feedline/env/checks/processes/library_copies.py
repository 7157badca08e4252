# SPDX-License-Identifier: Apache-2.0
"""A process has mapped more than one copy of NCCL, cuBLAS or MKL."""

from ....findings import Abstention
from ...rules import LOADED, Analysis, Check, Problems, page, problem

_FAMILIES = ("NCCL", "cuBLAS", "MKL")


def _evaluate(analysis: Analysis) -> Problems:
    if analysis.seen.mapped is None:
        yield Abstention("library_copies", "the check needs a running process: pass --pid")
        return
    for family in _FAMILIES:
        paths = [one.path for one in analysis.seen.mapped if one.family == family]
        if len(paths) > 1:
            yield problem(
                "library_copies", "warning",
                f"{analysis.seen.process} has mapped {len(paths)} copies of {family}: {', '.join(paths)}",
                fix=f"Remove the folder of the unwanted {family} from LD_LIBRARY_PATH, or uninstall its package",
                family=family, copies=len(paths),
            )  # fmt: skip


CHECK = Check(
    page(
        code="library_copies",
        title="a process has mapped several copies of NCCL, cuBLAS or MKL",
        means="The loading order determines which copy is called. If the ranks of a job use different versions of "
        "NCCL, the first collective operation fails or hangs.",
        recognised="Checks the file names in /proc/PID/maps of a running process.",
        to_do="Keep one copy: the one that torch's wheel requires, or conda's.",
        abstains="Without `--pid`, no process is checked. Installed copies that are not loaded do no harm.",
        example="process 4711 has mapped 2 copies of NCCL: /usr/lib/libnccl.so.2, .../nvidia/nccl/lib/libnccl.so.2",
    ),
    LOADED + 20,
    _evaluate,
)
