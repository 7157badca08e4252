# SPDX-License-Identifier: Apache-2.0
"""The host has an NVIDIA driver, but this container has no GPU."""

from __future__ import annotations

from collections.abc import Iterator

from ...rules import BROKEN, Analysis, Cause, Found, page


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    machine = analysis.machine
    if machine.has_driver and machine.container and not machine.has_device_files and not machine.gpus:
        location = f"this {machine.container} container"
        yield Found("critical", (f"the host's kernel has NVIDIA's driver, but {location} has no /dev/nvidia*",))


CAUSE = Cause(
    page(
        "gpu_not_passed",
        "the host has an NVIDIA driver, but this container has no GPU",
        means="The kernel that runs the container has NVIDIA's driver loaded, but no device was passed in, so "
        "torch only sees the CPU. An image never contains a driver, which always belongs to the host.",
        recognised="This is a container, /proc/driver/nvidia exists, and /dev/nvidia* does not.",
        to_do="Use docker run --gpus all --shm-size=8g (in Kubernetes, a limit of nvidia.com/gpu); the host needs "
        "the NVIDIA container toolkit.",
        example="the host's kernel has NVIDIA's driver, but this Docker container has no /dev/nvidia*.",
    ),
    priority=BROKEN + 20,
    evaluate=_evaluate,
)
