# SPDX-License-Identifier: Apache-2.0
"""The GPUs in a run record, read by the engine from NVIDIA's management library (NVML), with a note if NVML is
missing.
"""

from __future__ import annotations

from pathlib import Path

from .. import _engine

_LIBRARY = "libnvidia-ml.so.1"
Facts = dict[str, str | int | float | bool | None]


def gpu_facts(root: Path = Path("/"), library: str = _LIBRARY) -> tuple[Facts, str | None]:
    """Returns facts such as ``gpus`` (the number of GPUs) and ``gpu0_name``, and a sentence if they could not be
    read.
    """
    reader = _engine.GpuReader(library)
    driver = reader.driver()
    if not driver["is_there"]:
        if (root / "proc/driver/nvidia").exists():
            note = f"an NVIDIA driver is installed, but {library} cannot be loaded, so the GPUs are unknown"
            return {"gpus": None}, note
        return {"gpus": 0}, None
    facts: Facts = {"gpus": driver["gpus"]}
    if driver["version"] is not None:
        facts["gpu_driver"] = driver["version"]
    for gpu in reader.gpus():
        known = {name: gpu[name] for name in ("name", "memory_bytes", "pcie_generation", "pcie_width") if gpu[name]}
        facts |= {f"gpu{gpu['index']}_{name}": value for name, value in known.items()}
    return facts, reader.unavailable or None if driver["gpus"] is None else None
