# SPDX-License-Identifier: Apache-2.0
"""Which GPU a loader's ``device`` means, and whether what its batches come as can be there."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from ..errors import ConfigError

if TYPE_CHECKING:
    from .loader import Output


def index_of(where: str, device: Any, output: Output) -> int | None:
    """The index of the GPU, as torch and CUDA count them; None: batches stay in host memory. Starts nothing of CUDA.

    Args:
        where: who asks, for messages.
        device: None, ``"cpu"``, ``"cuda"``, ``"cuda:1"``, an index, or a ``torch.device``.

    Raises:
        ConfigError: not a device, one of another kind, or one that `output` cannot come from.
    """
    if device is None:
        return None
    kind, index = _parsed(where, device)
    if kind == "cpu":
        return None
    if kind != "cuda":
        raise ConfigError(
            f"{where}: batches go to the CPU or to a CUDA device, not to {kind!r}; leave device= out and move them "
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
            f'{where}: NumPy arrays are in host memory; leave device= out, or give output="torch" or output="dlpack"'
        )
    if output == "dlpack":
        return
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        return  # which the loader says
    _check_torch(where, torch, ', leave device= out, or give output="dlpack"')


def _check_torch(where: str, torch: Any, instead: str) -> None:
    if torch.version.cuda is None:
        raise ConfigError(
            f"{where}: this torch ({torch.__version__}) is built without CUDA; install one that is "
            f"(https://pytorch.org/get-started){instead}"
        )
    if torch.cuda._is_in_bad_fork():
        raise ConfigError(
            f"{where}: CUDA was begun before this process was forked, and does not go on in a child: start processes "
            'with "spawn", or leave device= out here'
        )


def check_usable(where: str, torch: Any, device: Any) -> None:
    """Whether torch can copy there. Of a GPU, torch looks for those that there are, and begins no context.

    Raises:
        ConfigError: it cannot; the message has the next step.
    """
    if device.type != "cuda":
        return
    _check_torch(where, torch, ", or leave device= out")
    if not torch.cuda.is_available():
        raise ConfigError(
            f"{where}: torch finds no GPU: no NVIDIA driver is here, the container was not given its GPUs (docker run "
            "--gpus all), or CUDA_VISIBLE_DEVICES hides them; or leave device= out: batches stay in host memory"
        )
    count = torch.cuda.device_count()
    if device.index is not None and device.index >= count:
        there = "the only one here is cuda:0" if count == 1 else f"those here are cuda:0 to cuda:{count - 1}"
        raise ConfigError(
            f"{where}: there is no cuda:{device.index}: {there}, counted within CUDA_VISIBLE_DEVICES where that is set"
        )


def _current(output: str) -> int:
    """torch's current device, where torch is what uses it."""
    torch = sys.modules.get("torch")
    if output == "dlpack" and (torch is None or not torch.cuda.is_initialized()):
        return 0
    if torch is None or not torch.cuda.is_available():  # which the engine says, with what to do
        return 0
    return int(torch.cuda.current_device())
