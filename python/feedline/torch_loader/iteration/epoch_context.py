# SPDX-License-Identifier: Apache-2.0
"""The epoch state shared by the parts of a `WorkerIterator`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..options.settings import Settings
from ..state.loader_progress import LoaderProgress
from ..state.state import Cursor


@dataclass
class EpochContext:
    """Shared by the parts. They never hold the iterator, which must end as soon as the loop drops it.

    Attributes:
        dataset: the dataset that workers read.
        resume: the loaded state that the epoch resumes from.
        saves_samplers: the samplers have states, which are saved with each index.
        shared_seed: torch's, for DataPipes.
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
