# SPDX-License-Identifier: Apache-2.0
"""Megatron-Energon: its loaders with Feedline's workers and transport, and with Energon's own states."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, SupportsIndex

from ..errors import ConfigError
from ..torch_loader.data_loader import DataLoader
from .replaced import Replaced

_energon: Any = importlib.import_module("megatron.energon")
_making: Any = importlib.import_module("megatron.energon.loader")


class SavableDataLoader(_making.SavableDataLoader, DataLoader[Any]):  # type: ignore[misc]
    """The result of `get_savable_loader`. Its states are Energon's, and Energon's own loader can resume from them."""

    def state_dict(self) -> dict[str, Any]:
        """`save_state_rank()` under the name that some frameworks use; the state needs pickle, not JSON."""
        return {"energon": self.save_state_rank()}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """`restore_state_rank()`, before the first epoch. An empty state changes nothing."""
        self.restore_state_rank(state_dict.get("energon"))

    def skip(self, batches: SupportsIndex) -> None:
        """Raises:
        ConfigError: always, since an Energon state is not a number of batches.
        """
        raise ConfigError("skip: Energon's loaders have their own states, in which batches cannot be skipped")


class BasicDataLoader(_making.BasicDataLoader, DataLoader[Any]):  # type: ignore[misc]
    """The result of `get_loader`."""


def install() -> Replaced:
    """Makes `get_savable_loader` and `get_loader` create Feedline's loaders from now on.

    ::

        feedline.integrations.energon.install()
        loader = megatron.energon.get_savable_loader(dataset)

    Samples, their order and the result of `save_state_rank()` are those of Energon's own loaders. A second call has no
    effect.
    """
    names = [
        (_energon, "SavableDataLoader", SavableDataLoader),
        (_making, "SavableDataLoader", SavableDataLoader),
        (_making, "BasicDataLoader", BasicDataLoader),
    ]
    return Replaced(names)
