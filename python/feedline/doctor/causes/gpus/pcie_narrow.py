# SPDX-License-Identifier: Apache-2.0
"""A GPU uses fewer PCIe lanes than possible."""

from __future__ import annotations

from collections.abc import Iterator

from ...rules import MACHINE, Analysis, Cause, Found, page


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    for link in analysis.machine.gpu_links:
        if link.width is not None and link.most_width is not None and link.width < link.most_width:
            words = f"the GPU at {link.place} uses {link.width} of {link.most_width} PCIe lanes"
            yield Found("warning", (words,), about={"gpu": link.place})


CAUSE = Cause(
    page(
        "pcie_narrow",
        "a GPU uses fewer PCIe lanes than possible",
        means="Copies to the GPU take proportionally longer. Causes are a badly seated card, a riser, or a "
        "slot that shares its lanes.",
        recognised="According to sysfs, fewer lanes are in use than the card and the slot support. Lanes do not change "
        "with load.",
        to_do="Reseat the card, or move it to a slot with all lanes; feedline diagnose shows whether the "
        "loop waits for copies.",
        example="the GPU at 0000:17:00.0 uses 4 of 16 PCIe lanes.",
    ),
    priority=MACHINE + 30,
    evaluate=_evaluate,
)
