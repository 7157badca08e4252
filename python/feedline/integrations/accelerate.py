# SPDX-License-Identifier: Apache-2.0
"""Makes Accelerate's `prepare` create Feedline's loaders, with Feedline's own arguments from the loader that was
passed.
"""

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
    """A loader that Accelerate creates, which copies Feedline's own arguments from the loader that it replaces."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        given = _given.get()
        added = {name: getattr(given, name) for name in _ADDED} if isinstance(given, DataLoader) else {}
        super().__init__(*arguments, **{**added, **named})


def install() -> Replaced:
    """Makes `Accelerator.prepare` and `skip_first_batches` create Feedline's loaders from now on.

    ::

        feedline.integrations.accelerate.install()
        loader = accelerator.prepare(feedline.DataLoader(dataset, batch_size=64, seed=0))

    torch's loaders also become Feedline's when they are prepared. A second call has no effect.

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
    """Wraps `make(loader, ...)` to record the loader, so that :class:`PreparedDataLoader` can copy its arguments."""
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
