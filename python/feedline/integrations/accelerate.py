# SPDX-License-Identifier: Apache-2.0
"""Accelerate: loaders that `prepare` makes anew are Feedline's, with the arguments that Feedline adds."""

from __future__ import annotations

import contextvars
import functools
import importlib
import inspect
from typing import Any

from torch.utils.data import DataLoader as TorchLoader

from ..torch_loader.data_loader import DataLoader
from .replaced import Replaced

_ADDED = tuple(
    name
    for name in inspect.signature(DataLoader.__init__).parameters
    if name != "self" and name not in inspect.signature(TorchLoader.__init__).parameters
)
_given: contextvars.ContextVar[Any] = contextvars.ContextVar("the loader that is prepared", default=None)


class PreparedDataLoader(DataLoader[Any]):
    """Made by Accelerate with torch's arguments alone; those of the loader that it stands for are added."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        given = _given.get()
        added = {name: getattr(given, name) for name in _ADDED} if isinstance(given, DataLoader) else {}
        super().__init__(*arguments, **{**added, **named})


def install() -> Replaced:
    """Loaders that `Accelerator.prepare` and `skip_first_batches` make are Feedline's from now on.

    ::

        feedline.integrations.accelerate.install()
        loader = accelerator.prepare(feedline.DataLoader(dataset, batch_size=64, seed=0))

    Loaders of torch's that are prepared become Feedline's as well. A second call changes nothing more.

    Raises:
        ImportError: Accelerate is not installed.
    """
    remaking, using = map(importlib.import_module, ("accelerate.data_loader", "accelerate.accelerator"))
    names: list[tuple[Any, str, Any]] = [(remaking, "DataLoader", PreparedDataLoader)]
    for name in ("prepare_data_loader", "skip_first_batches"):
        noting = _noting(getattr(remaking, name))
        modules = (importlib.import_module("accelerate"), using, remaking)
        names += [(module, name, noting) for module in modules if hasattr(module, name)]
    return Replaced(names)


def _noting(make: Any) -> Any:
    """`make(loader, ...)` as it is, while :class:`PreparedDataLoader` knows the loader."""
    if hasattr(make, "_feedline_notes"):
        return make

    @functools.wraps(make)
    def noting(dataloader: Any, *arguments: Any, **named: Any) -> Any:
        token = _given.set(getattr(dataloader, "base_dataloader", dataloader))
        try:
            return make(dataloader, *arguments, **named)
        finally:
            _given.reset(token)

    noting._feedline_notes = True  # type: ignore[attr-defined]
    return noting
