# SPDX-License-Identifier: Apache-2.0
"""torch has no kernels for the GPU."""

from ....findings import Abstention
from ...reading.elf import kernels_of
from ...reading.graphics import capability_of
from ...rules import DEVICE, Analysis, Check, Problems, page, problem

_LIBRARY = "lib/libtorch_cuda.so"


def _evaluate(analysis: Analysis) -> Problems:
    torch, graphics = analysis.seen.torch, analysis.seen.graphics
    if torch is None or torch.cuda is None or not graphics.names:
        return
    kernels = kernels_of(torch.folder / _LIBRARY)
    if kernels is None or not (kernels.sass or kernels.ptx):
        yield Abstention("gpu_not_in_build", f"{_LIBRARY} does not list the GPUs that torch was built for")
        return
    for name in dict.fromkeys(graphics.names):
        capability = capability_of(name)
        if capability is None:
            yield Abstention("gpu_not_in_build", f"the compute capability of {name} is not in the table")
        elif not kernels.run_on(capability):
            built = ", ".join(f"{one / 10:.1f}" for one in sorted(kernels.sass))
            yield problem(
                "gpu_not_in_build", "error",
                f"{name} has compute capability {capability / 10:.1f}, but torch {torch.version} has kernels "
                f"for {built}",
                fix="Install a torch that has kernels for this GPU: newer GPUs need newer builds, and new builds drop "
                "old GPUs",
                gpu=name,
            )  # fmt: skip


CHECK = Check(
    page(
        code="gpu_not_in_build",
        title="torch has no kernels for this GPU",
        means="An old environment does not run on a new GPU, nor a new build on an old "
        "GPU: `no kernel "
        "image is available for execution on the device`.",
        recognised="The architectures of libtorch_cuda.so, read from its fat binary headers, are compared with the "
        "compute capability that belongs to the GPU's name. Machine code runs within its major version, PTX on "
        "all newer GPUs.",
        to_do="Install a build for the GPU's architecture.",
        abstains="The table does not contain the GPU's name, or the library does not list its architectures.",
        example="NVIDIA B200 has compute capability 10.0, but torch 2.4.0+cu121 has kernels for 5.0, 6.0, "
        "7.0, 8.0, 9.0",
    ),
    DEVICE + 20,
    _evaluate,
)
