# SPDX-License-Identifier: Apache-2.0
"""pip and conda installed the same files."""

import os

from ...rules import OWNERS, Analysis, Check, Problems, names, page, problem


def _evaluate(analysis: Analysis) -> Problems:
    for clash in analysis.files.clashes:
        one = clash.project
        paths = [os.path.relpath(path, analysis.seen.place.prefix) for path in clash.paths]
        yield problem(
            "pip_over_conda", "error",
            f"{one.name} {one.version}, which {one.installer or 'pip'} installed, and conda's {clash.package} both own "
            f"{names(paths)}",
            fix=f"Choose one owner: run conda remove --force {clash.package}, then pip install --force-reinstall "
            f"{one.name}; or "
            f"pip uninstall {one.name}, then conda install --force-reinstall {clash.package}",
            package=one.name, conda_package=clash.package, files=len(clash.paths),
        )  # fmt: skip


CHECK = Check(
    page(
        code="pip_over_conda",
        title="pip and conda own the same files",
        means="Both managers believe that they own the files. The version that was installed last runs, but conda "
        "resolves dependencies with its own version, and the next update mixes both. conda-pack refuses such "
        "an environment.",
        recognised="RECORD and conda-meta list the same path, and conda did not install the project.",
        to_do="Manage each package with one tool: conda first, then pip for packages that conda lacks.",
        example="numpy 2.1.0, which pip installed, and conda's numpy both own lib/python3.11/site-packages/numpy/...",
    ),
    OWNERS,
    _evaluate,
)
