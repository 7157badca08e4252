# SPDX-License-Identifier: Apache-2.0
"""Detects methods of torch's iterators that other programs have replaced and that Feedline's iterators would not call.

SpeechBrain replaces ``_BaseDataLoaderIter.__init__`` so that an epoch resumed from a checkpoint skips the batches that
were already processed; this module has an adapter for this replacement. InfoBatch and tracers replace ``__next__``,
which Feedline's iterators inherit; other programs replace ``DataLoader.__iter__``. If Feedline's iterators would not
call a replacement, the loader uses torch's iterators.
"""

from __future__ import annotations

import logging
import types
from typing import Any

from torch.utils.data import _utils as torch_utils
from torch.utils.data import dataloader as torch_dataloader

_log = logging.getLogger("feedline")
_SPEECHBRAIN = "_speechbrain_recovery_skip_to"
_BASE = torch_dataloader._BaseDataLoaderIter
# The methods of each class that batches pass through, and whether Feedline's iterators (with and without workers) call
# them.
_METHODS: tuple[tuple[type, str, bool], ...] = (
    (torch_dataloader.DataLoader, "__iter__", False),
    (torch_dataloader.DataLoader, "_get_iterator", False),
    (_BASE, "__init__", False),
    (_BASE, "__next__", True),
    (_BASE, "_reset", False),
    (_BASE, "_next_index", False),
    (torch_dataloader._SingleProcessDataLoaderIter, "__init__", False),
    (torch_dataloader._SingleProcessDataLoaderIter, "_next_data", False),
    (torch_dataloader._MultiProcessingDataLoaderIter, "__init__", False),
    (torch_dataloader._MultiProcessingDataLoaderIter, "_reset", False),
    (torch_dataloader._MultiProcessingDataLoaderIter, "_next_data", False),
    (torch_dataloader._MultiProcessingDataLoaderIter, "_process_data", False),
    (torch_utils.fetch._MapDatasetFetcher, "fetch", False),
    (torch_utils.fetch._IterableDatasetFetcher, "fetch", False),
)
_OURS = ("torch", "feedline")


def replaced(is_native: bool) -> list[str]:
    """Returns replacements that Feedline's iterators would not call, such as ``["_BaseDataLoaderIter.__init__ (by
    infobatch)"]``.

    Args:
        is_native: whether the whole loader runs natively.
    """
    found = []
    for owner, name, is_inherited in _METHODS:
        by = _replaced_by(vars(owner).get(name))
        if by and not (is_inherited and not is_native):
            found.append(f"{owner.__name__}.{name} (by {by})")
    return found


def replaces_iter() -> bool:
    return bool(_replaced_by(vars(torch_dataloader.DataLoader).get("__iter__")))


def _replaced_by(function: Any) -> str:
    """Returns the module of a function; empty if the function is from torch, Feedline or SpeechBrain."""
    while isinstance(function, (staticmethod, classmethod)):
        function = function.__func__
    if function is None:
        return ""
    module = function.__globals__["__name__"] if isinstance(function, types.FunctionType) else type(function).__module__
    package = module.partition(".")[0]
    return "" if package in _OURS or module == "speechbrain.dataio.dataloader" else str(module)


def warn_of(names: list[str]) -> None:
    _log.warning(
        "DataLoader: another program replaced %s, so this loader uses torch's iterators: nothing runs natively, and "
        "Feedline's own arguments, such as seed and on_error, have no effect",
        ", ".join(names),
    )


def take_speechbrain_position(loader: Any) -> int:
    """Returns the number of batches to skip according to SpeechBrain's checkpoint; 0 from the second call on."""
    batches = getattr(loader, _SPEECHBRAIN, None)
    if batches is None:
        return 0
    setattr(loader, _SPEECHBRAIN, None)
    return int(batches)
