# SPDX-License-Identifier: Apache-2.0
"""An image's content differs from its label."""

from ...labels import content_of, parts_of
from ...rules import AGAINST, Analysis, Check, Problems, page, problem


def _evaluate(analysis: Analysis) -> Problems:
    if not analysis.label:
        return
    content = content_of(analysis.seen)
    for name, wanted in parts_of(analysis.label).items():
        has = content.get(name)
        if has is None:
            yield problem(
                "label_differs", "error", f"the label names {name} {wanted.text}".rstrip() + ", which is not installed",
                fix="Install that version, or correct the label", about=name,
            )  # fmt: skip
        elif not wanted.allows(has):
            yield problem(
                "label_differs", "error", f"the label says {name} {wanted.text}, but {has} is installed",
                fix="Correct the label, or rebuild the image", about=name,
            )  # fmt: skip


CHECK = Check(
    page(
        code="label_differs",
        title="the installed versions differ from the label",
        means="Guides and image names list versions, but the image may contain different versions.",
        recognised="Names and versions in `--label` are compared with the environment: Python, torch, its CUDA, cuDNN, "
        "and packages.",
        to_do="Trust the installed versions.",
        abstains="Not checked without `--label`.",
        example="the label says cuda 12.1, but 12.8 is installed",
    ),
    AGAINST + 20,
    _evaluate,
)
