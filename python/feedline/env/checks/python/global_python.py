# SPDX-License-Identifier: Apache-2.0
"""Packages were installed into a Python that several projects share: the system's, or conda's base."""

from ...reading.place import is_conda_base
from ...rules import ADVICE, Analysis, Check, Problems, names, page, problem

_OF_INSTALLERS = ("pip", "setuptools", "wheel")
# Packages that projects install, but that conda's base does not need.
_OF_PROJECTS = ("torch", "pytorch", "torchvision", "tensorflow", "jax", "jaxlib", "mxnet", "keras")


def _evaluate(analysis: Analysis) -> Problems:
    seen = analysis.seen
    if seen.place.kind == "system":
        found = [f"{one.name} {one.version}" for one in seen.distributions if one.installer in ("pip", "uv")]
        found = [one for one in found if one.partition(" ")[0] not in _OF_INSTALLERS]
        if found:
            yield problem(
                "global_python", "note", f"{seen.place.prefix} is not a project environment, but has {names(found)}",
                fix="Run python -m venv .venv, and install the packages there; ignore this in a container with a "
                    "single project",
            )  # fmt: skip
    elif is_conda_base(seen.place.prefix):
        versions = {one.name: one.version for one in seen.packages} | {
            one.name: one.version for one in seen.distributions
        }
        found = [f"{name} {versions[name]}" for name in sorted(_OF_PROJECTS) if name in versions]
        if found:
            yield problem(
                "global_python", "note", f"{seen.place.prefix} is conda's base environment, but has {names(found)}",
                fix="Run feedline env create NAME PACKAGE..., which creates an environment for the project: an update "
                    "of base may break conda itself; ignore this in a container with a single project",
            )  # fmt: skip


CHECK = Check(
    page(
        code="global_python",
        title="packages are in a Python that projects share",
        means="Projects that share the system's Python or conda's base change each other's versions, and a broken "
        "conda cannot repair itself.",
        recognised="The folder has no pyvenv.cfg and no conda-meta, but pip or uv installed packages; or it is conda's "
        "base, and has torch, TensorFlow or JAX.",
        to_do="Create one environment per project.",
        example="/opt/miniforge3 is conda's base environment, but has torch 2.13.0",
    ),
    ADVICE + 30,
    _evaluate,
)
