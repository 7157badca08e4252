# SPDX-License-Identifier: Apache-2.0
"""Determines the target of a tensor's copy methods, as (source, device, whether non-blocking), and describes devices.

Invalid arguments may raise any exception here: the copy method itself reports the error.
"""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Any


def of_to(torch: Any, tensor: Any, arguments: Any, options: Any) -> tuple[Any, Any, bool]:
    """Returns the target of `tensor.to(...)`, by torch's argument rules."""
    options = {name: value for name, value in options.items() if name != "copy"}
    if arguments and isinstance(arguments[0], torch.Tensor):
        return tensor, arguments[0].device, bool(options.get("non_blocking", len(arguments) > 1 and arguments[1]))
    device, _, asked, _ = torch._C._nn._parse_to(*arguments[:3], **options)
    return tensor, device, bool(asked)


def of_cuda(torch: Any, tensor: Any, arguments: Any, options: Any) -> tuple[Any, Any, bool]:
    """Target of `tensor.cuda(...)`."""
    device = arguments[0] if arguments else options.get("device")
    asked = arguments[1] if len(arguments) > 1 else options.get("non_blocking", False)
    if device is None or isinstance(device, int):
        device = torch.device("cuda", torch.cuda.current_device() if device is None else device)
    return tensor, torch.device(device), bool(asked)


def of_copy(_torch: Any, tensor: Any, arguments: Any, options: Any) -> tuple[Any, Any, bool]:
    """Target of `tensor.copy_(source, ...)`."""
    source = arguments[0] if arguments else options.get("src", options.get("other"))
    asked = arguments[1] if len(arguments) > 1 else options.get("non_blocking", False)
    return source, tensor.device, bool(asked)


def facts_of(torch: Any, device: Any) -> dict[str, Any]:
    """Returns facts about a device that the script uses, and about the numeric precision used there."""
    facts: dict[str, Any] = {"device": str(device), "type": device.type, "python": sys.executable}
    facts["visible"] = os.environ.get("CUDA_VISIBLE_DEVICES")
    with contextlib.suppress(Exception):  # a setting that has another name in some versions of torch
        facts["matmul_precision"] = torch.get_float32_matmul_precision()
    with contextlib.suppress(Exception):
        facts["cudnn_tf32"] = bool(torch.backends.cudnn.allow_tf32)
    if device.type == "cuda":
        with contextlib.suppress(Exception):
            properties = torch.cuda.get_device_properties(device)
            facts["name"] = str(properties.name)
            facts["capability"] = 10 * properties.major + properties.minor
            facts["uuid"] = f"GPU-{properties.uuid}"
    return facts
