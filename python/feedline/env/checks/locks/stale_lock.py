# SPDX-License-Identifier: Apache-2.0
"""The environment differs from its lock."""

from ...differences import compare_with_lock
from ...rules import AGAINST, Analysis, Check, Problems, names, page, problem


def _evaluate(analysis: Analysis) -> Problems:
    if analysis.lock is None:
        return
    found = compare_with_lock(analysis.lock, analysis.seen)
    if found:
        yield problem(
            "stale_lock", "error",
            f"the environment has {len(found)} differences from {analysis.lock.source}: "
            f"{names([one.text for one in found])}",
            fix="Install from the lock again, or write a new one: feedline env export", differences=len(found),
        )  # fmt: skip


CHECK = Check(
    page(
        code="stale_lock",
        title="the environment differs from its lock",
        means="Packages were installed or updated without the lock, so builds from the lock produce a different "
        "environment.",
        recognised="Version, build and hash of each package in the lock are compared with those of the installed "
        "package; packages that are missing from the lock are also reported.",
        to_do="Rebuild the environment from the lock, or write the lock again and review the changes.",
        abstains="Not checked without `--lock`.",
        example="the environment has 2 differences from uv.lock: numpy is 2.2.0 instead of 2.1.0, pandas 2.2.3 is "
        "missing",
    ),
    AGAINST,
    _evaluate,
)
