# SPDX-License-Identifier: Apache-2.0
"""There is an NVIDIA GPU, but its driver does not respond."""

from __future__ import annotations

from collections.abc import Iterator

from ...rules import BROKEN, Analysis, Cause, Found, page


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    machine = analysis.machine
    if machine.has_driver and machine.has_device_files and not machine.gpus:
        trouble = machine.gpu_trouble or "the driver's library reports no GPU"
        yield Found("critical", ("/proc/driver/nvidia and /dev/nvidia* exist", trouble))


CAUSE = Cause(
    page(
        "gpu_unusable",
        "the machine has an NVIDIA GPU, but its driver does not respond",
        means="The kernel has the driver and the device files exist, but the management library cannot be used. In "
        "a long-running container, a reload of systemd may have revoked the devices; on a host, the driver may "
        "have been updated but not reloaded.",
        recognised="The driver's files in /proc and /dev exist, but NVML reports no GPU.",
        to_do="Restart the container, or reload the driver on the host (reboot if that is not possible); "
        "until then, torch.cuda.is_available() returns False.",
        example="NVML: Driver/library version mismatch.",
    ),
    priority=BROKEN + 10,
    evaluate=_evaluate,
)
