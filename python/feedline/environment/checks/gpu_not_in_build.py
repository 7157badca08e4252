# SPDX-License-Identifier: Apache-2.0
"""A torch without kernels for the GPU that is here."""

from ...findings import Abstention
from ..checking import DEVICE, Case, Check, Told, page, told
from ..reading.elf import kernels_of
from ..reading.graphics import capability_of

_LIBRARY = "lib/libtorch_cuda.so"


def _judges(case: Case) -> Told:
    torch, graphics = case.seen.torch, case.seen.graphics
    if torch is None or torch.cuda is None or not graphics.names:
        return
    kernels = kernels_of(torch.folder / _LIBRARY)
    if kernels is None or not (kernels.sass or kernels.ptx):
        yield Abstention("gpu_not_in_build", f"for which GPUs torch was built: {_LIBRARY} does not tell")
        return
    for name in dict.fromkeys(graphics.names):
        capability = capability_of(name)
        if capability is None:
            yield Abstention("gpu_not_in_build", f"the compute capability of {name}: unknown to our table")
        elif not kernels.run_on(capability):
            built = ", ".join(f"{one / 10:.1f}" for one in sorted(kernels.sass))
            yield told(
                "gpu_not_in_build", "error",
                f"{name} is of compute capability {capability / 10:.1f}, and torch {torch.version} holds kernels "
                f"for {built}",
                fix="Install a torch that has kernels for it: newer GPUs need newer builds, and new builds drop "
                "old GPUs",
                gpu=name,
            )  # fmt: skip


CHECK = Check(
    page(
        code="gpu_not_in_build",
        title="torch has no kernels for this GPU",
        means="An environment that was kept for years does not run on a new GPU, and a new build not on an old "
        "one: `no kernel "
        "image is available for execution on the device`.",
        recognised="The architectures of libtorch_cuda.so, read from the headers of its fat binaries, against "
        "the GPU's compute "
        "capability, by name. Machine code runs within its major version, PTX on all that is newer.",
        to_do="Install a build with that architecture.",
        abstains="The GPU's name is unknown to the table, or the library does not tell.",
        example="NVIDIA B200 is of compute capability 10.0, and torch 2.4.0+cu121 holds kernels for 5.0, 6.0, "
        "7.0, 8.0, 9.0",
    ),
    DEVICE + 20,
    _judges,
)
