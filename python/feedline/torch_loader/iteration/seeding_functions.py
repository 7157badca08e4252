# SPDX-License-Identifier: Apache-2.0
"""Recognises frameworks' `worker_init_fn`s that only seed generators and do not change the dataset, by identity."""

from __future__ import annotations

import functools
import sys
from typing import Any

# (module, function) -> arguments that the framework may bind, with allowed values; None allows any, such as ranks.
_SEEDING: dict[tuple[str, str], dict[str, tuple[Any, ...] | None]] = {
    # Trainer uses it for every training loader (transformers 5.23, get_train_dataloader)
    ("transformers.trainer_utils", "seed_worker"): {"num_workers": None, "rank": None},
    # Trainer and Fabric, after seed_everything(workers=True) (lightning 2.6, _auto_add_worker_init_fn)
    ("lightning.fabric.utilities.seed", "pl_worker_init_function"): {"rank": None},
    ("lightning_fabric.utilities.seed", "pl_worker_init_function"): {"rank": None},
    # create_loader (timm 1.0); if worker_seeding is a function, it is the user's
    ("timm.data.loader", "_worker_init"): {"worker_seeding": ("all", "part")},
}


def only_seeds(function: Any) -> bool:
    """Returns whether `function` is one of the functions in `_SEEDING`, which only seed generators."""
    bound: dict[str, Any] = {}
    if type(function) is functools.partial and not function.args:
        function, bound = function.func, function.keywords
    for (module, name), takes in _SEEDING.items():
        if function is not None and function is getattr(sys.modules.get(module), name, None):
            return all(key in takes and _fits(value, takes[key]) for key, value in bound.items())
    return False


def _fits(value: Any, allowed: tuple[Any, ...] | None) -> bool:
    return allowed is None or (type(value) is str and value in allowed)
