# SPDX-License-Identifier: Apache-2.0
"""Files of a package differ from the installed ones."""

from ..rules import FILES, Analysis, Check, Problems, names, page, problem


def _evaluate(analysis: Analysis) -> Problems:
    for owner, paths in analysis.files.altered.items():
        yield problem(
            "altered_files", "warning", f"{owner}: {names(paths)} differs from what was installed",
            fix=f"Save the changes elsewhere, then {analysis.reinstalls(owner)}",
            package=owner, files=len(paths),
        )  # fmt: skip


CHECK = Check(
    page(
        code="altered_files",
        title="files of a package were changed",
        means="Locks do not include manual changes, so other machines run different code under the same version.",
        recognised="Size or SHA-256 of a file differ from RECORD or conda-meta. Files over 64 MiB are "
        "compared by size "
        "only, except with `--deep`.",
        to_do="Move the change into your own package or a patch, and reinstall.",
        abstains="pip wrote over conda's files (pip_over_conda), two projects own them (two_owners), or they are "
        "Debian's (lib/python3/dist-packages), "
        "which has its own tools for this.",
        example="torch: .../torch/utils/data/dataloader.py differs from what was installed",
    ),
    FILES + 10,
    _evaluate,
)
