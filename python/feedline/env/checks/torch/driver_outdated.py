# SPDX-License-Identifier: Apache-2.0
"""The driver cannot run torch's CUDA build."""

import glob
import re

from ....findings import Abstention
from ...drivers import AS_OF, LEAST_OF_MAJOR
from ...rules import DEVICE, Analysis, Check, Problems, page, problem


def _evaluate(analysis: Analysis) -> Problems:
    torch, graphics = analysis.seen.torch, analysis.seen.graphics
    if torch is None or torch.cuda is None or not (graphics.names or graphics.driver):
        return
    major = re.match(r"\d+", torch.cuda)
    least = LEAST_OF_MAJOR.get(int(major[0])) if major else None
    if least is None:
        yield Abstention("driver_outdated", f"the driver version for CUDA {torch.cuda} is not in the table of {AS_OF}")
        return
    if graphics.driver_major is None:
        why = graphics.note or "the driver does not report it"
        yield Abstention("driver_outdated", f"the driver's version is unknown: {why}")
        return
    if graphics.driver_major < least and not _has_compat(analysis):
        yield problem(
            "driver_outdated", "error",
            f"torch {torch.version} was built with CUDA {torch.cuda}, which needs driver {least} or later; "
            f"this machine has {graphics.driver}",
            fix="Update the driver, or install torch for a CUDA version that the driver supports (the header of "
            "nvidia-smi shows this version)",
            driver=graphics.driver, cuda=torch.cuda,
        )  # fmt: skip


def _has_compat(analysis: Analysis) -> bool:
    """Whether a cuda-compat package on the library path lets older data-centre drivers run newer CUDA."""
    folders = analysis.seen.variables.get("LD_LIBRARY_PATH", "").split(":")
    return any(glob.glob(f"{glob.escape(folder)}/libcuda.so*") for folder in folders if "compat" in folder)


CHECK = Check(
    page(
        code="driver_outdated",
        title="the driver is too old for this CUDA version",
        means="Within one major version of CUDA, newer drivers and newer toolkits are compatible; across major "
        "versions, a newer driver is needed, or NVIDIA's cuda-compat libraries on data-centre GPUs.",
        recognised=f"The driver is older than torch's CUDA requires, by NVIDIA's table as of {AS_OF}: 450 for CUDA "
        "11, 525 for 12, 580 for 13. A `compat` folder with libcuda on LD_LIBRARY_PATH removes this "
        "requirement.",
        to_do="Update the driver, or install an older CUDA build. Images do not contain a driver.",
        abstains="The driver does not report its version, or the table does not contain this CUDA.",
        example="torch 2.13.0+cu130 was built with CUDA 13.0, which needs driver 580 or later; this machine has 535",
    ),
    DEVICE + 10,
    _evaluate,
)
