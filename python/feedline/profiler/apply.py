# SPDX-License-Identifier: Apache-2.0
"""Changes the settings of a script's DataLoader while the script runs, without changing its code.

The profiler calls :func:`request` before it starts the command and :func:`outcome` after the command ends. In every
process of the command, the probe calls :func:`install`; a matching loader is changed when its first loop begins. The
loader's samples, collate function, batch size and order do not change, except that torch draws one random number fewer
per epoch with persistent workers.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from feedline.profiler.variables import APPLY

ARGUMENTS = ("num_workers", "prefetch_factor", "persistent_workers", "pin_memory")
LOADERS = ("torch", "feedline")
REPEATS = "the dataset is iterable, so a different number of workers may duplicate or drop samples"
_REQUEST = "apply.json"
# Facts that identify a loader in another run of the same script, even if its settings change.
_IDENTITY = ("class", "dataset", "collate", "batch_size", "iterable")
# Arguments that only our drop-in has.
_OURS = ("seed", "device", "on_error", "error_budget", "memory_budget", "lower", "worker_method", "prefetch_epochs")
_DONE, _REPLACEMENT = "_feedline_applied", "_feedline_replacement"


# -- in the profiler


def request(folder: Path, settings: Mapping[str, Any], loader: Mapping[str, Any] | None = None) -> dict[str, str]:
    """Returns environment variables that make the command's loader use `settings`, in addition to the probe's
    variables.

    Args:
        folder: the run's own folder, writable by the command's processes.
        settings: any of ``num_workers``, ``prefetch_factor``, ``persistent_workers``, ``pin_memory``, and ``loader``,
            which is ``"torch"``, or ``"feedline"`` to replace the loader with Feedline's DataLoader. Other names raise
            ValueError, because no other setting can be changed in a running script.
        loader: facts that identify the loader to change, as in ``Summary.loader``; None for every torch loader.
    """
    strange = set(settings) - {*ARGUMENTS, "loader"}
    if strange:
        raise ValueError(f"a running script cannot change {', '.join(sorted(strange))}")
    meant = None if loader is None else {name: loader.get(name) for name in _IDENTITY if name in loader}
    path = folder / _REQUEST
    path.write_text(json.dumps({"settings": dict(settings), "loader": meant}))
    return {APPLY: str(path)}


def outcome(folder: Path) -> list[dict[str, Any]]:
    """Returns the result for each loader that was or should have been changed: `before`, `after`, and `refused`.

    `refused` maps the name of each setting that was not changed to the reason. The list is empty if no such loader was
    iterated.
    """
    found = []
    for path in sorted(folder.glob("*.applied")):
        with contextlib.suppress(OSError, ValueError):
            found.append(json.loads(path.read_text()))
    return [one for one in found if isinstance(one, dict)]


# -- in the script's processes


def install(module: Any) -> None:
    """Called with a module that has just defined ``DataLoader``; does nothing if no change is requested."""
    path = os.environ.get(APPLY)
    if not path:
        return
    wanted = json.loads(Path(path).read_text())
    folder, original = Path(path).parent, module.DataLoader.__iter__

    @functools.wraps(original)
    def __iter__(self: Any) -> Any:
        if _DONE not in self.__dict__ and not _in_worker():
            _apply(self, wanted, folder)
        replacement = self.__dict__.get(_REPLACEMENT)
        return original(self) if replacement is None else iter(replacement)

    module.DataLoader.__iter__ = __iter__


def _apply(loader: Any, wanted: Mapping[str, Any], folder: Path) -> None:
    """Never raises: a loader that cannot be changed is left unchanged, and the reason is recorded."""
    self_described: dict[str, Any] = {}
    try:
        loader.__dict__[_DONE] = True
        from feedline.profiler.probe.loader_facts import torch_facts

        facts, meant = torch_facts(loader), wanted["loader"]
        if meant is not None and any(facts.get(name) != value for name, value in meant.items()):
            return
        self_described["before"] = settings_of(loader)
        changed, self_described["refused"] = change(loader, wanted["settings"])
        if changed is not loader:
            changed.__dict__[_DONE] = True
            loader.__dict__[_REPLACEMENT] = changed
        self_described["after"] = settings_of(changed)
    except Exception as error:
        self_described.setdefault("refused", {})["loader"] = f"the loader could not be changed: {error!r}"
    with contextlib.suppress(OSError):
        name = f"{os.getpid()}.{id(loader)}.applied"
        (folder / f".{name}").write_text(json.dumps(self_described))
        (folder / f".{name}").replace(folder / name)


def change(loader: Any, settings: Mapping[str, Any]) -> tuple[Any, dict[str, str]]:
    """Returns (`loader` changed in place, or Feedline's replacement; refused settings with reasons).

    Call this function only before the loader's first ``iter()``.
    """
    wanted, refused = {**settings_of(loader), **settings}, {}
    if repeats_samples(loader, wanted["num_workers"]):
        refused["num_workers"] = REPEATS
        wanted["num_workers"] = loader.num_workers
    if wanted["pin_memory"] and not loader.pin_memory and not has_gpu():
        refused["pin_memory"] = "there is no GPU to which batches could be copied"
        wanted["pin_memory"] = False
    normal = normalised(wanted)
    if normal["loader"] == "feedline" and not _is_ours(loader):
        try:
            return feedline_loader(loader, normal), refused
        except Exception as error:
            refused["loader"] = f"Feedline's loader does not support this loader: {error}"
            normal["loader"] = "torch"
    if normal["num_workers"] == 0:
        loader.timeout = 0
    for name in ARGUMENTS:
        object.__setattr__(loader, name, normal[name])  # torch's own check forbids changing some of them after __init__
    return loader, refused


def normalised(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Adds torch's constraints: without workers, batches are not prefetched and no workers persist."""
    workers = settings["num_workers"]
    return {
        **settings,
        "prefetch_factor": (settings.get("prefetch_factor") or 2) if workers else None,
        "persistent_workers": bool(settings.get("persistent_workers")) and workers > 0,
    }


def feedline_loader(loader: Any, settings: Mapping[str, Any]) -> Any:
    """Returns Feedline's DataLoader with all of `loader`'s arguments and `settings`."""
    from feedline.torch_loader.data_loader import DataLoader

    return DataLoader(**arguments_of(loader, settings))


def arguments_of(loader: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments for a loader that reads the same samples in the same kind of order.

    `settings`: normalised settings, including ``batch_size`` if the batch size should also change.
    """
    from torch.utils.data import BatchSampler

    workers, batch_size = settings["num_workers"], settings.get("batch_size")
    arguments: dict[str, Any] = {
        "num_workers": workers,
        "prefetch_factor": settings["prefetch_factor"],
        "persistent_workers": settings["persistent_workers"],
        "pin_memory": bool(settings.get("pin_memory")),
        "collate_fn": loader.collate_fn,
        "worker_init_fn": loader.worker_init_fn,
        "generator": loader.generator,
    }
    if workers > 0:
        arguments["multiprocessing_context"] = loader.multiprocessing_context
        arguments["timeout"] = loader.timeout
    if not getattr(loader, "in_order", True):
        arguments["in_order"] = False
    if getattr(loader, "_dataset_kind", 0) != 0:
        arguments |= {"batch_size": batch_size or loader.batch_size, "drop_last": loader.drop_last}
    elif type(loader.batch_sampler) is BatchSampler:  # torch's own wrapper of a sampler: any batch size works
        size = batch_size or loader.batch_sampler.batch_size
        arguments |= {"batch_size": size, "drop_last": loader.batch_sampler.drop_last}
        arguments["sampler"] = loader.batch_sampler.sampler
    elif loader.batch_sampler is not None:
        arguments["batch_sampler"] = loader.batch_sampler
    else:
        arguments |= {"batch_size": None, "sampler": loader.sampler}
    if settings.get("loader") == "feedline" and _is_ours(loader):
        arguments |= {name: getattr(loader, name) for name in _OURS}
    return {"dataset": loader.dataset, **arguments}


def settings_of(loader: Any) -> dict[str, Any]:
    found = {name: getattr(loader, name, None) for name in ARGUMENTS}
    return {**found, "loader": "feedline" if _is_ours(loader) else "torch"}


def _is_ours(loader: Any) -> bool:
    return any(base.__module__ == "feedline.torch_loader.data_loader" for base in type(loader).__mro__)


def _in_worker() -> bool:
    from torch.utils.data import get_worker_info

    return get_worker_info() is not None


def has_gpu() -> bool:
    """Whether a GPU or another device for which torch page-locks memory is available."""
    import torch

    return bool(torch.cuda.is_available() or (hasattr(torch, "accelerator") and torch.accelerator.is_available()))


def repeats_samples(loader: Any, workers: int) -> bool:
    """Whether this number of workers may change the samples: an iterable dataset does not always divide its samples
    among workers.
    """
    return getattr(loader, "_dataset_kind", 0) != 0 and max(workers, 1) != max(loader.num_workers, 1)


def refused_by_all(outcomes: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Returns the refused settings of :func:`outcome`, each with the first reason."""
    refused: dict[str, str] = {}
    for one in outcomes:
        for name, why in one.get("refused", {}).items():
            refused.setdefault(name, why)
    return refused
