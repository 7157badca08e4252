# SPDX-License-Identifier: Apache-2.0
"""A package's requirement is not installed, or has an unsupported version."""

from ....findings import Abstention, Finding
from ...requirements import Need, conda_unmet
from ...rules import NEEDS, Analysis, Check, Problems, page, problem


def _evaluate(analysis: Analysis) -> Problems:
    of_conda, judged = conda_unmet(analysis.seen)
    said = {(need.owner, need.name) for need in of_conda}  # the metadata of conda's Python packages repeat their
    # requirements
    for need in analysis.needs:
        if not need.of_torch_set and (need.owner, need.name) not in said:  # the others are reported by torch_set
            yield _problem(need, need.owner, f'pip install "{need.wants}"')
    for need in of_conda:
        yield _problem(need, f"conda's {need.owner}", f'conda install "{need.wants}"')
    if not judged:
        yield Abstention(
            "unmet_requirement",
            "checking the versions that conda packages need requires py-rattler: pip install 'feedline[env]'",
        )


def _problem(need: Need, owner: str, fix: str) -> Finding:
    has = f"{need.name} {need.has} is installed" if need.has else f"{need.name} is not installed"
    evidence = f"{owner} needs {need.wants}, but {has}"
    return problem("unmet_requirement", "error", evidence, fix=fix, package=need.owner, requirement=need.wants)


CHECK = Check(
    page(
        code="unmet_requirement",
        title="a requirement of a package is not satisfied",
        means="The package was installed without its dependencies, or a dependency was later changed for "
        "another package.",
        recognised="No installed version satisfies a `depends` line of conda-meta, or a Requires-Dist line of "
        "METADATA whose marker applies here. Extras are not checked.",
        to_do="Install the required version; if two packages conflict, install a different version of one of them.",
        example="torchvision 0.28.0 needs pillow!=8.3.*,>=5.3.0, but pillow is not installed",
    ),
    NEEDS + 10,
    _evaluate,
)
