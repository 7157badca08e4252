# SPDX-License-Identifier: Apache-2.0
"""Files that this user may not read: nothing is said of them."""

from ..checking import FILES, Case, Check, Told, names, page, told


def _judges(case: Case) -> Told:
    denied = [str(one.file) for one in case.seen.broken if one.denied]
    found = [*denied, *case.files.unreadable, *case.seen.notes]
    if found:
        yield told(
            "unreadable", "warning", f"not judged, for lack of permission: {names(found)}",
            fix="Ask as the user whose environment it is.", files=len(found),
        )  # fmt: skip


CHECK = Check(
    page(
        code="unreadable",
        title="some files may not be read by this user",
        means="What they hold was not compared, so nothing else that is said covers them; a run of this user "
        "fails on them.",
        recognised="The system refused to open a file or a folder of the environment.",
        to_do="Run the check as the environment's owner, or `chmod -R a+rX` what is meant to be shared.",
        example="not judged, for lack of permission: .../numpy/core/_multiarray.so",
    ),
    FILES + 20,
    _judges,
)
