# SPDX-License-Identifier: Apache-2.0
"""The device interface, and the ways in which a training loop can copy batches to a device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

BYTES = {"float32": 4, "uint8": 1}  # of a transferred element


@dataclass(frozen=True)
class Way:
    """A way of copying batches to a device."""

    name: str
    pinned: bool  # from page-locked memory
    stream: bool  # on a separate stream, one batch ahead
    elements: str = "float32"  # the transferred type; bytes are converted to floats on the device
    channels_last: bool = False


# Each differs from the previous one in one property.
WAYS = (
    Way("pageable", pinned=False, stream=False),
    Way("pageable_stream", pinned=False, stream=True),
    Way("pinned", pinned=True, stream=False),
    Way("pinned_stream", pinned=True, stream=True),
    Way("uint8_stream", pinned=True, stream=True, elements="uint8"),
    Way("channels_last_stream", pinned=True, stream=True, elements="uint8", channels_last=True),
)


class Link(Protocol):
    """A device and its link to the host. All times are in seconds."""

    @property
    def name(self) -> str:
        """The device's name, such as "NVIDIA A100-SXM4-80GB"."""

    @property
    def uuid(self) -> str: ...

    @property
    def unified(self) -> bool:
        """Whether the device shares the CPU's memory, so that copies do not cross a link."""

    def copy_s(self, size: int, pinned: bool) -> float:
        """Returns the time of one copy of `size` bytes to the device, measured by the device's clock with nothing else
        running.
        """

    def set_step(self, seconds: float) -> None:
        """Sets the minimum duration of a step."""

    def step_s(self, way: Way) -> float:
        """Returns the time of one step on a batch in device memory, measured by the device's clock."""

    def loop_s(self, way: Way, batches: int) -> float:
        """Returns the duration of a loop with this number of copies and steps, from its start to the end of the last
        step.
        """
