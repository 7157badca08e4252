# SPDX-License-Identifier: Apache-2.0
"""A GPU has fewer PCIe lanes than it could."""

from __future__ import annotations

from collections.abc import Iterator

from ..case import MACHINE, Case, Cause, Found, page


def _judge(case: Case) -> Iterator[Found]:
    for link in case.machine.gpu_links:
        if link.width is not None and link.most_width is not None and link.width < link.most_width:
            words = f"the GPU at {link.place} has {link.width} of {link.most_width} PCIe lanes"
            yield Found("warning", (words,), about={"gpu": link.place})


CAUSE = Cause(
    page(
        "pcie_narrow",
        "a GPU has fewer PCIe lanes than it could",
        means="Copies to the GPU take as many times longer. A card that is not seated well, a riser, or a "
        "slot that shares its lanes does it.",
        recognised="The lanes in use against those that card and slot allow, by sysfs. Lanes do not change with load.",
        to_do="Seat the card anew, or move it to a slot with all lanes; feedline diagnose says whether copies "
        "are what the loop waits for.",
        example="the GPU at 0000:17:00.0 has 4 of 16 PCIe lanes.",
    ),
    turn=MACHINE + 30,
    judge=_judge,
)
