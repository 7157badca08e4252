# SPDX-License-Identifier: Apache-2.0
"""Opens datasets and runs loaders for a long time, and measures whether memory, descriptors, threads and files in
/dev/shm grow.
"""

from __future__ import annotations

import contextlib
import gc
import os
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import feedline

from .jobs import digest, samples

_SAMPLE_S = 5.0
_WARM_UP = 0.2  # share of the time before growth counts: caches fill, and malloc makes its arenas
_MOST_GROWTH = {"rss_mib": 8.0, "descriptors": 0.0, "threads": 0.0, "shm_files": 0.0}


def soak(source: Path, root: Path, until: float) -> tuple[dict[str, object], list[str]]:
    """Returns the figures, and those that grew."""
    begun = time.monotonic()
    rounds = _rounds(source, root)
    expected: dict[int, str] = {}
    measured: list[tuple[float, dict[str, float]]] = []
    epochs, complaints, last = 0, [], 0.0
    while time.monotonic() < until:
        for number, one in enumerate(rounds):
            result = one()
            epochs += 1
            if expected.setdefault(number, result) != result:
                complaints.append(f"epoch {epochs}: round {number} delivers other samples")
        if time.monotonic() - last >= _SAMPLE_S:
            last = time.monotonic()
            gc.collect()
            measured.append((last, _use()))
    after = [use for when, use in measured if when > begun + _WARM_UP * (until - begun)]
    half = len(after) // 2
    figures: dict[str, object] = {"epochs": epochs}
    for name, most in _MOST_GROWTH.items():
        early, late = (statistics.median(use[name] for use in part) for part in (after[:half], after[half:]))
        figures[name] = [round(early, 1), round(late, 1)]
        if late - early > most:
            complaints.append(f"{name} grew from {early:.1f} to {late:.1f}")
    return figures, complaints


def _rounds(source: Path, root: Path) -> list[Callable[[], str]]:
    """Functions that make an epoch each, of new datasets and loaders."""
    tars = sorted((source / "tars").glob("*.tar"))
    kept = feedline.open(tars).resize((24, 24)).loader(4, shuffle=True, seed=1, num_workers=2, output="numpy")

    def again() -> str:
        kept.set_epoch(0)
        return digest(field for batch in kept for field in batch)

    def interrupted() -> str:
        with feedline.open(tars).resize((24, 24)).loader(2, num_workers=2, output="numpy") as loader:
            first = digest(next(iter(loader)))
            loader.state_dict()
        return first

    def drop_in() -> str:
        rows = [(number, number * 2.0) for number in range(24)]
        loader = feedline.DataLoader(rows, batch_size=4, num_workers=2, lower="never")
        return digest(field for batch in loader for field in batch)

    def refused() -> str:
        with contextlib.suppress(feedline.Error):
            feedline.open(source / "missing.tar")
        return ""

    rounds = [
        again,
        interrupted,
        refused,
        lambda: samples(feedline.open(source / "photos").random_resized_crop(24), shuffle=True, seed=3),
        lambda: samples(feedline.open(source / "photos").resize((24, 24)).cache("memory")),
        lambda: samples(feedline.open(tars, cache=root / "cache").resize((24, 24))),
        lambda: samples(feedline.open([source / "gz" / "000.tar.gz"]).resize((24, 24))),
        lambda: samples(
            feedline.open(source / "texts.jsonl", fields="text")
            .tokenize(source / "model", field="text")
            .pack_sequences(64)
        ),
    ]
    with contextlib.suppress(ImportError):
        import torch  # noqa: F401

        rounds.append(drop_in)
    return rounds


def _use() -> dict[str, float]:
    return {
        "rss_mib": sum(_resident(pid) for pid in _family()) / 2**20,
        "descriptors": len(os.listdir("/proc/self/fd")),
        "threads": len(os.listdir("/proc/self/task")),
        "shm_files": sum(1 for _ in _own_shm()),
    }


def _family() -> list[int]:
    """This process and its children."""
    pid = os.getpid()
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *map(int, children)]


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def _own_shm() -> Iterator[str]:
    for folder, _, names in os.walk("/dev/shm"):
        yield from (name for name in names if "feedline-faults-" not in folder)
