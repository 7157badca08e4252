# SPDX-License-Identifier: Apache-2.0
"""Files that pip and conda both installed."""

import os

from ..checking import OWNERS, Case, Check, Told, names, page, told


def _judges(case: Case) -> Told:
    for clash in case.files.clashes:
        one = clash.project
        paths = [os.path.relpath(path, case.seen.place.prefix) for path in clash.paths]
        yield told(
            "pip_over_conda", "error",
            f"{one.name} {one.version}, which {one.installer or 'pip'} installed, and conda's {clash.package} both own "
            f"{names(paths)}",
            fix=f"Have one owner: conda remove --force {clash.package}, then pip install --force-reinstall "
            f"{one.name}; or "
            f"pip uninstall {one.name}, then conda install --force-reinstall {clash.package}",
            package=one.name, conda_package=clash.package, files=len(clash.paths),
        )  # fmt: skip


CHECK = Check(
    page(
        code="pip_over_conda",
        title="pip and conda own the same files",
        means="Both managers believe that the files are theirs. What runs is the version that was written last, what "
        "conda solves with is its own, and the next update mixes them. conda-pack refuses such an environment.",
        recognised="A path that RECORD of a project lists, which conda did not install, and a file of conda-meta, too.",
        to_do="Leave each package to one manager: conda first, then pip for what conda has not.",
        example="numpy 2.1.0, which pip installed, and conda's numpy both own lib/python3.11/site-packages/numpy/...",
    ),
    OWNERS,
    _judges,
)
