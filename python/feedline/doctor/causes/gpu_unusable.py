# SPDX-License-Identifier: Apache-2.0
"""There is an NVIDIA GPU, and its driver does not answer."""

from __future__ import annotations

from collections.abc import Iterator

from ..case import BROKEN, Case, Cause, Found, page


def _judge(case: Case) -> Iterator[Found]:
    machine = case.machine
    if machine.has_driver and machine.has_device_files and not machine.gpus:
        trouble = machine.gpu_trouble or "the driver's library tells of no GPU"
        yield Found("critical", ("/proc/driver/nvidia and /dev/nvidia* are there", trouble))


CAUSE = Cause(
    page(
        "gpu_unusable",
        "there is an NVIDIA GPU, and its driver does not answer",
        means="The kernel has the driver and its device files are here, but its management library cannot be "
        "used. In containers that have run for long, a reload of systemd takes the devices away; on a "
        "host, the driver was updated and not reloaded.",
        recognised="The driver's files in /proc and /dev are there, and NVML tells of no GPU.",
        to_do="Restart the container, or on a host reload the driver (reboot where that is not possible); "
        "torch.cuda.is_available() would be False.",
        example="NVML: Driver/library version mismatch.",
    ),
    turn=BROKEN + 10,
    judge=_judge,
)
