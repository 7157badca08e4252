# SPDX-License-Identifier: Apache-2.0
"""torch's DataLoader with the arguments of `feedline.DataLoader`."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, NoReturn, TypeVar

from torch.utils.data.dataloader import DataLoader as _TorchDataLoader

from . import advice

# The arguments that torch's DataLoader does not have. A test compares them with those of `feedline.DataLoader`.
_FEEDLINE_ARGUMENTS = frozenset(
    {
        "central_batching",
        "device",
        "error_budget",
        "lower",
        "memory_budget",
        "on_error",
        "pool",
        "prefetch_epochs",
        "seed",
        "settings",
        "snapshot_every_n_steps",
        "stall_timeout",
        "uneven",
        "worker_method",
    }
)
# Arguments that torch rejects without worker processes.
_OF_WORKERS = ("multiprocessing_context", "persistent_workers", "prefetch_factor", "timeout")
_NUM_WORKERS = 5  # its position

_T_co = TypeVar("_T_co", covariant=True)


class DataLoader(_TorchDataLoader[_T_co]):
    """torch's DataLoader. Accepts the arguments of `feedline.DataLoader`; a warning names those that have no effect."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        unused = sorted(_FEEDLINE_ARGUMENTS & kwargs.keys())
        for name in unused:
            del kwargs[name]
        if args[_NUM_WORKERS : _NUM_WORKERS + 1] == ("auto",):
            args = (*args[:_NUM_WORKERS], 0, *args[_NUM_WORKERS + 1 :])
            kwargs["num_workers"] = "auto"
        if kwargs.get("num_workers") == "auto":
            del kwargs["num_workers"]
            unused.append("num_workers='auto' (0 is used)")
            unused += [name for name in _OF_WORKERS if kwargs.pop(name, None)]
        effect = f"; these arguments have no effect: {', '.join(unused)}" if unused else ""
        warnings.warn(f"{advice('the native loader')}{effect}", UserWarning, stacklevel=2)
        super().__init__(*args, **kwargs)

    def explain(self) -> str:
        """Returns why no part of the loader runs natively."""
        return f"DataLoader over {type(self.dataset).__name__}: torch's loader. {advice('the native loader')}"

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch of the samplers and of the dataset that have a method ``set_epoch``."""
        for part in (*_samplers_in(self.sampler), *_samplers_in(self.batch_sampler), self.dataset):
            if hasattr(part, "set_epoch"):
                part.set_epoch(epoch)

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(
            advice(f"feedline.DataLoader.{name}")
            if name in ("broadcast", "errors", "load_state_dict", "metrics", "progress", "skip", "state_dict", "stats")
            else f"'DataLoader' object has no attribute {name!r}"
        )


def _samplers_in(sampler: Any) -> Iterator[Any]:
    """Yields a sampler and those that it wraps."""
    while sampler is not None:
        yield sampler
        sampler = getattr(sampler, "sampler", None)
