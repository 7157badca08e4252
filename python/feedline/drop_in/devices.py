# SPDX-License-Identifier: Apache-2.0
"""From a batch in host memory to where the training loop wants it."""

from __future__ import annotations

import collections.abc
import copy
from typing import Any

import torch


def to_device(data: Any, device: torch.device) -> Any:
    """`data` with every tensor in it on `device`; containers keep their types, as with pin_memory."""
    if isinstance(data, torch.Tensor):
        return data.to(device, non_blocking=True)
    if isinstance(data, (str, bytes)):
        return data
    if isinstance(data, collections.abc.Mapping):
        moved = {key: to_device(value, device) for key, value in data.items()}
        try:
            if isinstance(data, collections.abc.MutableMapping):
                clone = copy.copy(data)
                clone.update(moved)
                return clone
            return type(data)(moved)  # type: ignore[call-arg]
        except TypeError:
            return moved
    if isinstance(data, tuple):
        parts = [to_device(part, device) for part in data]
        return type(data)(*parts) if hasattr(data, "_fields") else type(data)(parts)
    if isinstance(data, list):
        return [to_device(part, device) for part in data]
    return data
