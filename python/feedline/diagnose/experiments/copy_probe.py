# SPDX-License-Identifier: Apache-2.0
"""Times copies of one batch to a device: from pageable memory, from page-locked memory, and non-blocking.

pinning.py runs this file by path as a separate program, with the script's Python, after the script has ended; it
imports torch but not Feedline. Its argument is {"device": "cuda:0", "sizes": [bytes], "seconds": s}. The program prints
one JSON object with a list of pairs for each kind of copy: ms between two events on the device's stream, and ms inside
the calls; "page_locking" has the time in ms that a loader needs to copy one batch into page-locked memory.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

WAYS = ("pageable", "locked", "asked")
_MOST_BYTES = 64 << 20  # larger batches are copied in part, with the same number of tensors
_SETS = 4  # copied in rotation: a training loop's next batch is not in the CPU's caches, either
_WARM, _FEWEST, _MOST = 2, 5, 200


def measure(device_name: str, sizes: list[int], seconds: float) -> dict[str, Any]:
    import torch

    device = torch.device(device_name)
    module = getattr(torch, device.type)
    if device.index is not None and hasattr(module, "set_device"):
        module.set_device(device)
    part = min(_MOST_BYTES / max(sum(sizes), 1), 1.0)
    sizes = [max(int(size * part), 1) for size in sizes]
    pageable = [[torch.ones(size, dtype=torch.uint8) for size in sizes] for _ in range(_SETS)]
    locked = [[tensor.pin_memory() for tensor in one] for one in pageable]
    if not all(tensor.is_pinned() for tensor in locked[0]):
        raise RuntimeError("memory could not be page-locked")
    targets = [torch.empty(size, dtype=torch.uint8, device=device) for size in sizes]
    times: dict[str, list[tuple[float, float]]] = {way: [] for way in WAYS}
    page_locking = []
    until, turn = time.monotonic() + seconds, 0
    while turn < _WARM + _FEWEST or (time.monotonic() < until and turn < _WARM + _MOST):
        for way in WAYS:
            sources = (pageable if way == "pageable" else locked)[turn % _SETS]
            took = _copy(module, sources, targets, way == "asked")
            if turn >= _WARM:
                times[way].append(took)
        page_locking.append(_page_lock(pageable[(turn + 1) % _SETS]))
        turn += 1
    return {"bytes": sum(sizes), "page_locking": page_locking[_WARM:], **times}


def _page_lock(tensors: list[Any]) -> float:
    begin = time.perf_counter()
    locked = [tensor.pin_memory() for tensor in tensors]
    took = 1000 * (time.perf_counter() - begin)
    del locked  # torch caches such memory for the next copy
    return took


def _copy(module: Any, sources: list[Any], targets: list[Any], asked: bool) -> tuple[float, float]:
    start, end = module.Event(enable_timing=True), module.Event(enable_timing=True)
    module.synchronize()
    start.record()
    begin = time.perf_counter()
    for source, target in zip(sources, targets, strict=True):
        target.copy_(source, non_blocking=asked)
    held = time.perf_counter() - begin
    end.record()
    module.synchronize()
    return float(start.elapsed_time(end)), 1000 * held


if __name__ == "__main__":
    wanted = json.loads(sys.argv[1])
    try:
        answer = measure(wanted["device"], wanted["sizes"], wanted["seconds"])
    except Exception as error:
        answer = {"why": f"{type(error).__name__}: {error}".splitlines()[0]}
    print(json.dumps(answer))
