# SPDX-License-Identifier: Apache-2.0
"""A CUDA build newer than the driver, within one major version."""

from ..checking import DEVICE, Case, Check, Told, page, told
from ..drivers import AS_OF, LEAST_OF_MAJOR, OF_TOOLKIT


def _judges(case: Case) -> Told:
    torch, graphics = case.seen.torch, case.seen.graphics
    driver = graphics.driver_major
    if torch is None or torch.cuda is None or driver is None:
        return
    own = OF_TOOLKIT.get(torch.cuda)
    least = LEAST_OF_MAJOR.get(int(torch.cuda.partition(".")[0]))
    if own is not None and least is not None and least <= driver < own:
        yield told(
            "driver_minor", "note",
            f"driver {graphics.driver} is older than that of CUDA {torch.cuda} ({own}): it runs, but for PTX "
            f"that is compiled "
            "at run time, and features of the newer driver",
            fix="Nothing, unless a kernel is refused as 'unsupported toolchain'; then update the driver",
            driver=graphics.driver, cuda=torch.cuda,
        )  # fmt: skip


CHECK = Check(
    page(
        code="driver_minor",
        title="CUDA is newer than the driver, within one major version",
        means="It runs by minor-version compatibility. Images may refuse to start nevertheless, with "
        "`unsatisfied condition: "
        "cuda>=12.x`; NVIDIA_DISABLE_REQUIRES=true lifts that.",
        recognised=f"The driver is one of torch's CUDA major, and older than the toolkit's own, by the table as "
        f"of {AS_OF}.",
        to_do="Nothing, unless something fails.",
        abstains="The driver or the toolkit is unknown to the table.",
        example="driver 535.183.01 is older than that of CUDA 12.8 (570): it runs, but for PTX",
    ),
    DEVICE + 30,
    _judges,
)
