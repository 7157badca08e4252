# SPDX-License-Identifier: Apache-2.0
"""A conda environment without Python."""

from ..checking import ENVIRONMENT, Case, Check, Told, page, told


def _judges(case: Case) -> Told:
    seen = case.seen
    if seen.place.kind == "conda" and not any(one.name == "python" for one in seen.packages) and not seen.broken:
        yield told(
            "conda_without_python", "warning", f"conda installed no Python in {seen.place.prefix}",
            fix=f"conda install --prefix {seen.place.prefix} python pip; or nothing, if only its programs are used",
        )  # fmt: skip


CHECK = Check(
    page(
        code="conda_without_python",
        title="a conda environment has no Python",
        means="If it is activated, `python` and `pip` are those of the machine or of another environment, and `pip "
        "install` puts packages there. `conda create --name NAME` without `python` makes such an environment.",
        recognised="No file of conda-meta is of the package `python`.",
        to_do="Install Python and pip in it. An environment for programs without Python needs nothing.",
        abstains="A file of conda-meta cannot be read (broken_conda_meta).",
        example="conda installed no Python in /home/ann/envs/vision",
    ),
    ENVIRONMENT + 30,
    _judges,
)
