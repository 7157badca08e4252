# SPDX-License-Identifier: Apache-2.0
"""A conda environment has Python but no pip."""

from ...rules import ADVICE
from ...scan import Environment
from ._conda_lacks import conda_lacks


def _lacks_pip(seen: Environment) -> bool:
    names = {one.name for one in seen.packages} | seen.first.keys()
    return "python" in names and "pip" not in names


CHECK = conda_lacks(
    "conda_without_pip",
    ADVICE + 50,
    "note",
    "pip is not installed in {prefix}",
    "conda install --prefix {prefix} pip",
    _lacks_pip,
    title="a conda environment has Python, but no pip",
    means="When the environment is activated, `pip` is the system's or another environment's, and `pip "
    "install` installs "
    "packages there. `python -m pip` fails.",
    recognised="conda-meta has the package `python`, and neither conda nor another installer installed `pip`.",
    to_do="Install pip in the environment if you want to use `pip install` there; otherwise do nothing.",
)
