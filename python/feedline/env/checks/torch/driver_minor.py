# SPDX-License-Identifier: Apache-2.0
"""torch's CUDA is newer than the driver's, within one major version."""

from ...drivers import AS_OF, LEAST_OF_MAJOR, OF_TOOLKIT
from ...rules import DEVICE, Analysis, Check, Problems, page, problem


def _evaluate(analysis: Analysis) -> Problems:
    torch, graphics = analysis.seen.torch, analysis.seen.graphics
    driver = graphics.driver_major
    if torch is None or torch.cuda is None or driver is None:
        return
    own = OF_TOOLKIT.get(torch.cuda)
    least = LEAST_OF_MAJOR.get(int(torch.cuda.partition(".")[0]))
    if own is not None and least is not None and least <= driver < own:
        yield problem(
            "driver_minor", "note",
            f"driver {graphics.driver} is older than the driver of CUDA {torch.cuda} ({own}): everything "
            "works except PTX compiled "
            "at run time and features of the newer driver",
            fix="Do nothing, unless a kernel fails with 'unsupported toolchain'; then update the driver",
            driver=graphics.driver, cuda=torch.cuda,
        )  # fmt: skip


CHECK = Check(
    page(
        code="driver_minor",
        title="CUDA is newer than the driver, within one major version",
        means="CUDA works through minor-version compatibility. Images may still refuse to start, with `unsatisfied "
        "condition: cuda>=12.x`; NVIDIA_DISABLE_REQUIRES=true disables this test.",
        recognised=f"The driver supports torch's CUDA major version, but predates the toolkit's driver (the table as "
        f"of {AS_OF}).",
        to_do="Do nothing unless something fails.",
        abstains="The table does not contain the driver or the toolkit.",
        example="driver 535.183.01 is older than the driver of CUDA 12.8 (570): everything works except PTX",
    ),
    DEVICE + 30,
    _evaluate,
)
