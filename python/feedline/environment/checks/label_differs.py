# SPDX-License-Identifier: Apache-2.0
"""An image holds something else than its label says."""

from ..checking import AGAINST, Case, Check, Told, page, told
from ..labels import content_of, parts_of


def _judges(case: Case) -> Told:
    if not case.label:
        return
    content = content_of(case.seen)
    for name, wanted in parts_of(case.label).items():
        has = content.get(name)
        if has is None:
            yield told(
                "label_differs", "error", f"the label names {name} {wanted}".rstrip() + ", and none is here",
                fix="Install it, or correct the label", about=name,
            )  # fmt: skip
        elif wanted and has != wanted and not has.startswith((f"{wanted}.", f"{wanted}+")):
            yield told(
                "label_differs", "error", f"the label says {name} {wanted}, and {has} is here",
                fix="Correct the label, or rebuild the image", about=name,
            )  # fmt: skip


CHECK = Check(
    page(
        code="label_differs",
        title="what is here is not what the label says",
        means="Guides and image names list versions; what was built may be others.",
        recognised="Each name and version of `--label` against the environment: Python, torch, its CUDA, cuDNN, "
        "and packages.",
        to_do="Go by what is here.",
        abstains="No label was given by `--label`.",
        example="the label says cuda 12.1, and 12.8 is here",
    ),
    AGAINST + 20,
    _judges,
)
