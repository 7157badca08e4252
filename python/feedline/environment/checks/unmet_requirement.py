# SPDX-License-Identifier: Apache-2.0
"""A package needs another that is not there, or is of a version that it does not take."""

from ...findings import Abstention, Finding
from ..checking import NEEDS, Case, Check, Told, page, told
from ..requiring import Need, conda_unmet


def _judges(case: Case) -> Told:
    of_conda, judged = conda_unmet(case.seen)
    said = {(need.owner, need.name) for need in of_conda}  # the metadata of conda's Python packages say the same again
    for need in case.needs:
        if not need.of_torch_set and (need.owner, need.name) not in said:  # torch_set says the others
            yield _told(need, need.owner, f'pip install "{need.wants}"')
    for need in of_conda:
        yield _told(need, f"conda's {need.owner}", f'conda install "{need.wants}"')
    if not judged:
        yield Abstention("unmet_requirement", "versions that conda packages need: pip install 'feedline[env]'")


def _told(need: Need, owner: str, fix: str) -> Finding:
    has = f"{need.name} {need.has} is here" if need.has else f"no {need.name} is here"
    evidence = f"{owner} needs {need.wants}, and {has}"
    return told("unmet_requirement", "error", evidence, fix=fix, package=need.owner, requirement=need.wants)


CHECK = Check(
    page(
        code="unmet_requirement",
        title="a package lacks what it needs",
        means="It was installed without its dependencies, or one of them was changed for another package later.",
        recognised="A Requires-Dist line of METADATA whose marker holds here, or a `depends` line of conda-meta, "
        "that no "
        "installed version fits. Extras are not judged.",
        to_do="Install what is said; where two packages exclude each other, another version of one of them.",
        example="torchvision 0.28.0 needs pillow!=8.3.*,>=5.3.0, and no pillow is here",
    ),
    NEEDS + 10,
    _judges,
)
