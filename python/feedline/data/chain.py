# SPDX-License-Identifier: Apache-2.0
"""Operations without a dataset, for operations and views that take a list of them."""

from __future__ import annotations

from .. import _engine
from .augmentations import Augmentations
from .recorded_calls import Recorded, made_by


class Chain(Recorded, Augmentations):
    """A list of operations not bound to a dataset. Immutable: every operation returns a new chain.

    Has the image operations of :class:`Dataset`, with the same arguments, which are checked at the call. The order of
    operations is checked when the chain is used. ``fields=`` is not supported: only datasets have fields.
    """

    def __init__(self, engine: _engine.Dataset) -> None:
        self._engine = engine

    def _with(self, engine: _engine.Dataset) -> Chain:
        return Chain(engine)

    @property
    def operations(self) -> list[str]:
        """The operations so far, with all their arguments."""
        return list(self._engine.operations())

    def __len__(self) -> int:
        return len(self.operations)

    def __repr__(self) -> str:
        return "feedline.chain()" + "".join(f".{operation}" for operation in self.operations)


def chain() -> Chain:
    """Returns an empty chain: ``feedline.chain().random_resized_crop(96).random_horizontal_flip()``."""
    return made_by(Chain(_engine.GivenFiles("chain").dataset), "data.chain:chain")
