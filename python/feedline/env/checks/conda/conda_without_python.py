# SPDX-License-Identifier: Apache-2.0
"""A conda environment has no Python."""

from ...rules import ENVIRONMENT
from ._conda_lacks import conda_lacks

CHECK = conda_lacks(
    "conda_without_python",
    ENVIRONMENT + 30,
    "warning",
    "conda did not install Python in {prefix}",
    "conda install --prefix {prefix} python pip; do nothing if you only use other programs of the environment",
    lambda seen: not any(one.name == "python" for one in seen.packages),
    title="a conda environment has no Python",
    means="When the environment is activated, `python` and `pip` are the system's or another environment's, and "
    "`pip install` installs packages there. `conda create --name NAME` without `python` creates such an "
    "environment.",
    recognised="conda-meta contains no file of the package `python`.",
    to_do="Install Python and pip in the environment, unless it is only for programs without Python.",
)
