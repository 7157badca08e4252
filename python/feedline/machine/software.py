# SPDX-License-Identifier: Apache-2.0
"""Versions of the installed software, read from package metadata without importing packages."""

from __future__ import annotations

import hashlib
import os
import platform
import sys

from ..version import installed_version
from . import packages

_PACKAGES = (
    "feedline",
    "torch",
    "torchvision",
    "numpy",
    "pillow",
    "pillow-simd",
    "webdataset",
    "nvidia-dali-cuda120",
    "lightning",
    "accelerate",
    "transformers",
)
# Variables that change thread counts, the allocator, or the start of workers.
_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "LD_PRELOAD",
    "MALLOC_ARENA_MAX",
    "PYTHONMALLOC",
    "PYTHON_GIL",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_MODULE_LOADING",
    "CUDA_DEVICE_MAX_CONNECTIONS",
    "CUBLAS_WORKSPACE_CONFIG",
    "NVIDIA_TF32_OVERRIDE",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
    "TORCH_CUDNN_V8_API_DISABLED",
    "TORCH_CUDNN_V8_API_LRU_CACHE_LIMIT",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
    "OMP_PROC_BIND",
    "OMP_PLACES",
    "OMP_WAIT_POLICY",
    "KMP_AFFINITY",
    "KMP_BLOCKTIME",
    "GOMP_CPU_AFFINITY",
    "GLIBC_TUNABLES",
    "LD_LIBRARY_PATH",
    "NCCL_P2P_DISABLE",
    "NCCL_IB_DISABLE",
    "NCCL_SOCKET_IFNAME",
    "NCCL_ASYNC_ERROR_HANDLING",
    "TORCH_NCCL_ASYNC_ERROR_HANDLING",
    "TORCH_NCCL_BLOCKING_WAIT",
    "ATEN_CPU_CAPABILITY",
)


def software_facts() -> dict[str, str | bool | None]:
    """Returns the interpreter, C library, packages and environment variables; ``environment`` is a hash of the versions
    of all packages.
    """
    facts: dict[str, str | bool | None] = {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "free_threaded": not getattr(sys, "_is_gil_enabled", lambda: True)(),
        "libc": os.confstr("CS_GNU_LIBC_VERSION") if "CS_GNU_LIBC_VERSION" in os.confstr_names else None,
    }
    found = [(name.lower(), version) for name, version, _ in packages.installed()]
    installed = dict(reversed(found))  # the first on the path is the one that is imported
    facts |= {name: installed[name] for name in _PACKAGES if name in installed}
    if "feedline" not in installed:
        facts["feedline"] = installed_version()
    facts |= {name: os.environ[name] for name in _VARIABLES if name in os.environ}
    listing = "\n".join(f"{name}=={version}" for name, version in sorted(installed.items()))
    facts["environment"] = hashlib.sha256(listing.encode()).hexdigest()[:16]
    return facts
