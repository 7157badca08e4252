# SPDX-License-Identifier: Apache-2.0
"""The base of datasets that replace the user's dataset in a worker."""

from __future__ import annotations

from typing import Any


class DatasetWrapper:
    """Reads the same samples as `original`. Users see `original`, as in `get_worker_info().dataset`."""

    def __init__(self, dataset: Any) -> None:
        self._inner = dataset

    @property
    def original(self) -> Any:
        return self._inner
