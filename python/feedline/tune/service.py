# SPDX-License-Identifier: Apache-2.0
"""Runs in the copy of a script's process for ``feedline tune``, and measures its loader with the requested settings.

Requests and responses are JSON objects, one per line. A request has the key ``do``, with the value ``facts``, ``visit``
or ``border``. A response contains the result, or ``refused`` with the reason.
"""

from __future__ import annotations

import itertools
import json
import os
import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, TextIO

from feedline.machine import limits
from feedline.profiler import apply, isolated, process_copies
from feedline.tune.live import Live, Stable, Step
from feedline.tune.search import Refused
from feedline.tune.settings import DROP_IN, Setting


class Service:
    """Measures `loader`, which is a torch or a Feedline DataLoader, and other loaders over the same samples."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader
        self._stable = Stable(self._live)
        self._batch_bytes: int | None = None
        self._lost_gpu = process_copies.has_lost_its_device()

    def serve(self, lines: TextIO) -> None:
        """Serves requests until the client disconnects."""
        import torch

        torch.set_num_threads(1)  # a forked process has none of the threads that another number would wait for
        for line in lines:
            print(json.dumps(self.answer(json.loads(line))), file=lines, flush=True)
        self._stable.close()

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        setting = Setting(**request["setting"]) if "setting" in request else None
        try:
            if request["do"] == "facts":
                return self._facts(request)
            assert setting is not None
            if request["do"] == "visit":
                return self._visit(setting, request)
            return {"border_s": self.border_s(setting)}
        except Exception as error:  # the user's code, in settings that it was never run with
            if setting is not None:
                self._stable.drop(setting)
            why = str(error) if isinstance(error, Refused) else isolated.reason_of(error)
            return {"refused": why}

    def _facts(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Also limits the process to `cpus` of its CPUs."""
        from feedline.profiler.probe.loader_facts import torch_facts

        share, usable, allowed = limits.share_of_cpus(), limits.usable_cpus(), limits.allowed_cpus()
        if request.get("cpus"):
            os.sched_setaffinity(0, allowed[: request["cpus"]])
        loader, settings = self._loader, apply.settings_of(self._loader)
        try:
            batches = len(loader)
        except TypeError:
            batches = None
        return {
            "pid": os.getpid(),
            "cpus": share,
            "usable_cpus": usable,
            "memory": limits.share_of_memory_left(),
            "loader": torch_facts(loader),
            "setting": Setting(**settings, batch_size=batch_size(loader)).but().as_dict(),
            "epoch_batches": batches,
            "samples": len(loader.dataset) if hasattr(loader.dataset, "__len__") else None,
            "gpu": not self._lost_gpu and apply.has_gpu(),
            "lost_gpu": self._lost_gpu,
        }

    def _live(self, setting: Setting) -> Live:
        arguments = self._arguments(setting)
        arguments["persistent_workers"] = setting.num_workers > 0  # the time between epochs is measured separately
        make, ahead = _class_of(setting), setting.batches_ahead() - 1
        return Live(lambda: make(**arguments), lambda loader: ahead, setting.num_workers)

    def _arguments(self, setting: Setting) -> dict[str, Any]:
        if apply.repeats_samples(self._loader, setting.num_workers):
            raise Refused(apply.REPEATS)
        own = batch_size(self._loader)
        if setting.batch_size != own and own is None:
            raise Refused("the loader has no batch_size to change, because it has a batch sampler or no batches")
        arguments = apply.arguments_of(self._loader, asdict(setting))
        if self._lost_gpu:
            arguments["pin_memory"] = False
            if "device" in arguments:  # our drop-in's
                arguments["device"] = None
        return arguments

    def _visit(self, setting: Setting, request: Mapping[str, Any]) -> dict[str, Any]:
        step = None if request.get("step_s") is None else Step(request["step_s"], request["step_cpu_s"])
        live = self._stable.of(setting)
        visit = live.visit(request["seconds"], step, setting.batch_size or 1, request["patience_s"], request["alone"])
        return {"visit": asdict(visit), "batch_bytes": live.batch_bytes}

    def border_s(self, setting: Setting) -> float:
        """Measures the time between two short epochs, with one batch per worker, for torch's loader or Feedline's."""
        if getattr(self._loader, "batch_sampler", None) is None or getattr(self._loader, "_dataset_kind", 0) != 0:
            raise Refused("the epochs cannot be shortened to measure the time between them")
        arguments = self._arguments(setting)
        for name in ("batch_size", "sampler", "drop_last"):
            arguments.pop(name, None)
        batches = itertools.islice(iter(self._loader.batch_sampler), max(setting.num_workers, 1))
        live = _class_of(setting)(**{**arguments, "batch_sampler": [list(batch) for batch in batches]})
        for _ in live:
            ended = time.perf_counter()
        batch = next(again := iter(live))
        took = time.perf_counter() - ended
        del batch, again, live
        return took


def _class_of(setting: Setting) -> Any:
    if setting.loader == DROP_IN:
        from feedline.torch_loader.data_loader import DataLoader as DropIn

        return DropIn
    from torch.utils.data import DataLoader

    return DataLoader


def batch_size(loader: Any) -> int | None:
    """Returns the batch size if it can be changed, or None."""
    from torch.utils.data import BatchSampler

    if getattr(loader, "_dataset_kind", 0) != 0:
        return loader.batch_size if isinstance(loader.batch_size, int) else None
    sampler = loader.batch_sampler
    return int(sampler.batch_size) if type(sampler) is BatchSampler else None
