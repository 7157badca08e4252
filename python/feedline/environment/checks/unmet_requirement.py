# SPDX-License-Identifier: Apache-2.0
"""A package needs another that is not there, or is of a version that it does not take."""

from ...findings import Abstention
from ..checking import NEEDS, Case, Check, Told, page, told
from ..requiring import conda_unmet


def _judges(case: Case) -> Told:
    for need in case.needs:
        if need.of_torch_set:
            continue  # torch_set says it
        has = f"{need.name} {need.has} is here" if need.has else f"no {need.name} is here"
        yield told(
            "unmet_requirement", "error", f"{need.owner} needs {need.wants}, and {has}",
            fix=f'pip install "{need.wants}"', package=need.owner, requirement=need.wants,
        )  # fmt: skip
    found, judged = conda_unmet(case.seen)
    for need in found:
        has = f"{need.name} {need.has} is here" if need.has else f"no {need.name} is here"
        yield told(
            "unmet_requirement", "error", f"conda's {need.owner} needs {need.wants}, and {has}",
            fix=f'conda install "{need.wants}"', package=need.owner, requirement=need.wants,
        )  # fmt: skip
    if not judged:
        yield Abstention("unmet_requirement", "versions that conda packages need: pip install 'feedline[env]'")


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
