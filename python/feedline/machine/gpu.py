# SPDX-License-Identifier: Apache-2.0
"""The GPUs now, as the engine reads them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Protocol

from .. import _engine


@dataclass(frozen=True)
class Reading:
    """One GPU now; None: the driver, the GPU or this user is not told."""

    index: int
    name: str
    utilisation: float | None  # share of the driver's last window with any kernel, however small it was
    memory_used_bytes: int | None
    memory_bytes: int | None
    received_bytes_per_s: float | None  # over PCIe
    sent_bytes_per_s: float | None
    power_w: float | None
    temperature_c: int | None
    slowed: bool | None  # clocks held down by power or heat
    pids: tuple[int, ...]  # that compute on it; in a container without the host's numbers there are none


class Gpus(Protocol):
    """Reads the machine's GPUs."""

    @property
    def unavailable(self) -> str:
        """Why there is nothing to read; empty where there is."""

    def read(self) -> tuple[Reading, ...]: ...


class EngineReader(Protocol):
    """`_engine.GpuReader`."""

    @property
    def unavailable(self) -> str: ...

    def sample(self, now_ns: int) -> list[dict[str, Any]]: ...

    def gpus(self) -> list[dict[str, Any]]: ...

    def processes(self) -> list[dict[str, Any]]: ...


class EngineGpus:
    """By NVIDIA's management library. The first reading may take seconds, where the driver has to wake a GPU."""

    def __init__(self, reader: EngineReader) -> None:
        self._reader = reader

    @property
    def unavailable(self) -> str:
        return self._reader.unavailable

    def read(self) -> tuple[Reading, ...]:
        rows = self._reader.sample(time.monotonic_ns())
        facts = {gpu["index"]: gpu for gpu in self._reader.gpus()}
        processes = self._reader.processes() if rows else []
        return tuple(
            Reading(
                name=facts.get(row["index"], {}).get("name", ""),
                memory_bytes=facts.get(row["index"], {}).get("memory_bytes"),
                pids=tuple(process["pid"] for process in processes if process["index"] == row["index"]),
                **{name: row[name] for name in _MEASURED},
            )
            for row in rows
        )


_MEASURED = (
    "index",
    "utilisation",
    "memory_used_bytes",
    "received_bytes_per_s",
    "sent_bytes_per_s",
    "power_w",
    "temperature_c",
    "slowed",
)


def of_engine() -> Gpus:
    """Through the driver that this machine has, if it has one."""
    return EngineGpus(_engine.GpuReader())
