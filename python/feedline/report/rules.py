# SPDX-License-Identifier: Apache-2.0
"""Known effects of a record's facts on a loader's speed: their direction, their size, and the stages.

A rule with a known ratio can explain part of a difference by itself. Other rules specify at most the direction, which
stage times must confirm.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

CPU_STAGES = frozenset(("decode", "transform", "batch", "python", "collate", "hand-over"))
STORAGE_STAGES = frozenset(("storage",))
ALL_STAGES = CPU_STAGES | STORAGE_STAGES
STEP = frozenset(("step",))  # the loop's own work on any device

# Slowest first. Virtual disks and overlays are left out, as their backing storage is unknown.
_STORAGE = ("remote", "network", "disk", "ssd", "nvme", "memory")
_WORKLOAD = ("batch_size", "crop_pixels", "samples", "shuffle", "dataset", "collate")
_VARIABLES_OF_THREADS = (
    *("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OMP_PROC_BIND", "OMP_PLACES", "OMP_WAIT_POLICY"),
    *("KMP_AFFINITY", "KMP_BLOCKTIME", "GOMP_CPU_AFFINITY"),
)
_VARIABLES_OF_KERNELS = (
    *("CUDA_LAUNCH_BLOCKING", "CUDA_DEVICE_MAX_CONNECTIONS", "CUBLAS_WORKSPACE_CONFIG", "NVIDIA_TF32_OVERRIDE"),
    *(
        "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
        "TORCH_CUDNN_V8_API_DISABLED",
        "PYTORCH_ALLOC_CONF",
        "PYTORCH_CUDA_ALLOC_CONF",
    ),
)
_CHOICES = ("cudnn_benchmark", "cudnn_deterministic", "cudnn_allow_tf32", "cudnn_version", "matmul_precision")
_STEP_PACKAGES = ("torch", "triton", "nvidia-cudnn", "nvidia-cublas", "nvidia-nccl", "cudnn", "pytorch", "cudatoolkit")
_LOADING_PACKAGES = (
    *("feedline", "torch", "torchvision", "numpy", "pillow", "pillow-simd", "opencv", "albumentations", "webdataset"),
    *("libjpeg-turbo", "libtiff", "zlib", "zlib-ng", "lmdb", "h5py", "pyarrow", "tokenizers", "mkl", "openblas"),
)
_LIBRARIES = ("feedline", "torch", "torchvision", "numpy", "pillow", "pillow-simd", "webdataset", "libc", "python")


@dataclass(frozen=True)
class Rule:
    """A rule about the effect of one fact."""

    why: str
    stages: frozenset[str] = frozenset()
    capacity: bool = False  # the rate is proportional to it, all else equal
    faster: Callable[[Any, Any], int] | None = None  # for values (a, b): 1 if b is faster, -1 if slower, 0 if unknown
    workload: bool = False  # this changes the measured work
    least: float = 0.0  # smaller relative changes are noise
    probes: tuple[str, ...] = ()  # probes of the machine that the fact would show in; see probes.py


_OF_CPU = ("decode_per_s", "python_per_s")
_OF_MEMORY = (*_OF_CPU, "memory_bytes_per_s", "memory_all_bytes_per_s")
_OF_DISK = ("disk_bytes_per_s", "disk_small_ms")
_OF_LINK = ("copy_bytes_per_s",)


def _more(a: Any, b: Any) -> int:
    return 0 if not _numbers(a, b) else (b > a) - (b < a)


def _less(a: Any, b: Any) -> int:
    return -_more(a, b)


def _limit(a: Any, b: Any) -> int:
    """Compares limits like `_more`, but None means unlimited."""
    infinite = float("inf")
    return _more(infinite if a is None else a, infinite if b is None else b)


def _medium(a: Any, b: Any) -> int:
    if a not in _STORAGE or b not in _STORAGE:
        return 0
    return _more(_STORAGE.index(a), _STORAGE.index(b))


def _off(a: Any, b: Any) -> int:
    """Off is faster."""
    return int(a) - int(b) if isinstance(a, bool) and isinstance(b, bool) else 0


def _numbers(a: Any, b: Any) -> bool:
    return all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in (a, b))


_RULES: dict[tuple[str, str], Rule] = {
    ("machine", "usable_cpus"): Rule(
        "number of CPUs that the run may use, by affinity and cgroup quota", capacity=True
    ),
    ("machine", "load_1min"): Rule("CPU time used by other programs", ALL_STAGES, faster=_less, least=0.5),
    ("machine", "cpu"): Rule("another processor", CPU_STAGES, probes=_OF_CPU),
    ("machine", "cpu_flags"): Rule(
        "the CPU's instruction sets, which determine the code that libraries use", CPU_STAGES, probes=_OF_CPU
    ),
    ("machine", "cpu_max_mhz"): Rule(
        "the processor's highest clock", CPU_STAGES, faster=_more, least=0.02, probes=_OF_CPU
    ),
    ("machine", "cpu_governor"): Rule("the kernel's policy for the processor's clock rate", CPU_STAGES, probes=_OF_CPU),
    ("machine", "smt"): Rule("two hardware threads per core", CPU_STAGES, probes=_OF_CPU),
    ("machine", "numa_nodes"): Rule("memory of another NUMA node is slower", CPU_STAGES, probes=_OF_MEMORY),
    ("machine", "huge_pages"): Rule("the amount of memory that one TLB entry covers", CPU_STAGES, probes=_OF_MEMORY),
    ("machine", "hypervisor"): Rule("a virtual machine", ALL_STAGES, probes=_OF_MEMORY),
    ("machine", "gpu_driver"): Rule("a different GPU driver", STEP),
    ("machine", "gpu_clock_mhz"): Rule("the GPU's clock rate during the loop", STEP, faster=_more, least=0.03),
    ("machine", "gpu_slowed"): Rule(
        "power or temperature limits that throttled the GPU", STEP, faster=_less, least=0.1
    ),
    ("machine", "architecture"): Rule("a different instruction set", CPU_STAGES, probes=_OF_CPU),
    ("machine", "kernel"): Rule("another kernel", STORAGE_STAGES),
    ("machine", "memory_limit_bytes"): Rule("memory for the page cache", STORAGE_STAGES, faster=_limit),
    ("machine", "memory_bytes"): Rule("memory for the page cache", STORAGE_STAGES, faster=_more, least=0.2),
    ("machine", "page_cache_bytes"): Rule(
        "memory in use by the page cache at that time", STORAGE_STAGES, faster=_more, least=0.3
    ),
    ("machine", "available_bytes"): Rule(
        "memory available for the page cache", STORAGE_STAGES, faster=_more, least=0.3
    ),
    ("configuration", "threads"): Rule("threads that prepare batches", capacity=True),
    ("configuration", "num_workers"): Rule("workers that prepare batches", capacity=True),
    ("configuration", "prefetch_factor"): Rule("prefetched batches absorb delays, but do not make batches faster"),
    ("configuration", "class"): Rule("another loader"),
    ("configuration", "native"): Rule("whether Feedline's own threads produce the batches"),
    ("configuration", "start_method"): Rule("how workers start"),
    ("configuration", "pin_memory"): Rule("one additional copy, but faster copies to a GPU"),
    ("configuration", "persistent_workers"): Rule("whether workers are reused in each epoch"),
    ("storage", "kind"): Rule("a different kind of storage", STORAGE_STAGES, faster=_medium, probes=_OF_DISK),
    ("storage", "file_system"): Rule("a different file system", STORAGE_STAGES, probes=_OF_DISK),
    ("storage", "rotational"): Rule("a rotating disk", STORAGE_STAGES, faster=_off, probes=_OF_DISK),
    ("storage", "read_ahead_kb"): Rule("the number of bytes that the kernel reads ahead", STORAGE_STAGES),
    ("storage", "device"): Rule("another device", STORAGE_STAGES, probes=_OF_DISK),
    ("storage", "mount_options"): Rule("different mount options", STORAGE_STAGES, probes=_OF_DISK),
    ("software", "LD_LIBRARY_PATH"): Rule("the search path for libraries", CPU_STAGES),
    **{("software", name): Rule("threads inside every worker", CPU_STAGES) for name in _VARIABLES_OF_THREADS},
    **{("software", name): Rule("the way in which kernels run on the GPU", STEP) for name in _VARIABLES_OF_KERNELS},
    **{("configuration", name): Rule("how kernels are chosen", STEP) for name in _CHOICES},
    ("configuration", "deterministic_algorithms"): Rule("slower kernels with reproducible results", STEP, faster=_off),
    ("software", "LD_PRELOAD"): Rule("a preloaded library", CPU_STAGES),
    ("software", "free_threaded"): Rule("an interpreter without the GIL", CPU_STAGES, probes=("python_per_s",)),
    **{("software", name): Rule("another version", CPU_STAGES) for name in _LIBRARIES},
    **{("configuration", name): Rule("a difference in the measured work", workload=True) for name in _WORKLOAD},
    ("run", "verb"): Rule("another measurement", workload=True),
}


_GPU_RULES = {
    "name": Rule("another GPU", STEP),
    "pcie_width": Rule("the number of the GPU's PCIe lanes", STEP, faster=_more, probes=_OF_LINK),
    "pcie_generation": Rule("the speed of each of the GPU's PCIe lanes", STEP, faster=_more, probes=_OF_LINK),
}


def rule_of(group: str, name: str) -> Rule | None:
    """Returns the rule for a fact; None if its effect on speed is unknown."""
    if group == "machine" and (found := re.fullmatch(r"gpu\d+_(\w+)", name)):
        return _GPU_RULES.get(found[1])
    if group == "packages":
        loading, step = (any(_is(name, one) for one in names) for names in (_LOADING_PACKAGES, _STEP_PACKAGES))
        stages = (CPU_STAGES if loading else frozenset()) | (STEP if step else frozenset())
        return Rule("a different version or build", stages) if stages else None
    return _RULES.get((group, name))


def _is(package: str, name: str) -> bool:
    """Returns the base name, such as ``nvidia-cudnn`` for ``nvidia-cudnn-cu12``, or ``opencv`` for
    ``opencv-python-headless``.
    """
    return package == name or package.startswith(f"{name}-")


def is_usual(rule: Rule | None, a: Any, b: Any) -> bool:
    """Whether the difference between two values is within their variation from minute to minute."""
    if rule is None or not rule.least or not _numbers(a, b):
        return False
    return abs(b - a) <= rule.least * max(abs(a), abs(b))
