# SPDX-License-Identifier: Apache-2.0
"""The dataset is in the container's own layers."""

from __future__ import annotations

from collections.abc import Iterator

from ...rules import STORAGE, Analysis, Cause, Found, page


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    mount = analysis.source.mount if analysis.source is not None else None
    if mount is not None and mount.family == "overlay":
        yield Found("note", (f"{analysis.source.name if analysis.source else mount.point} is on an overlay",))


CAUSE = Cause(
    page(
        "overlay_source",
        "the dataset is in the container's own layers",
        means="Reads go through the overlay, and files use the image's disk, which is often small and shared; "
        "the files are deleted with the container.",
        recognised="SOURCE is on an overlay.",
        to_do="Mount the dataset as a volume: docker run -v /data/imagenet:/data:ro.",
        example="/app/data is on an overlay.",
    ),
    priority=STORAGE + 50,
    evaluate=_evaluate,
)
