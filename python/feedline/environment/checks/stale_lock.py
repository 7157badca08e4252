# SPDX-License-Identifier: Apache-2.0
"""The environment is not what its lock says."""

from ..checking import AGAINST, Case, Check, Told, names, page, told
from ..differences import compare_with_lock


def _judges(case: Case) -> Told:
    if case.lock is None:
        return
    found = compare_with_lock(case.lock, case.seen)
    if found:
        yield told(
            "stale_lock", "error",
            f"{case.lock.source} and the environment differ in {len(found)}: {names([one.text for one in found])}",
            fix="Install from the lock again, or write a new one: feedline env export", differences=len(found),
        )  # fmt: skip


CHECK = Check(
    page(
        code="stale_lock",
        title="the environment is not what its lock says",
        means="Something was installed or updated beside the lock; who builds from the lock gets another environment.",
        recognised="Each package of the lock against what is installed: version, build, hash, and what the lock "
        "does not name.",
        to_do="Build the environment anew from the lock, or write the lock anew and review what changed.",
        abstains="No lock was named by `--lock`.",
        example="uv.lock and the environment differ in 2: numpy 2.1.0 is here as 2.2.0, pandas 2.2.3 is missing",
    ),
    AGAINST,
    _judges,
)
