# SPDX-License-Identifier: Apache-2.0
"""The host has an NVIDIA driver, and this container no GPU."""

from __future__ import annotations

from collections.abc import Iterator

from ..case import BROKEN, Case, Cause, Found, page


def _judge(case: Case) -> Iterator[Found]:
    machine = case.machine
    if machine.has_driver and machine.container and not machine.has_device_files and not machine.gpus:
        place = f"this {machine.container} container"
        yield Found("critical", (f"the host's kernel has NVIDIA's driver, and no /dev/nvidia* is in {place}",))


CAUSE = Cause(
    page(
        "gpu_not_passed",
        "the host has an NVIDIA driver, and this container no GPU",
        means="The kernel that runs the container has NVIDIA's driver loaded, but no device was passed in, so "
        "torch sees the CPU alone. An image never brings a driver with it: that is the host's.",
        recognised="/proc/driver/nvidia is there, a container is, and /dev/nvidia* is not.",
        to_do="docker run --gpus all --shm-size=8g (Kubernetes: a limit of nvidia.com/gpu); the host needs "
        "the NVIDIA container toolkit.",
        example="the host's kernel has NVIDIA's driver, and no /dev/nvidia* is in this Docker container.",
    ),
    turn=BROKEN + 20,
    judge=_judge,
)
