# SPDX-License-Identifier: Apache-2.0
"""Packages cannot be reinstalled from a lock."""

from ...rules import ADVICE, Analysis, Check, Problems, page, problem


def _evaluate(analysis: Analysis) -> Problems:
    for one in analysis.seen.distributions:
        url = str(one.origin.get("url") or "")
        if url.startswith("file:") and (one.editable or not url.endswith(".whl")):
            how = "is editable, from" if one.editable else "was built from"
            yield problem(
                "not_rebuildable", "note", f"{one.name} {one.version} {how} {url.removeprefix('file://')}",
                fix="To install the package on other machines, publish it, or install it from a commit: "
                "git+https://...@COMMIT", package=one.name,
            )  # fmt: skip


CHECK = Check(
    page(
        code="not_rebuildable",
        title="a package is from a local folder",
        means="A lock can name such a package, but other machines lack the folder, and the code can change without "
        "a new version.",
        recognised="direct_url.json names a local folder.",
        to_do="Nothing during development. Before other users need the package, install it from a commit or an index.",
        example="mylib 0.1 is editable, from /home/ann/mylib",
    ),
    ADVICE + 40,
    _evaluate,
)
