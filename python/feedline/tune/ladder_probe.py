# SPDX-License-Identifier: Apache-2.0
"""Runs in the script's process under ``feedline tune --ladder``: changes the first loader's settings before its loop
begins, times about a hundred of its batches, and ends the script.

The process is new for each measurement, so that the script may use the GPU. The request is a JSON file in the session's
folder; the result is another JSON file. Workers inherit the hooks, which do nothing there.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from feedline.profiler import apply, isolated, process_copies
from feedline.profiler.probe.recorder import Recorder
from feedline.tune.live import bytes_of
from feedline.tune.search import Refused
from feedline.tune.service import Service, batch_size
from feedline.tune.settings import Setting

REQUEST, RESULT, MEASURING, CLAIM = "ladder.request", "ladder.result", "ladder.measuring", "ladder.claim"
_WARM = 3  # batches that are not counted, in addition to those that fill the queue
_MEASUREMENT = "_feedline_measurement"  # attribute of the loader that is measured
_SETTINGS = (*apply.ARGUMENTS, "loader")

now = time.perf_counter


def install(module: Any, recorder: Recorder) -> None:
    """Called with each newly executed module that has a loader."""
    if hasattr(module, "DataLoader"):
        module.DataLoader.__iter__ = _around_iter(module.DataLoader.__iter__, recorder)


def _around_iter(original: Any, recorder: Recorder) -> Any:
    @functools.wraps(original)
    def __iter__(self: Any) -> Any:
        if recorder.in_worker or recorder.silent:
            return original(self)
        measurement = self.__dict__.get(_MEASUREMENT)
        if measurement is None and process_copies.claim(recorder.session / CLAIM):
            measurement = self.__dict__[_MEASUREMENT] = Measurement(self, recorder.session)
        return original(self) if measurement is None else measurement.iterate(original)

    return __iter__


class Measurement:
    """The measurement of one loader, over one or more epochs."""

    def __init__(self, loader: Any, session: Path) -> None:
        self._session = session
        self._request = json.loads((session / REQUEST).read_text())
        self._setting = self._request["setting"]
        self._copies = Copies(bool((self._setting or {}).get("non_blocking")))
        self._facts = {"setting": {**apply.settings_of(loader), "batch_size": batch_size(loader)}}
        self._own = loader
        try:
            self._loader, self._refused = changed(loader, self._setting)
        except Exception as error:  # raised by a loader that does not accept the setting
            self._loader, self._refused = loader, {"loader": isolated.reason_of(error)}
        self._skipped = self._loader.num_workers * ((self._loader.prefetch_factor or 0) + 1) + _WARM
        self._waits: list[float] = []
        self._cycles: list[float] = []
        self._batch_bytes: int | None = None
        self._began: float | None = None

    def iterate(self, original: Any) -> Iterator[Any]:
        """Iterates over the changed loader, and ends the script after enough batches."""
        if self._refused:
            self._end()
        if self._request["border"]:
            border_s = None
            try:
                border_s = Service(self._own).border_s(Setting(**self._setting))
            except Exception as error:
                why = str(error) if isinstance(error, Refused) else isolated.reason_of(error)
                self._refused = {"persistent_workers": why}
            self._end(border_s)
        return Timed(self, original(self._loader) if self._loader is self._own else iter(self._loader))

    def note(self, batch: Any, wait: float, cycle: float | None) -> None:
        """`cycle`: seconds since the previous batch of this epoch; None for its first batch, which is not counted."""
        if self._batch_bytes is None:
            self._batch_bytes = bytes_of(batch)
        if self._skipped > 0:
            self._skipped -= 1
            return
        if self._began is None:
            self._copies.is_counting = True
            _synchronize(self._copies.device)
            (self._session / MEASURING).touch()
            self._began = now()
            return
        if cycle is not None:
            self._waits.append(wait)
            self._cycles.append(cycle)
        least, took = 2 * max(self._loader.num_workers, 1), now() - self._began
        is_enough = len(self._cycles) >= self._request["batches"] and took >= self._request["seconds"]
        if is_enough or (took >= self._request["most_s"] and len(self._cycles) >= least):
            self._end()

    def _end(self, border_s: float | None = None) -> None:
        _synchronize(self._copies.device)
        (self._session / MEASURING).unlink(missing_ok=True)
        self._copies.is_counting = False
        result = {
            **self._facts,
            "refused": self._refused,
            "border_s": border_s,
            "waits_s": self._waits,
            "cycles_s": self._cycles,
            "batch_bytes": self._batch_bytes,
            "copies": self._copies.as_dict(),
            "gpu_memory": _memory(self._copies.device),
            **({} if self._setting else loader_facts(self._loader)),
        }
        unfinished = self._session / f"{RESULT}.part"
        unfinished.write_text(json.dumps(result))
        unfinished.replace(self._session / RESULT)
        raise SystemExit(0)


class Timed:
    """A loader's iterator that measures each batch."""

    def __init__(self, measurement: Measurement, inner: Any) -> None:
        self._measurement, self._inner = measurement, inner
        self._last: float | None = None

    def __iter__(self) -> Timed:
        return self

    def __len__(self) -> int:
        return len(self._inner)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __next__(self) -> Any:
        before = now()
        batch = next(self._inner)
        after = now()
        cycle = None if self._last is None else after - self._last
        self._last = after
        self._measurement.note(batch, after - before, cycle)
        return batch


