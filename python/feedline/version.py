# SPDX-License-Identifier: Apache-2.0
"""The installed version."""

from __future__ import annotations


def installed_version() -> str:
    """Returns the installed version."""
    # imported here because it takes longer than importing all of Feedline
    from importlib import metadata

    try:
        return metadata.version("feedline")
    except metadata.PackageNotFoundError:
        return "0+unknown"
