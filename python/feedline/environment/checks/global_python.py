# SPDX-License-Identifier: Apache-2.0
"""Packages were installed into the Python that all programs of the machine share."""

from ..checking import ADVICE, Case, Check, Told, names, page, told


def _judges(case: Case) -> Told:
    seen = case.seen
    if seen.place.kind != "system":
        return
    found = [f"{one.name} {one.version}" for one in seen.distributions if one.installer in ("pip", "uv")]
    found = [one for one in found if one.partition(" ")[0] not in ("pip", "setuptools", "wheel")]
    if found:
        yield told(
            "global_python", "note", f"{seen.place.prefix} is no environment of a project, and holds {names(found)}",
            fix="python -m venv .venv, and install there; in a container that holds one project leave it",
        )  # fmt: skip


CHECK = Check(
    page(
        code="global_python",
        title="packages are in the machine's own Python",
        means="Projects that share it change each other's versions.",
        recognised="No pyvenv.cfg and no conda-meta, and packages that pip or uv installed.",
        to_do="One environment per project.",
        example="/usr is no environment of a project, and holds torch 2.13.0",
    ),
    ADVICE + 30,
    _judges,
)
