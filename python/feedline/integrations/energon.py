# SPDX-License-Identifier: Apache-2.0
"""Integration with Megatron-Energon: its loaders with Feedline's workers and transport, and with Energon's own
states.
"""

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
    """The loader that `get_savable_loader` returns. States have Energon's format, so Energon's own loader can resume
    from them.
    """

    def state_dict(self) -> dict[str, Any]:
        """Returns `save_state_rank()`, under the name that some frameworks use. The state can be saved with pickle, but
        not as JSON.
        """
        return {"energon": self.save_state_rank()}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Calls `restore_state_rank()`. Only valid before the first epoch. An empty state has no effect."""
        self.restore_state_rank(state_dict.get("energon"))

    def skip(self, batches: SupportsIndex) -> None:
        """Raises:
        ConfigError: always, because batches cannot be skipped in an Energon state.
        """
        raise ConfigError("skip: Energon's loaders have their own states, in which batches cannot be skipped")


class BasicDataLoader(_making.BasicDataLoader, DataLoader[Any]):  # type: ignore[misc]
    """The loader that `get_loader` returns."""


def install() -> Replaced:
    """Makes `get_savable_loader` and `get_loader` create Feedline's loaders from now on.

    ::

        feedline.integrations.energon.install()
        loader = megatron.energon.get_savable_loader(dataset)

    Samples, their order and the result of `save_state_rank()` are the same as with Energon's own loaders. A second call
    has no effect.
    """
    names = [
        (_energon, "SavableDataLoader", SavableDataLoader),
        (_making, "SavableDataLoader", SavableDataLoader),
        (_making, "BasicDataLoader", BasicDataLoader),
    ]
    return Replaced(names)
