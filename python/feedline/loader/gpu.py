# SPDX-License-Identifier: Apache-2.0
"""Resolves a loader's ``device`` to a GPU and checks that the loader's output type supports the GPU."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from ..errors import ConfigError

if TYPE_CHECKING:
    from .loader import Output


def index_of(where: str, device: Any, output: Output) -> int | None:
    """Returns the GPU's index in torch's and CUDA's order, or None if batches stay in host memory. Does not initialise
    CUDA.

    Args:
        where: the caller's name, for messages.
        device: None, ``"cpu"``, ``"cuda"``, ``"cuda:1"``, an index, or a ``torch.device``.

    Raises:
        ConfigError: `device` is not a valid device, has an unsupported type, or is not supported for `output`.
    """
    if device is None:
        return None
    kind, index = _parsed(where, device)
    if kind == "cpu":
        return None
    if kind != "cuda":
        raise ConfigError(
            f"{where}: device must be the CPU or a CUDA device, not {kind!r}; remove device= and move batches "
            f"with .to({kind!r})"
        )
    _check_output(where, output.value)
    return _current(output.value) if index is None else index


def _parsed(where: str, device: Any) -> tuple[str, int | None]:
    if isinstance(device, int) and not isinstance(device, bool):
        if device < 0:
            raise ConfigError(f'{where}: device must be None, "cpu", "cuda", "cuda:1" or an index from 0, not {device}')
        return "cuda", device
    kind, found, number = str(device).partition(":")
    is_device = isinstance(device, str) or (hasattr(device, "type") and hasattr(device, "index"))
    if not is_device or not kind.isidentifier() or (found and not number.isdecimal()):
        raise ConfigError(
            f'{where}: device must be None, "cpu", "cuda", "cuda:1", an index or a torch.device, not {device!r}'
        )
    return kind, int(number) if found else None


def _check_output(where: str, output: str) -> None:
    if output == "numpy":
        raise ConfigError(
            f'{where}: NumPy arrays are in host memory; remove device=, or pass output="torch" or output="dlpack"'
        )
    if output == "dlpack":
        return
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        return  # the loader reports that
    _check_torch(where, torch, ', remove device=, or pass output="dlpack"')


def _check_torch(where: str, torch: Any, instead: str) -> None:
    if torch.version.cuda is None:
        raise ConfigError(
            f"{where}: this torch ({torch.__version__}) is built without CUDA; install a build with CUDA "
            f"(https://pytorch.org/get-started){instead}"
        )
    if torch.cuda._is_in_bad_fork():
        raise ConfigError(
            f"{where}: CUDA was initialised before this process was forked, and cannot be used in a child: start "
            "processes "
            'with "spawn", or remove device= here'
        )


def check_usable(where: str, torch: Any, device: Any) -> None:
    """Checks that torch can copy batches to the device. For a GPU, the check only counts devices and does not create a
    CUDA context.

    Raises:
        ConfigError: torch cannot use the device; the message states the next step.
    """
    if device.type != "cuda":
        return
    _check_torch(where, torch, ", or remove device=")
    if not torch.cuda.is_available():
        raise ConfigError(
            f"{where}: torch finds no GPU: the NVIDIA driver is missing, the container has no GPUs (docker run "
            "--gpus all), or CUDA_VISIBLE_DEVICES hides them; or remove device=, so that batches stay in host memory"
        )
    count = torch.cuda.device_count()
    if device.index is not None and device.index >= count:
        there = "the only GPU is cuda:0" if count == 1 else f"the GPUs are cuda:0 to cuda:{count - 1}"
        raise ConfigError(
            f"{where}: cuda:{device.index} does not exist: {there}, numbered within CUDA_VISIBLE_DEVICES if it is set"
        )


def _current(output: str) -> int:
    """Returns torch's current CUDA device, or 0 if torch does not use one."""
    torch = sys.modules.get("torch")
    if output == "dlpack" and (torch is None or not torch.cuda.is_initialized()):
        return 0
    if torch is None or not torch.cuda.is_available():  # the engine reports the error and the remedy
        return 0
    return int(torch.cuda.current_device())
