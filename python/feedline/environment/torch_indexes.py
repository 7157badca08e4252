# SPDX-License-Identifier: Apache-2.0
"""PyTorch's indexes: PyPI has no builds with a version label, such as ``2.13.0+cpu``."""

from __future__ import annotations

import re

_LABEL = re.compile(r"\+(cpu|cu\d+|rocm[\d.]+|xpu)$")
_HOME = "https://download.pytorch.org/whl"


def label_of(version: str) -> str:
    """The device in a version's label: ``cu130`` of ``2.13.0+cu130``; "" if it has no such label."""
    found = _LABEL.search(version)
    return found[1] if found else ""


def torch_index(version: str) -> str:
    """The URL of PyTorch's index that has builds with this version's label; "" if it has no such label."""
    label = label_of(version)
    return f"{_HOME}/{label}" if label else ""
