# SPDX-License-Identifier: Apache-2.0
"""The state of an epoch that the parts of a `WorkerIterator` share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..options.settings import Settings
from ..state.loader_progress import LoaderProgress
from ..state.state import Cursor


@dataclass
class EpochContext:
    """The state of an epoch, shared by the parts of an iterator. The parts never reference the iterator, so that the
    iterator ends as soon as the loop drops it.

    Attributes:
        dataset: the dataset that workers read.
        resume: the loaded state from which the epoch resumes.
        saves_samplers: whether the samplers have states, which are saved with each index.
        shared_seed: torch's shared seed for DataPipes.
    """

    progress: LoaderProgress
    dataset: Any
    iterable: bool
    num_workers: int
    persistent: bool
    in_order: bool
    cursor: Cursor = field(init=False)
    resume: dict[str, Any] | None = None
    saves_samplers: bool = False
    shared_seed: Any = None

    @property
    def settings(self) -> Settings:
        settings = self.progress.settings
        assert settings is not None  # set before the iterator is created
        return settings
