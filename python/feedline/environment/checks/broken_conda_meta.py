# SPDX-License-Identifier: Apache-2.0
"""A file of conda-meta that cannot be read: conda no longer knows what it installed."""

from ..checking import ENVIRONMENT, Case, Check, Told, page, told


def _judges(case: Case) -> Told:
    seen = case.seen
    for one in (one for one in seen.broken if not one.denied):  # unreadable says those
        name = one.file.name.removesuffix(".json")
        yield told(
            "broken_conda_meta", "error", f"{one.file} cannot be read: {one.why}",
            fix=f"Remove it, then conda install --force-reinstall what {name} was; or make the environment anew from "
            "its lock.", file=str(one.file),
        )  # fmt: skip
    for lost in seen.distributions if seen.packages else ():
        is_named = any(one.file.name.startswith(f"{lost.name}-") for one in seen.broken)
        if lost.installer == "conda" and not seen.is_condas(lost) and not is_named:
            yield told(
                "broken_conda_meta", "error",
                f"conda installed {lost.name} {lost.version}, and no file of {seen.place.conda_meta} lists it",
                fix=f"conda install --force-reinstall {lost.name}={lost.version}; or make the environment anew from "
                "its lock.", package=lost.name,
            )  # fmt: skip


CHECK = Check(
    page(
        code="broken_conda_meta",
        title="a file of conda-meta is damaged or gone",
        means="conda records each package that it installed in a JSON file. Without it the package's files "
        "belong to nobody: "
        "they are neither updated nor removed.",
        recognised="The file is no JSON, lacks the package's name or version, or may not be read; or a dist-info says "
        "that conda installed it, and no file lists it.",
        to_do="Make the environment anew from a lock or a snapshot (`feedline env create`), or reinstall the package.",
        example="conda-meta/numpy-2.1.0-py311_0.json cannot be read: JSONDecodeError: Expecting value",
    ),
    ENVIRONMENT + 20,
    _judges,
)
