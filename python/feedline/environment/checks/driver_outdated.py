# SPDX-License-Identifier: Apache-2.0
"""A CUDA build that the driver cannot run."""

import glob
import re

from ...findings import Abstention
from ..checking import DEVICE, Case, Check, Told, page, told
from ..drivers import AS_OF, LEAST_OF_MAJOR


def _judges(case: Case) -> Told:
    torch, graphics = case.seen.torch, case.seen.graphics
    if torch is None or torch.cuda is None or not (graphics.names or graphics.driver):
        return
    major = re.match(r"\d+", torch.cuda)
    least = LEAST_OF_MAJOR.get(int(major[0])) if major else None
    if least is None:
        yield Abstention("driver_outdated", f"which driver CUDA {torch.cuda} needs: unknown to the table of {AS_OF}")
        return
    if graphics.driver_major is None:
        yield Abstention("driver_outdated", f"the driver's version: {graphics.note or 'it does not tell'}")
        return
    if graphics.driver_major < least and not _has_compat(case):
        yield told(
            "driver_outdated", "error",
            f"torch {torch.version} was built with CUDA {torch.cuda}, which needs driver {least} or later; "
            f"{graphics.driver} is here",
            fix="Update the driver, or install a torch for the CUDA that it takes (nvidia-smi's head names it)",
            driver=graphics.driver, cuda=torch.cuda,
        )  # fmt: skip


def _has_compat(case: Case) -> bool:
    """A cuda-compat package on the loader's path runs newer CUDA on older drivers of data-centre GPUs."""
    folders = case.seen.variables.get("LD_LIBRARY_PATH", "").split(":")
    return any(glob.glob(f"{glob.escape(folder)}/libcuda.so*") for folder in folders if "compat" in folder)


CHECK = Check(
    page(
        code="driver_outdated",
        title="the driver is older than this CUDA needs",
        means="Within one major version of CUDA every newer driver and every newer toolkit go together; across "
        "majors a newer "
        "driver is needed, or NVIDIA's cuda-compat libraries on data-centre GPUs.",
        recognised=f"The major version of torch's CUDA against the driver, by NVIDIA's table as of {AS_OF}: 450 "
        f"for 11, 525 "
        "for 12, 580 for 13. A folder `compat` with libcuda on LD_LIBRARY_PATH lifts it.",
        to_do="Update the driver, or install an older CUDA build. An image does not bring a driver of its own.",
        abstains="The driver does not tell its version, or the table does not know this CUDA.",
        example="torch 2.13.0+cu130 was built with CUDA 13.0, which needs driver 580 or later; 535.183.01 is here",
    ),
    DEVICE + 10,
    _judges,
)
