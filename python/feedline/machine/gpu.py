# SPDX-License-Identifier: Apache-2.0
"""The current state of the GPUs, read by the engine."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Protocol

from .. import _engine


@dataclass(frozen=True)
class Reading:
    """The current state of one GPU. None means not available from the driver, for this GPU, or to this user."""

    index: int
    name: str
    utilisation: float | None  # share of the driver's last window in which any kernel ran
    memory_used_bytes: int | None
    memory_bytes: int | None
    received_bytes_per_s: float | None  # over PCIe
    sent_bytes_per_s: float | None
    power_w: float | None
    temperature_c: int | None
    slowed: bool | None  # clocks throttled by power or heat
    pids: tuple[int, ...]  # compute processes; empty in a container without the host's process ids


class Gpus(Protocol):
    """Reads the machine's GPUs."""

    @property
    def unavailable(self) -> str:
        """The reason why the GPUs cannot be read, or an empty string."""

    def read(self) -> tuple[Reading, ...]: ...


class EngineReader(Protocol):
    """`_engine.GpuReader`."""

    @property
    def unavailable(self) -> str: ...

    def sample(self, now_ns: int) -> list[dict[str, Any]]: ...

    def gpus(self) -> list[dict[str, Any]]: ...

    def processes(self) -> list[dict[str, Any]]: ...


class EngineGpus:
    """Reads the GPUs with NVIDIA's management library. The first read may take seconds, since a GPU may have to wake
    up.
    """

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
    """Uses this machine's NVIDIA driver, if it has one."""
    return EngineGpus(_engine.GpuReader())
