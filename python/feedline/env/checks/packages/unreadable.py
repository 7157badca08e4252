# SPDX-License-Identifier: Apache-2.0
"""This user has no permission to read some files, so these were not checked."""

from ...rules import FILES, Analysis, Check, Problems, names, page, problem


def _evaluate(analysis: Analysis) -> Problems:
    denied = [str(one.file) for one in analysis.seen.broken if one.denied]
    found = [*denied, *analysis.files.unreadable, *analysis.seen.notes]
    if found:
        yield problem(
            "unreadable", "warning", f"not checked, permission denied: {names(found)}",
            fix="Run this as the owner of the environment.", files=len(found),
        )  # fmt: skip


CHECK = Check(
    page(
        code="unreadable",
        title="this user has no permission to read some files",
        means="The files' content was not compared, and runs of this user fail when they read these files.",
        recognised="The system denied access to a file or folder of the environment.",
        to_do="Run the check as the environment's owner, or `chmod -R a+rX` the files that should be shared.",
        example="not checked, permission denied: .../numpy/core/_multiarray.so",
    ),
    FILES + 20,
    _evaluate,
)
