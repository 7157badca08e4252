# SPDX-License-Identifier: Apache-2.0
"""Some of a package's files were changed after the installation."""

from ...rules import FILES, Analysis, Check, Problems, names, page, problem


def _evaluate(analysis: Analysis) -> Problems:
    for owner, paths in analysis.files.altered.items():
        yield problem(
            "altered_files", "warning", f"{owner}: {names(paths)} differs from the installed version",
            fix=f"Save the changes elsewhere, then {analysis.reinstalls(owner)}",
            package=owner, files=len(paths),
        )  # fmt: skip


CHECK = Check(
    page(
        code="altered_files",
        title="files of a package were changed",
        means="Locks do not record manual changes, so other machines run different code under the same version.",
        recognised="The size or SHA-256 of a file differs from RECORD or conda-meta. Files over 64 MiB are compared "
        "by size only, except with `--deep`.",
        to_do="Move the change into your own package or a patch, and reinstall.",
        abstains="pip overwrote conda's files (pip_over_conda), two projects own them (two_owners), or Debian "
        "installed the files (lib/python3/dist-packages) and has its own tools for this.",
        example="torch: .../torch/utils/data/dataloader.py differs from the installed version",
    ),
    FILES + 10,
    _evaluate,
)
