# SPDX-License-Identifier: Apache-2.0
"""One rank of the fault campaign (campaign.py): a training run without a model, made to be disturbed and killed.

`python campaign_rank.py SOURCE FOLDER RANK [--cache PATH] [--file-limit BYTES]` reads epoch after epoch, as far as
FOLDER/granted says ("7": up to epoch 7; "7 end": and then it ends), and logs every batch as a line of JSON in
FOLDER/RANK.log: its step, its epoch, digests of its samples, and in every `CHECKPOINT_STEPS`th line the loader's state.
Killed and started again, or after an error of the storage, it goes on at the last state.
"""

from __future__ import annotations

import argparse
import faulthandler
import hashlib
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import feedline

WORLD = 4
BATCH = 4  # of a rank
CHECKPOINT_STEPS = 4
_SEED = 29


def chain(source: Any, **options: Any) -> feedline.Dataset:
    """Photos with random operations, and bytes as stored."""
    data = feedline.open(source, fields=("jpg", "cls", "raw:bytes"), **options)
    return data.random_resized_crop(16, fields="jpg").random_horizontal_flip(fields="jpg")


def loader_of(data: feedline.Dataset, batch: int, rank: int, world: int) -> feedline.Loader:
    return data.loader(
        batch, shuffle=True, seed=_SEED, output="numpy", rank=rank, world_size=world, uneven="exact", num_workers=2
    )


def digests(loader: feedline.Loader, batch: Any) -> Iterator[tuple[int, str]]:
    """Returns for each sample of the batch its index, and a digest of all its data."""
    for row, sample in enumerate(loader.last_samples):
        sums = hashlib.blake2b(digest_size=10)
        for field in batch:
            sums.update(np.ascontiguousarray(field[row]).tobytes() if isinstance(field, np.ndarray) else field[row])
        yield sample, sums.hexdigest()


class Log:
    """One write() per line, after the last complete line: new lines must not be appended to an incomplete one."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        whole = path.read_bytes()
        whole = whole[: whole.rfind(b"\n") + 1]
        os.truncate(self._file, len(whole))
        lines = (json.loads(line) for line in reversed(whole.splitlines()) if b'"state"' in line)
        self._saved: dict[str, Any] = next(lines, {"step": 0, "state": None})

    @property
    def saved(self) -> tuple[int, dict[str, Any] | None]:
        """Returns the last step with a state, and the state."""
        return self._saved["step"], self._saved["state"]

    @property
    def unfinished(self) -> int | None:
        """Returns the epoch of the last step with a state, unless its end is logged."""
        return self._saved.get("epoch")

    def add(self, **line: Any) -> None:
        os.write(self._file, json.dumps({**line, "t": time.monotonic()}).encode() + b"\n")
        if "state" in line:
            self._saved = line


def is_granted(folder: Path, epoch: int) -> bool:
    """Waits for permission to start the epoch. Returns False after the last epoch."""
    while True:
        said = (folder / "granted").read_text().split()
        if said and epoch <= int(said[0]):
            return True
        if len(said) > 1:
            return False
        time.sleep(0.01)


def read(loader: feedline.Loader, log: Log, folder: Path) -> None:
    """Reads as many epochs as are granted."""
    step, state = log.saved
    if state is not None:
        loader.load_state_dict(state)
        if log.unfinished is not None and log.unfinished < loader.epoch:  # killed after the epoch's last step
            log.add(step=step, ended=log.unfinished, state=state, explained=loader.explain())
    while is_granted(folder, loader.epoch):
        log.add(step=step, began=loader.epoch)
        epoch = None
        for batch in loader:
            epoch = loader.epoch
            step += 1
            line = {"step": step, "epoch": epoch, "samples": list(digests(loader, batch))}
            if step % CHECKPOINT_STEPS == 0:
                line["state"] = loader.state_dict()
            log.add(**line)
        ended = loader.epoch if epoch is None else epoch
        log.add(step=step, ended=ended, state=loader.state_dict(), explained=loader.explain())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("folder", type=Path)
    parser.add_argument("rank", type=int)
    parser.add_argument("--cache")
    parser.add_argument("--file-limit", type=int)
    given = parser.parse_args()
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    if given.file_limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (given.file_limit, given.file_limit))
    options = {"cache": given.cache, "cache_limit": "1 GiB"} if given.cache else {}
    log = Log(given.folder / f"{given.rank}.log")
    while True:
        try:
            with loader_of(chain(given.source, **options), BATCH, given.rank, WORLD) as loader:
                read(loader, log, given.folder)
            return 0
        except feedline.Error as error:  # like a user who starts the run again, from its last state
            log.add(error=type(error).__name__, said=str(error))


if __name__ == "__main__":
    sys.exit(main())
