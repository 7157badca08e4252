# SPDX-License-Identifier: Apache-2.0
"""Two projects installed different files at the same path."""

from ...rules import OWNERS, Analysis, Check, Problems, names, page, problem


def _evaluate(analysis: Analysis) -> Problems:
    for (first, second), paths in analysis.files.twice.items():
        yield problem(
            "two_owners", "warning", f"{first} and {second} both own {names(paths)}, with different content",
            fix=f"Keep one of the two: run pip uninstall {first} {second}, then install the package that is needed",
            packages=f"{first} {second}", files=len(paths),
        )  # fmt: skip


CHECK = Check(
    page(
        code="two_owners",
        title="two projects own the same file",
        means="The last installation overwrote the file, and removing it deletes the other project's file, as with "
        "opencv-python and "
        "opencv-python-headless.",
        recognised="The RECORDs of two projects list a path with different hashes.",
        to_do="Keep one of the two.",
        example="opencv-python and opencv-python-headless both own cv2/__init__.py, with different content",
    ),
    OWNERS + 20,
    _evaluate,
)
