# SPDX-License-Identifier: Apache-2.0
"""Every exit status of the command line, and which exception ends in which."""

from __future__ import annotations

FINE = 0
PROBLEMS_FOUND = 1
USAGE = 2
FAILED = 3  # data or storage
INTERRUPTED = 130  # 128 + SIGINT, as shells have it


def of(error: BaseException) -> int:
    """The exit status of a verb that ended with `error`."""
    import feedline

    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, feedline.ConfigError):
        return USAGE
    return FAILED
