# SPDX-License-Identifier: Apache-2.0
"""Reads a loader's arguments in the loader's process, without changing it."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Any

from feedline.machine import limits


def process_facts() -> dict[str, Any]:
    torch = sys.modules.get("torch")
    facts: dict[str, Any] = {
        "rank": os.environ.get("RANK"),
        "world_size": os.environ.get("WORLD_SIZE"),
        "local_rank": limits.local_rank(),
        "sharing_ranks": limits.sharing_ranks(),
        "cpus": len(limits.allowed_cpus()),
    }
    if torch is not None:
        facts["torch"] = str(torch.__version__)
        facts["threads"] = torch.get_num_threads()
        facts["cuda"] = bool(torch.cuda.is_initialized())
        if facts["cuda"]:
            facts |= _choices(torch)
    return facts


def _choices(torch: Any) -> dict[str, Any]:
    """Reads the script's settings for GPU kernel selection; not all versions of torch have all of these settings."""
    facts: dict[str, Any] = {}
    for name, ask in (
        ("cudnn_benchmark", lambda: bool(torch.backends.cudnn.benchmark)),
        ("cudnn_deterministic", lambda: bool(torch.backends.cudnn.deterministic)),
        ("cudnn_allow_tf32", lambda: bool(torch.backends.cudnn.allow_tf32)),
        ("cudnn_version", lambda: int(torch.backends.cudnn.version())),
        ("matmul_precision", lambda: str(torch.get_float32_matmul_precision())),
        ("deterministic_algorithms", lambda: bool(torch.are_deterministic_algorithms_enabled())),
    ):
        with contextlib.suppress(AttributeError, RuntimeError, TypeError):
            facts[name] = ask()
    return facts


def torch_facts(loader: Any, iterator: Any = None) -> dict[str, Any]:
    """Returns the loader's arguments that can be read without side effects."""
    native = sys.modules.get("feedline.torch_loader.native.native_iterator")
    context = getattr(loader, "multiprocessing_context", None)
    if context is None:
        import multiprocessing

        context = multiprocessing.get_context()
    lowered = native is not None and isinstance(iterator, native.NativeIterator)
    facts: dict[str, Any] = {
        **process_facts(),
        "class": f"{type(loader).__module__}.{type(loader).__qualname__}",
        "num_workers": getattr(loader, "num_workers", 0),
        "batch_size": _number(getattr(loader, "batch_size", None)),
        "prefetch_factor": getattr(loader, "prefetch_factor", None),
        "persistent_workers": bool(getattr(loader, "persistent_workers", False)),
        "pin_memory": bool(getattr(loader, "pin_memory", False)),
        "in_order": bool(getattr(loader, "in_order", True)),
        "start_method": context.get_start_method(),
        "iterable": bool(getattr(loader, "_dataset_kind", 0)),
        "dataset": type(getattr(loader, "dataset", None)).__qualname__,
        "collate": getattr(getattr(loader, "collate_fn", None), "__qualname__", "?"),
        "native": lowered,
    }
    if lowered and "_threads" in iterator.__dict__:  # rows of arrays; without a thread for small ones
        facts["threads_gathering"] = 0 if iterator._threads is None else facts["num_workers"]
        facts["mapped"] = iterator._table.mapped
    return facts


def own_facts(_loader: Any, _iterator: Any) -> dict[str, Any]:
    return {
        **process_facts(),
        "class": "feedline.Loader",
        "num_workers": 0,
        "batch_size": None,
        "native": True,
    }


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) else None