class Copies:
    """Counts and times the copies of the main process's tensors to a device; makes those of page-locked tensors
    non-blocking if `ask` is set.
    """

    def __init__(self, ask: bool) -> None:
        import torch

        self._torch, self._ask, self._owner = torch, ask, os.getpid()
        self.device: str | None = None  # type of the device, such as "cuda"
        self._counts = {"calls": 0, "blocking": 0, "pinned": 0}
        self._seconds = 0.0
        self.is_counting = False
        for name in ("to", "cuda"):
            setattr(torch.Tensor, name, self._around(getattr(torch.Tensor, name)))

    def as_dict(self) -> dict[str, Any]:
        return {**self._counts, "seconds": self._seconds, "device": self.device}

    def _around(self, original: Any) -> Any:
        @functools.wraps(original)
        def copy(tensor: Any, *given: Any, **named: Any) -> Any:
            if os.getpid() != self._owner or tensor.device.type != "cpu":
                return original(tensor, *given, **named)
            is_pinned = tensor.is_pinned()
            if self._ask and is_pinned and not any(isinstance(one, bool) for one in given):
                named["non_blocking"] = True
            began = now()
            result = original(tensor, *given, **named)
            if result.device.type != "cpu":
                self.device = result.device.type
                if self.is_counting:
                    asked = named.get("non_blocking") is True or any(one is True for one in given)
                    self._counts["calls"] += 1
                    self._counts["pinned"] += is_pinned
                    self._counts["blocking"] += not (asked and is_pinned)
                    self._seconds += now() - began
            return result

        return copy


def changed(loader: Any, setting: dict[str, Any] | None) -> tuple[Any, dict[str, str]]:
    """Returns the loader with `setting`, and the settings that could not be changed, with reasons."""
    if setting is None:
        return loader, {}
    wanted = {name: setting[name] for name in _SETTINGS}
    size = setting["batch_size"]
    if size is None or size == batch_size(loader):
        return apply.change(loader, wanted)
    if batch_size(loader) is None:
        return loader, {"batch_size": "the loader has a batch sampler or no batches"}
    if apply.repeats_samples(loader, wanted["num_workers"]):
        return loader, {"num_workers": apply.REPEATS}
    arguments = apply.arguments_of(loader, {**apply.normalised(wanted), "batch_size": size})
    if wanted["loader"] == "feedline":
        return apply.feedline_loader(loader, {**apply.normalised(wanted), "batch_size": size}), {}
    from torch.utils.data import DataLoader

    return DataLoader(**arguments), {}


def loader_facts(loader: Any) -> dict[str, Any]:
    """Returns facts that do not depend on the settings. The sizes in bytes are of the first batch and the dataset."""
    from feedline.machine import limits
    from feedline.profiler.dataset_copies import pickled_size
    from feedline.profiler.probe.loader_facts import torch_facts

    batches = samples = None
    with contextlib.suppress(TypeError):
        batches = len(loader)
    with contextlib.suppress(TypeError):
        samples = len(loader.dataset)
    return {
        "cpus": limits.share_of_cpus(),
        "usable_cpus": limits.usable_cpus(),
        "cores": limits.usable_cores(),
        "ranks": limits.sharing_ranks(),
        "memory": limits.share_of_memory_left(),
        "loader": torch_facts(loader),
        "epoch_batches": batches,
        "samples": samples,
        "root": root_of(loader.dataset),
        "dataset_bytes": pickled_size(loader.dataset),
    }


def root_of(dataset: Any) -> str | None:
    """Returns a path in the dataset's usual attributes, or None."""
    for _ in range(100):  # nested subsets
        if not (hasattr(dataset, "dataset") and hasattr(dataset, "indices")):
            break
        dataset = dataset.dataset
    for name in ("root", "root_dir", "data_dir", "path", "folder"):
        value = getattr(dataset, name, None)
        if isinstance(value, str | os.PathLike) and os.path.exists(value):
            return os.fspath(value) if isinstance(os.fspath(value), str) else None
    return None


def _synchronize(device: str | None) -> None:
    """Waits for the device, so that its queued work is counted with the batches that caused it."""
    module = getattr(sys.modules["torch"], device, None) if device else None
    with contextlib.suppress(Exception):
        if module is not None:
            module.synchronize()


def _memory(device: str | None) -> dict[str, int] | None:
    """Returns the device's memory in bytes: total, this process's peak, and the use of other processes; None if
    unknown.
    """
    module = getattr(sys.modules["torch"], device, None) if device else None
    with contextlib.suppress(Exception):
        if module is not None:
            free, total = module.mem_get_info()
            own = int(module.memory_reserved())
            peak = int(module.max_memory_reserved())
            return {"total": int(total), "peak": peak, "others": max(int(total) - int(free) - own, 0)}
    return None
