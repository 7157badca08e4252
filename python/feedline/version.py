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


def deprecated(name: str, replacement: str, since: str, *, depth: int = 2) -> None:
    """Warns that `name` is deprecated. It works in version `since` and in the next minor version, and may be removed in
    the one after: docs/versions.md.

    Args:
        since: the first version with the replacement, such as "0.3".
        depth: the stack level of the caller's caller, as in :func:`warnings.warn`.
    """
    import warnings

    warnings.warn(
        f"{name} is deprecated since Feedline {since} and may be removed in {removal_of(since)}: use {replacement}",
        FutureWarning,  # which Python shows by default, also in libraries
        stacklevel=depth + 1,
    )


def removal_of(since: str) -> str:
    """Returns the first version that may lack what was deprecated in version `since`."""
    major, minor = map(int, since.split("."))
    return f"{major}.{minor + 2}"
