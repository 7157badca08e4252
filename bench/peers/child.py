# SPDX-License-Identifier: Apache-2.0
"""Runs one loader in its own environment and prints its figures as lines of JSON. Started by launch.py.

Prints a line with the memory of the process with everything imported, a line at the end of the first epoch, when
sampling of memory ends, and the figures. A loader that does not support the work prints {"unavailable": reason} instead
of the first line.

An adapter is a module in adapters/ with `make(work)`, which creates the loader and returns a function that begins an
epoch and returns an iterator over the images of its batches. Optionally, `prepare(work)` writes the peer's files once,
in a separate process, so that its memory does not count; and `imports(work)` imports the modules that `make` imports.
"""

from __future__ import annotations

import importlib
import json
import os
import platform
import statistics
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

# last, so that a peer's module with the same name has precedence
sys.path.append(str(Path(__file__).resolve().parents[1]))

import numpy as np
import processes
from work import Unavailable, Work

Epochs = Callable[[], Iterator[Any]]
_SHEET = 16  # number of images saved for visual inspection


def described(images: Any) -> dict[str, Any]:
    """Returns properties of the delivered data, which reveal a wrong configuration in the record."""
    array = np.asarray(images)
    figures = {name: round(float(getattr(array, name)()), 4) for name in ("mean", "min", "max")}
    flat = array.reshape(len(array), -1)
    blank = int(np.count_nonzero(flat.max(axis=1) == flat.min(axis=1)))  # number of samples with a single value
    return {"shape": list(array.shape), "dtype": str(array.dtype), "blank": blank, **figures}


def warm_up(epochs: Epochs, sheet: str | None) -> tuple[dict[str, Any], float, int]:
    """Runs epoch 0, and returns the properties and time of its first batch, and its number of samples."""
    batches = epochs()
    images = next(batches)
    arrived = time.perf_counter()
    first = described(images)
    if sheet:
        np.save(sheet, np.array(np.asarray(images)[:_SHEET]))
    samples = len(images)
    del images
    for images in batches:
        samples += len(images)
    return first, arrived, samples


def timed(epochs: Epochs, work: Work) -> dict[str, Any]:
    """Runs `work.epochs` epochs. A gap is the time from an epoch's last step to the next epoch's first batch."""
    samples, seconds, gaps = 0, [], []
    stepped = None
    tree = processes.tree(os.getpid())
    cpu = processes.cpu_s(tree)
    for _ in range(work.epochs):
        started = time.perf_counter()
        first = True
        for images in epochs():
            if first and stepped is not None:
                gaps.append(time.perf_counter() - stepped)
            first = False
            samples += len(images)
            if work.step_s:
                time.sleep(work.step_s)
            stepped = time.perf_counter()
        seconds.append(time.perf_counter() - started)
    cpu = processes.cpu_s(processes.tree(os.getpid())) - cpu
    figures = {
        "samples": samples,
        "samples_per_s": samples / sum(seconds),
        "cpu_s_per_1000": 1000 * cpu / samples,
        "epoch_s": seconds,
    }
    return {**figures, "gap_s": statistics.median(gaps)} if gaps else figures


def versions(adapter: Any) -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in adapter.DISTRIBUTIONS:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def apart(prepare: Callable[[Work], None], work: Work) -> None:
    """Runs `prepare` in a fork of this process."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            prepare(work)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    if os.waitpid(pid, 0)[1] != 0:
        raise RuntimeError("its files could not be written")


def run(adapter: Any, work: Work, sheet: str | None) -> None:
    if hasattr(adapter, "prepare"):
        apart(adapter.prepare, work)
    if hasattr(adapter, "imports"):
        adapter.imports(work)
    bare = processes.pss_bytes([os.getpid()])
    print(json.dumps({"bare_bytes": bare.total}), flush=True)
    started = time.perf_counter()
    epochs = adapter.make(work)
    made = time.perf_counter()
    first, arrived, samples = warm_up(epochs, sheet)
    print("{}", flush=True)  # warm: memory is no longer sampled
    figures = {
        "construct_s": made - started,
        "first_batch_s": arrived - started,
        "first_batch": first,
        "samples_of_an_epoch": samples,
        "versions": versions(adapter),
        "bare_bytes": bare.total,
        **timed(epochs, work),
    }
    print(json.dumps(figures), flush=True)


def main() -> None:
    name, text, *sheet = sys.argv[1:]
    try:
        run(importlib.import_module(f"adapters.{name}"), Work.from_json(text), sheet[0] if sheet else None)
    except Unavailable as error:
        print(json.dumps({"unavailable": str(error)}), flush=True)
    sys.stdout.flush()
    os._exit(0)  # some peers hang or crash when the interpreter exits


if __name__ == "__main__":
    main()
