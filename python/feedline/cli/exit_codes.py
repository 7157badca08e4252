# SPDX-License-Identifier: Apache-2.0
"""All exit statuses of the command line, and the exceptions that cause them."""

from __future__ import annotations

FINE = 0
PROBLEMS_FOUND = 1
USAGE = 2
FAILED = 3  # data or storage
INTERRUPTED = 130  # 128 + SIGINT, as in shells


def of(error: BaseException) -> int:
    """Returns the exit status of a subcommand that raised `error`."""
    import feedline

    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, feedline.ConfigError):
        return USAGE
    return FAILED
