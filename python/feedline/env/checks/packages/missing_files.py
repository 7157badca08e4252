# SPDX-License-Identifier: Apache-2.0
"""Some of a package's files are missing."""

from ...rules import FILES, Analysis, Check, Problems, names, page, problem


def _evaluate(analysis: Analysis) -> Problems:
    for owner, paths in analysis.files.missing.items():
        yield problem(
            "missing_files", "error", f"{owner} installed {names(paths)}, which is missing",
            fix=f"Reinstall it with the manager that installed it: {analysis.reinstalls(owner)}",
            package=owner, files=len(paths),
        )  # fmt: skip


CHECK = Check(
    page(
        code="missing_files",
        title="files of a package are missing",
        means="The files were removed after the installation. Code that needs these files fails, perhaps hours into "
        "a run.",
        recognised="A path that conda-meta or RECORD lists does not exist. Compiled `.pyc` files do not count.",
        to_do="Reinstall the package with the package manager that installed it.",
        abstains="Most of the package's files are missing (half_installed), or pip overwrote them (pip_over_conda).",
        example="numpy installed .../numpy/linalg/lapack_lite.so, which is missing",
    ),
    FILES,
    _evaluate,
)
