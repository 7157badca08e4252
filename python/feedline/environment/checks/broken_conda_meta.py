# SPDX-License-Identifier: Apache-2.0
"""A file of conda-meta that cannot be read: conda no longer knows what it installed."""

from ..checking import ENVIRONMENT, Case, Check, Told, page, told


def _judges(case: Case) -> Told:
    for one in case.seen.broken:
        name = one.file.name.removesuffix(".json")
        yield told(
            "broken_conda_meta", "error", f"{one.file} cannot be read: {one.why}",
            fix=f"Make the environment anew from its lock, or `conda install --force-reinstall` what {name} was.",
            file=str(one.file),
        )  # fmt: skip


CHECK = Check(
    page(
        code="broken_conda_meta",
        title="a file of conda-meta is damaged",
        means="conda records each package that it installed in a JSON file. Without it the package's files "
        "belong to nobody: "
        "they are neither updated nor removed.",
        recognised="The file is no JSON, lacks the package's name or version, or may not be read.",
        to_do="Make the environment anew from a lock or a snapshot (`feedline env create`), or reinstall the package.",
        example="conda-meta/numpy-2.1.0-py311_0.json cannot be read: JSONDecodeError: Expecting value",
    ),
    ENVIRONMENT + 20,
    _judges,
)
