# SPDX-License-Identifier: Apache-2.0
"""A process has mapped more than one copy of cuDNN."""

from ....findings import Abstention
from ...rules import LOADED, Analysis, Check, Problems, page, problem


def _evaluate(analysis: Analysis) -> Problems:
    if analysis.seen.mapped is None:
        yield Abstention("cudnn_copies", "the check needs a running process: pass --pid")
        return
    paths = [one.path for one in analysis.seen.mapped if one.family == "cuDNN"]
    if len(paths) > 1:
        yield problem(
            "cudnn_copies", "error",
            f"{analysis.seen.process} has mapped {len(paths)} copies of cuDNN: {', '.join(paths)}",
            fix="Start the process without LD_LIBRARY_PATH, and see feedline explain shadowed_library",
            copies=len(paths),
        )  # fmt: skip


CHECK = Check(
    page(
        code="cudnn_copies",
        title="a process has mapped several copies of cuDNN",
        means="Mixed versions in one process cause `CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH`, crashes, or "
        "slow kernels.",
        recognised="Checks the file names in /proc/PID/maps of a running process.",
        to_do="Remove the unwanted copy from LD_LIBRARY_PATH, or uninstall it.",
        abstains="Without `--pid`, no process is checked. Installed copies that are not loaded do no harm.",
        example="process 4711 has mapped 2 copies of cuDNN: /usr/lib/libcudnn.so.8, .../nvidia/cudnn/lib/libcudnn.so.9",
    ),
    LOADED,
    _evaluate,
)
