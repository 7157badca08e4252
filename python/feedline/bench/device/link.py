# SPDX-License-Identifier: Apache-2.0
"""What is asked of a device, and the ways in which a training loop may bring it batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

BYTES = {"float32": 4, "uint8": 1}  # of an element that crosses the link


@dataclass(frozen=True)
class Way:
    """How a loop copies."""

    name: str
    pinned: bool  # out of page-locked memory
    stream: bool  # on a stream of its own, one batch ahead
    elements: str = "float32"  # what crosses; bytes become floats on the device
    channels_last: bool = False


# What each shows is the difference to the one before it.
WAYS = (
    Way("pageable", pinned=False, stream=False),
    Way("pageable_stream", pinned=False, stream=True),
    Way("pinned", pinned=True, stream=False),
    Way("pinned_stream", pinned=True, stream=True),
    Way("uint8_stream", pinned=True, stream=True, elements="uint8"),
    Way("channels_last_stream", pinned=True, stream=True, elements="uint8", channels_last=True),
)


class Link(Protocol):
    """A device and the way to it. All times are seconds."""

    @property
    def name(self) -> str:
        """Such as "NVIDIA A100-SXM4-80GB"."""

    @property
    def uuid(self) -> str: ...

    @property
    def unified(self) -> bool:
        """Has it the CPU's memory, so that a copy crosses no link?"""

    def copy_s(self, size: int, pinned: bool) -> float:
        """Of one copy of `size` bytes to the device, by the device's clock, with nothing beside it."""

    def set_step(self, seconds: float) -> None:
        """From now on a step takes about so long, at least."""

    def step_s(self, way: Way) -> float:
        """Of one step on a batch that is there, by the device's clock."""

    def loop_s(self, way: Way, batches: int) -> float:
        """Of a loop that copies so many batches and makes a step of each, from its begin to the last step's end."""
