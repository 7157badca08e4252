# SPDX-License-Identifier: Apache-2.0
"""PYTHONPATH or the user's site-packages hide packages in the environment."""

import os
from pathlib import Path

from ...reading.wheels import installed_in
from ...rules import LOADED, Analysis, Check, Problems, names, page, problem


def _evaluate(analysis: Analysis) -> Problems:
    seen = analysis.seen
    folders = [Path(path) for path in seen.variables.get("PYTHONPATH", "").split(":") if path]
    why = dict.fromkeys(folders, "PYTHONPATH has")
    if seen.place.kind != "venv" and "PYTHONNOUSERSITE" not in seen.variables and seen.place.python:
        version = ".".join(seen.place.python.split(".")[:2])
        why[Path(os.path.expanduser(f"~/.local/lib/python{version}/site-packages"))] = "this Python also searches"
    for folder, words in why.items():
        if not folder.is_dir() or folder in seen.place.site:
            continue
        found, _ = installed_in([folder])
        hidden = [f"{one.name} {one.version}" for one in found if one.name in seen.first]
        if hidden:
            yield problem(
                "shadowed_package", "warning",
                f"{words} {folder}, whose {names(hidden)} hides the environment's own",
                fix="unset PYTHONPATH; export PYTHONNOUSERSITE=1", folder=str(folder),
            )  # fmt: skip


CHECK = Check(
    page(
        code="shadowed_package",
        title="packages from outside hide the environment's own",
        means="The code that runs is not the installed or locked version, and differs between users and shells.",
        recognised="A project of the environment is also in a folder of PYTHONPATH, or in ~/.local, which this "
        "Python searches.",
        to_do="Unset PYTHONPATH, set PYTHONNOUSERSITE=1, and install the packages into the environment.",
        example="PYTHONPATH has /shared/site-packages, whose numpy 1.26.4 hides the environment's own",
    ),
    LOADED + 30,
    _evaluate,
)
