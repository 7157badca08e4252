# SPDX-License-Identifier: Apache-2.0
"""URLs of PyTorch's indexes. PyPI has no builds with a version label such as ``2.13.0+cpu``."""

from __future__ import annotations

import re

_LABEL = re.compile(r"\+(cpu|cu\d+|rocm[\d.]+|xpu)$")
_HOME = "https://download.pytorch.org/whl"


def label_of(version: str) -> str:
    """Returns the device in a version's label, such as ``cu130`` for ``2.13.0+cu130``, or "" if there is no label."""
    found = _LABEL.search(version)
    return found[1] if found else ""


def torch_index(version: str) -> str:
    """Returns the URL of PyTorch's index for a version's label, or "" if the version has no such label."""
    label = label_of(version)
    return f"{_HOME}/{label}" if label else ""
