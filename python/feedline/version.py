# SPDX-License-Identifier: Apache-2.0
"""The installed version."""

from __future__ import annotations

import functools


@functools.cache
def installed_version() -> str:
    """Returns the installed version."""
    # imported here because it takes longer than importing all of Feedline
    from importlib import metadata

    try:
        return metadata.version("feedline")
    except metadata.PackageNotFoundError:
        return "0+unknown"


def from_the_future(what: str, version: int, written_by: object, readable: str) -> str:
    """Returns the message of an error about a file or state of a later format than this version reads."""
    by = f", which Feedline {written_by} wrote" if written_by else ""
    return (
        f"{what} has version {version}{by}; this is Feedline {installed_version()}, which reads {readable}. Install "
        f"{f'feedline>={written_by}' if written_by else 'a newer Feedline'}"
    )
