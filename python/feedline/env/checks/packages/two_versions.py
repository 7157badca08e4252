# SPDX-License-Identifier: Apache-2.0
"""One folder contains two versions of a project."""

from ...rules import OWNERS, Analysis, Check, Problems, page, problem


def _evaluate(analysis: Analysis) -> Problems:
    places: dict[tuple[str, str], list[str]] = {}
    for one in (one for one in analysis.seen.distributions if not one.is_systems):
        places.setdefault((one.name, str(one.site)), []).append(one.version)
    over_conda = {clash.project.name for clash in analysis.files.clashes}  # reported by pip_over_conda
    for (name, site), versions in places.items():
        if len(versions) > 1 and name not in over_conda:
            yield problem(
                "two_versions", "error", f"{site} has {name} as {' and as '.join(versions)}",
                fix=f"Remove both and install one: run pip uninstall {name} twice, then pip install {name}",
                package=name,
            )  # fmt: skip


CHECK = Check(
    page(
        code="two_versions",
        title="one project is installed in two versions",
        means="The files of both versions are mixed, so the code matches neither version, and version queries may "
        "return either.",
        recognised="One site-packages folder has two dist-info folders with the same normalized name.",
        to_do="Uninstall the project until no version is left, then install the version that you want.",
        example="site-packages has numpy 1.26.4 and numpy 2.1.0",
    ),
    OWNERS + 10,
    _evaluate,
)
