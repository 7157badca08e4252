# SPDX-License-Identifier: Apache-2.0
"""Base class for datasets that replace the user's dataset in a worker."""

from __future__ import annotations

from typing import Any


class DatasetWrapper:
    """A dataset that reads the same samples as `original`. Users still see `original`, as in
    `get_worker_info().dataset`.
    """

    def __init__(self, dataset: Any) -> None:
        self._inner = dataset

    def begin_epoch(self) -> None:
        """Called by each worker before it reads samples of an epoch. Data derived from `original` may be outdated."""

    @property
    def original(self) -> Any:
        return self._inner
