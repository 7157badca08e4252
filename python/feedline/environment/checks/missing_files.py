# SPDX-License-Identifier: Apache-2.0
"""Files of a package are not there."""

from ..checking import FILES, Case, Check, Told, names, page, told


def _judges(case: Case) -> Told:
    for owner, paths in case.files.missing.items():
        yield told(
            "missing_files", "error", f"{owner} installed {names(paths)}, which is not there",
            fix=f"Reinstall it by the manager that installed it: {case.reinstalls(owner)}",
            package=owner, files=len(paths),
        )  # fmt: skip


CHECK = Check(
    page(
        code="missing_files",
        title="files of a package are gone",
        means="Somebody or something removed them. What needs them fails, maybe hours into a run.",
        recognised="A path that conda-meta or RECORD lists is not there. Compiled `.pyc` files do not count.",
        to_do="Reinstall the package by its manager.",
        abstains="Most of its files are gone (half_installed), or pip wrote over them (pip_over_conda).",
        example="numpy installed .../numpy/linalg/lapack_lite.so, which is not there",
    ),
    FILES,
    _judges,
)
