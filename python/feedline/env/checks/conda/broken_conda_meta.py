# SPDX-License-Identifier: Apache-2.0
"""A file in conda-meta cannot be read, so conda no longer knows the package."""

from ...rules import ENVIRONMENT, Analysis, Check, Problems, page, problem


def _evaluate(analysis: Analysis) -> Problems:
    seen = analysis.seen
    for one in (one for one in seen.broken if not one.denied):  # reported by unreadable
        name = one.file.name.removesuffix(".json")
        yield problem(
            "broken_conda_meta", "error", f"{one.file} cannot be read: {one.why}",
            fix=f"Remove the file, then run conda install --force-reinstall for the package {name}; or recreate the "
            "environment from its lock.", file=str(one.file),
        )  # fmt: skip
    for lost in seen.distributions if seen.packages else ():
        is_named = any(one.file.name.startswith(f"{lost.name}-") for one in seen.broken)
        if lost.installer == "conda" and not seen.is_condas(lost) and not is_named:
            yield problem(
                "broken_conda_meta", "error",
                f"conda installed {lost.name} {lost.version}, but no file in {seen.place.conda_meta} lists it",
                fix=f"Run conda install --force-reinstall {lost.name}={lost.version}, or recreate the environment from "
                "its lock.", package=lost.name,
            )  # fmt: skip


CHECK = Check(
    page(
        code="broken_conda_meta",
        title="a file in conda-meta is damaged or missing",
        means="conda records each installed package in a JSON file. Without that file, the package's files "
        "have no owner: "
        "conda neither updates nor removes them.",
        recognised="The file is not JSON, lacks the package's name or version, or is unreadable; or a dist-info names "
        "conda as its installer, but no file lists it.",
        to_do="Recreate the environment from a lock or a snapshot (`feedline env create`), or reinstall the package.",
        example="conda-meta/numpy-2.1.0-py311_0.json cannot be read: JSONDecodeError: Expecting value",
    ),
    ENVIRONMENT + 20,
    _evaluate,
)
