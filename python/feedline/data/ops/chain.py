# SPDX-License-Identifier: Apache-2.0
"""Chains: lists of operations without a dataset, for views and for operations that accept a chain."""

from __future__ import annotations

from ... import _engine
from ..recorded_calls import Recorded, made_by
from .augmentations import Augmentations


class Chain(Recorded, Augmentations):
    """A list of operations not bound to a dataset. Immutable: every operation returns a new chain.

    A chain has the image operations of :class:`Dataset`, and checks their arguments at the call. The order of
    operations is checked when the chain is used. ``fields=`` is not supported: only datasets have fields.
    """

    def __init__(self, engine: _engine.Dataset) -> None:
        self._engine = engine

    def _with(self, engine: _engine.Dataset) -> Chain:
        return Chain(engine)

    @property
    def operations(self) -> list[str]:
        """The chain's operations, with all their arguments."""
        return list(self._engine.operations())

    def __len__(self) -> int:
        return len(self.operations)

    def __repr__(self) -> str:
        return "feedline.chain()" + "".join(f".{operation}" for operation in self.operations)


def chain() -> Chain:
    """Returns an empty chain: ``feedline.chain().random_resized_crop(96).random_horizontal_flip()``."""
    return made_by(Chain(_engine.GivenFiles("chain").dataset), "data.ops.chain:chain")
