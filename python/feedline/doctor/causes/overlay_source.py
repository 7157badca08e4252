# SPDX-License-Identifier: Apache-2.0
"""The dataset lies in the container's own layers."""

from __future__ import annotations

from collections.abc import Iterator

from ..case import STORAGE, Case, Cause, Found, page


def _judge(case: Case) -> Iterator[Found]:
    mount = case.source.mount if case.source is not None else None
    if mount is not None and mount.family == "overlay":
        yield Found("note", (f"{case.source.name if case.source else mount.point} is in an overlay",))


CAUSE = Cause(
    page(
        "overlay_source",
        "the dataset lies in the container's own layers",
        means="Reads go through the overlay, and it takes the image's disk, which is often small and shared; "
        "it is gone with the container.",
        recognised="The mount of SOURCE is an overlay.",
        to_do="Mount it: docker run -v /data/imagenet:/data:ro.",
        example="/app/data is in an overlay.",
    ),
    turn=STORAGE + 50,
    judge=_judge,
)
