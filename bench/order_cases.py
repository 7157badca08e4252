# SPDX-License-Identifier: Apache-2.0
"""Measures one order in this process and prints its figures, as a line of JSON. `order.py` starts it."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import feedline
from feedline import _engine

LISTED = 10_000_000  # number of samples for orders that are lists
_INDICES = 4_000_000  # maximum number of samples timed for Feedline's orders
_WINDOW, _BATCH = 64, 16


def _peak_bytes() -> int:
    """Returns the maximum resident memory of this process so far."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.partition("VmHWM:")[2].split()[0])


def _measured(work: Callable[[], int]) -> dict[str, Any]:
    """Measures memory and CPU seconds; nothing waits. `work` returns the number of indices that it created."""
    before, started = _peak_bytes(), time.process_time()
    count = work()
    seconds = time.process_time() - started
    return {"cpu_s": seconds, "ns_per_index": 1e9 * seconds / count, "peak_bytes": _peak_bytes() - before}


def permutation(samples: int) -> dict[str, Any]:
    """Feedline's order, in chunks that fit in the cache, spread over the whole order."""
    chunk = min(samples, 10_000)
    count = max(1, _INDICES // chunk)
    begins = [int(begin) for begin in np.linspace(0, samples - chunk, count)]

    def work() -> int:
        for begin in begins:
            _engine.sample_order(
                samples=samples, shard_ends=[], shuffle=True, shard_window=0, seed=1, epoch=0, begin=begin, count=chunk
            )
        return chunk * count

    return {"samples": samples, **_measured(work)}


def numpy_permutation(samples: int) -> dict[str, Any]:
    """NumPy's order, as one array."""
    return _measured(lambda: len(np.random.default_rng(0).permutation(samples)))


def torch_randperm(samples: int) -> dict[str, Any]:
    """torch's order, as one tensor."""
    import torch

    return _measured(lambda: len(torch.randperm(samples)))


def _walked(sampler: Any) -> dict[str, Any]:
    """Measures a sampler in the same way, and the wall time to its first index."""
    first_index_s = 0.0

    def walk() -> int:
        nonlocal first_index_s
        started, iterator = time.perf_counter(), iter(sampler)
        next(iterator)
        first_index_s = time.perf_counter() - started
        return 1 + sum(1 for _ in iterator)

    return {**_measured(walk), "first_index_s": first_index_s}


def random_sampler(samples: int) -> dict[str, Any]:
    """Iterates over torch's sampler for shuffle=True."""
    from torch.utils.data import RandomSampler

    return _walked(RandomSampler(range(samples)))


def distributed_sampler(samples: int) -> dict[str, Any]:
    """Iterates over torch's sampler for ranks, as rank 0 of 8."""
    from torch.utils.data import DistributedSampler

    return _walked(DistributedSampler(range(samples), num_replicas=8, rank=0))


def _sparse_tokens(folder: Path, samples: int) -> Path:
    """A sparse file with this many windows, one at each token, which uses no disk space."""
    path = folder / "tokens.bin"
    with path.open("wb") as file:
        file.truncate(samples + _WINDOW)
    return path


def resume(position: int) -> dict[str, Any]:
    """Measures a loader over an open source, from its creation to its first batch at `position`, and its memory."""
    samples = max(2 * position, 10_000)
    with tempfile.TemporaryDirectory() as folder:
        source = _sparse_tokens(Path(folder), samples)
        data = feedline.tokens(source, window=_WINDOW, stride=1, dtype="uint8")
        options: dict[str, Any] = {"shuffle": True, "seed": 1, "num_workers": 2, "output": "numpy"}
        with data.loader(_BATCH, **options) as loader:
            state = {**loader.state_dict(), "position": position}
        before, started = _peak_bytes(), time.perf_counter()
        with data.loader(_BATCH, **options) as loader:
            made = time.perf_counter()
            loader.load_state_dict(state)
            restored = time.perf_counter()
            iterator = iter(loader)
            under_way = time.perf_counter()
            next(iterator)
            first = time.perf_counter()
            assert loader.state_dict()["position"] == position + _BATCH
    return {
        "position": position,
        "samples": samples,
        "make_loader_s": made - started,
        "load_state_s": restored - made,
        "under_way_s": under_way - made,
        "first_batch_s": first - made,
        "peak_bytes": _peak_bytes() - before,
    }


def plan_memory(samples: int) -> dict[str, Any]:
    """Measures the memory of a loader with this many samples after loading a state, before its threads start."""
    with tempfile.TemporaryDirectory() as folder:
        data = feedline.tokens(_sparse_tokens(Path(folder), samples), window=_WINDOW, stride=1, dtype="uint8")
        # memory that any first loader uses, for example for NumPy and this module
        feedline.arrays(y=np.arange(10)).loader(2, shuffle=True, output="numpy").close()
        before = _peak_bytes()
        loader = data.loader(_BATCH, shuffle=True, seed=1, output="numpy")
        loader.load_state_dict({**loader.state_dict(), "position": samples // 2})
        _engine.sample_order(
            samples=samples, shard_ends=[], shuffle=True, shard_window=0, seed=1, epoch=0, begin=samples // 2, count=100
        )
        assert len(loader) == -(-samples // _BATCH)
        return {"samples": samples, "peak_bytes": _peak_bytes() - before}


CASES = {
    case.__name__: case
    for case in (
        permutation,
        numpy_permutation,
        torch_randperm,
        random_sampler,
        distributed_sampler,
        resume,
        plan_memory,
    )
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("case", choices=CASES)
    parser.add_argument("number", type=int, help="number of samples; for resume, the position")
    options = parser.parse_args()
    print(json.dumps(CASES[options.case](options.number)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
