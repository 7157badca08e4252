# SPDX-License-Identifier: Apache-2.0
"""Moves batches to the device that the training loop uses."""

from __future__ import annotations

import collections.abc
import copy
from typing import Any

import torch

from ...errors import ConfigError


def device_of(device: Any) -> torch.device | None:
    """Converts ``device=`` to torch's type. An index always means a GPU, even if this build of torch does not support
    GPUs.

    Raises:
        ConfigError: `device` is not a valid device.
    """
    if device is None:
        return None
    is_index = isinstance(device, int) and not isinstance(device, bool)
    try:
        if isinstance(device, (str, torch.device)) or (is_index and device >= 0):
            return torch.device("cuda", device) if is_index else torch.device(device)
    except RuntimeError:
        pass
    raise ConfigError(
        f'device must be None, "cpu", "cuda", "cuda:1", an index from 0 or a torch.device, not {device!r}'
    )


def to_device(data: Any, device: torch.device) -> Any:
    """Moves all tensors in `data` to `device`. Containers keep their types, as with pin_memory."""
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
