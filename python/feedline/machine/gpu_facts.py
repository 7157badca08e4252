# SPDX-License-Identifier: Apache-2.0
"""The GPUs, asked of NVIDIA's management library by ctypes; where it is not there, that is said."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

_LIBRARY = "libnvidia-ml.so.1"
_NAME_BYTES = 96  # NVML_DEVICE_NAME_V2_BUFFER_SIZE
_VERSION_BYTES = 80  # NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE
Facts = dict[str, str | int | float | bool | None]


class _Memory(ctypes.Structure):  # nvmlMemory_t
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


def gpu_facts(root: Path = Path("/"), library: str = _LIBRARY) -> tuple[Facts, str | None]:
    """Facts as ``gpus`` (how many) and ``gpu0_name`` and so on; and a sentence where they could not be read."""
    try:
        nvml = ctypes.CDLL(library)
    except OSError:
        if (root / "proc/driver/nvidia").exists():
            return {
                "gpus": None
            }, f"there is an NVIDIA driver, and {library} cannot be loaded: nothing is known of its GPUs"
        return {"gpus": 0}, None
    try:
        if nvml.nvmlInit_v2() != 0:
            return {"gpus": None}, "NVML did not start: nothing is known of GPUs (in a container: were devices lost?)"
        try:
            return _devices(nvml), None
        finally:
            nvml.nvmlShutdown()
    except AttributeError as error:  # a library without these functions
        return {"gpus": None}, f"{library}: {error}"


def _devices(nvml: Any) -> Facts:
    count, version = ctypes.c_uint(), ctypes.create_string_buffer(_VERSION_BYTES)
    facts: Facts = {"gpus": None}
    if nvml.nvmlSystemGetDriverVersion(version, _VERSION_BYTES) == 0:
        facts["gpu_driver"] = version.value.decode(errors="replace")
    if nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) != 0:
        return facts
    facts["gpus"] = count.value
    for i in range(count.value):
        device = ctypes.c_void_p()
        if nvml.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(i), ctypes.byref(device)) != 0:
            continue  # of another user, or lost
        name, memory = ctypes.create_string_buffer(_NAME_BYTES), _Memory()
        if nvml.nvmlDeviceGetName(device, name, _NAME_BYTES) == 0:
            facts[f"gpu{i}_name"] = name.value.decode(errors="replace")
        if nvml.nvmlDeviceGetMemoryInfo(device, ctypes.byref(memory)) == 0:
            facts[f"gpu{i}_memory_bytes"] = memory.total
        for fact, function in (
            ("pcie_generation", "nvmlDeviceGetMaxPcieLinkGeneration"),
            ("pcie_width", "nvmlDeviceGetCurrPcieLinkWidth"),
        ):
            value = ctypes.c_uint()
            if getattr(nvml, function)(device, ctypes.byref(value)) == 0:
                facts[f"gpu{i}_{fact}"] = value.value
    return facts
