# SPDX-License-Identifier: Apache-2.0
"""A package was built for another Python."""

import re

from ...rules import NEEDS, Analysis, Check, Problems, page, problem


def _evaluate(analysis: Analysis) -> Problems:
    own = re.match(r"(\d+)\.(\d+)", analysis.seen.place.python or "")
    if own is None:
        return
    version = (int(own[1]), int(own[2]))
    for one in analysis.seen.first.values():
        tags = [tag.split("-") for tag in one.tags if tag.count("-") >= 2]
        if tags and not any(_fits(python, abi, version) for python, abi, *_ in tags):
            yield problem(
                "wrong_python", "error",
                f"{one.name} {one.version} was built for {one.tags[0]}, but this is Python {version[0]}.{version[1]}",
                fix=f"Reinstall the package with this environment's Python: pip install --force-reinstall {one.name}",
                package=one.name,
            )  # fmt: skip


def _fits(python: str, abi: str, version: tuple[int, int]) -> bool:
    for one in python.split("."):
        found = re.fullmatch(r"(cp|py)(\d)(\d*)", one)
        if found is None:
            return True  # PyPy and others are not checked
        built = (int(found[2]), int(found[3] or 0))
        if found[1] == "py" or "abi3" in abi:
            if built[0] == version[0] and built <= version:
                return True
        elif built == version:
            return True
    return False


CHECK = Check(
    page(
        code="wrong_python",
        title="a package was built for a different Python version",
        means="Compiled modules only load in the minor version of Python that they were built for.",
        recognised="No tag of the wheel matches the interpreter's version.",
        to_do="Reinstall the package with the environment's Python; after an upgrade of Python, recreate the "
        "environment.",
        abstains="The package was installed without a wheel's metadata.",
        example="numpy 2.1.0 was built for cp310-cp310-linux_x86_64, but this is Python 3.11",
    ),
    NEEDS + 20,
    _evaluate,
)
