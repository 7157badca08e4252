# SPDX-License-Identifier: Apache-2.0
"""Runs one loader with remote data in its own environment, with the adapters and protocol of bench/peers/child.py. The
first epoch is timed from iter(), because later epochs may read stored data; then `work.epochs` more epochs are timed.
CPU time includes the process tree and ended children (curl).
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

sys.path.extend(str(Path(__file__).resolve().parents[1] / name) for name in ("peers", ""))

import processes
from child import described
from work import Unavailable, Work


def epoch(epochs: Any, work: Work) -> dict[str, Any]:
    cpu = processes.cpu_s(processes.tree(os.getpid()), reaped=True)
    began = time.perf_counter()
    samples, first_s, first = 0, 0.0, {}
    for images in epochs():
        if not samples:
            first_s, first = time.perf_counter() - began, described(images)
        samples += len(images)
    seconds = time.perf_counter() - began
    cpu = processes.cpu_s(processes.tree(os.getpid()), reaped=True) - cpu
    return {
        "samples": samples,
        "samples_per_s": samples / seconds,
        "cpu_s_per_1000": 1000 * cpu / samples,
        "first_batch_s": first_s,
        "first_batch": first,
    }


def run(adapter: Any, work: Work) -> None:
    print(json.dumps({"bare_bytes": processes.pss_bytes([os.getpid()]).total}), flush=True)
    began = time.perf_counter()
    epochs = adapter.make(work)
    made_s = time.perf_counter() - began
    print("{}", flush=True)  # memory is not sampled, as sampling would affect the times
    first = epoch(epochs, work)
    print(json.dumps({**first, "construct_s": made_s, "later": [epoch(epochs, work) for _ in range(work.epochs)]}))


def main() -> None:
    name, text = sys.argv[1:3]
    try:
        work = Work.from_json(text)
        module = importlib.import_module(f"adapters.{name}")
        if hasattr(module, "imports"):
            module.imports(work)
        run(module, work)
    except Unavailable as error:
        print(json.dumps({"unavailable": str(error)}))
    sys.stdout.flush()
    os._exit(0)  # as in child.py


if __name__ == "__main__":
    main()
