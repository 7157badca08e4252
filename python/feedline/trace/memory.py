# SPDX-License-Identifier: Apache-2.0
"""Reads the events of torch's allocations and releases, which profile_memory=True records."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import Any

_LARGEST = 2**62  # larger values do not fit into the columns


@dataclass
class Allocations:
    """Allocations and releases on one device, in the order of the file.

    Attributes:
        time: int64, ns. thread: an index into `Trace.threads`. size: bytes, negative for a release. total: bytes
            allocated after the event. address: the block's address; 0 if unknown.
        reserved: the largest number of bytes that torch's allocator held; 0 if unknown.
    """

    time: array[int] = field(default_factory=lambda: array("q"))
    thread: array[int] = field(default_factory=lambda: array("i"))
    size: array[int] = field(default_factory=lambda: array("q"))
    total: array[int] = field(default_factory=lambda: array("q"))
    address: array[int] = field(default_factory=lambda: array("Q"))
    reserved: int = 0


def note(devices: dict[str, Allocations], event: dict[str, Any], threads: dict[tuple[Any, Any], int]) -> None:
    """Adds a memory event; ignores one that is incomplete."""
    args = event.get("args")
    if not isinstance(args, dict):
        return
    total: Any = args.get("Total Allocated")
    size, number = args.get("Bytes", 0), args.get("Device Id", -1)
    ts, address, reserved = event.get("ts"), args.get("Addr", 0), args.get("Total Reserved", 0)
    if not isinstance(ts, (int, float)) or not abs(ts) < _LARGEST / 1000 or not (_is_count(total) and _is_count(size)):
        return
    found = devices.setdefault("cpu" if number == -1 else f"cuda:{number}", Allocations())
    found.time.append(round(ts * 1000))
    found.size.append(size)
    found.total.append(total)
    found.address.append(address if _is_count(address) and address > 0 else 0)
    found.thread.append(threads.setdefault((event.get("pid"), event.get("tid")), len(threads)))
    found.reserved = max(found.reserved, reserved if _is_count(reserved) else 0)


def _is_count(value: Any) -> bool:
    return type(value) is int and abs(value) < _LARGEST
