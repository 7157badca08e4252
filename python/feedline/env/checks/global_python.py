# SPDX-License-Identifier: Apache-2.0
"""Packages were installed into the system's Python."""

from ..rules import ADVICE, Analysis, Check, Problems, names, page, problem


def _evaluate(analysis: Analysis) -> Problems:
    seen = analysis.seen
    if seen.place.kind != "system":
        return
    found = [f"{one.name} {one.version}" for one in seen.distributions if one.installer in ("pip", "uv")]
    found = [one for one in found if one.partition(" ")[0] not in ("pip", "setuptools", "wheel")]
    if found:
        yield problem(
            "global_python", "note", f"{seen.place.prefix} is not a project environment, but has {names(found)}",
            fix="python -m venv .venv, and install there; ignore this in a container with a single project",
        )  # fmt: skip


CHECK = Check(
    page(
        code="global_python",
        title="packages are in the system's Python",
        means="Projects that share the system's Python change each other's versions.",
        recognised="The folder has no pyvenv.cfg and no conda-meta, but pip or uv installed packages.",
        to_do="Create one environment per project.",
        example="/usr is not a project environment, but has torch 2.13.0",
    ),
    ADVICE + 30,
    _evaluate,
)
