# SPDX-License-Identifier: Apache-2.0
"""The dataset is in the container's own layers."""

from __future__ import annotations

from collections.abc import Iterator

from ..rules import STORAGE, Case, Cause, Found, page


def _judge(case: Case) -> Iterator[Found]:
    mount = case.source.mount if case.source is not None else None
    if mount is not None and mount.family == "overlay":
        yield Found("note", (f"{case.source.name if case.source else mount.point} is on an overlay",))


CAUSE = Cause(
    page(
        "overlay_source",
        "the dataset is in the container's own layers",
        means="Reads go through the overlay, and files use the image's disk, which is often small and shared; "
        "they are deleted with the container.",
        recognised="SOURCE is on an overlay.",
        to_do="Mount it: docker run -v /data/imagenet:/data:ro.",
        example="/app/data is on an overlay.",
    ),
    turn=STORAGE + 50,
    judge=_judge,
)
