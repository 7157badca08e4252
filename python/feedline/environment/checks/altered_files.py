# SPDX-License-Identifier: Apache-2.0
"""Files of a package are other than what was installed."""

from ..checking import FILES, Case, Check, Told, names, page, told


def _judges(case: Case) -> Told:
    for owner, paths in case.files.altered.items():
        yield told(
            "altered_files", "warning", f"{owner}: {names(paths)} differs from what was installed",
            fix=f"Keep the change elsewhere, then {case.reinstalls(owner)}",
            package=owner, files=len(paths),
        )  # fmt: skip


CHECK = Check(
    page(
        code="altered_files",
        title="files of a package were changed",
        means="No lock rebuilds a change by hand: another machine runs other code under the same version.",
        recognised="Size or SHA-256 of a file differ from RECORD's or conda-meta's. Files over 64 MiB are "
        "compared by size "
        "alone, but with `--deep`.",
        to_do="Put the change into a package or a patch of your own, and reinstall.",
        abstains="pip wrote over conda's files (pip_over_conda), two projects own them (two_owners), or they are "
        "Debian's (lib/python3/dist-packages), "
        "whose own tools compare them.",
        example="torch: .../torch/utils/data/dataloader.py differs from what was installed",
    ),
    FILES + 10,
    _judges,
)
