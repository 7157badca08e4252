# SPDX-License-Identifier: Apache-2.0
"""The dataset is on a network volume."""

from __future__ import annotations

from collections.abc import Iterator

from ...rules import STORAGE, Analysis, Cause, Found, page

_VOLUMES = {
    "amazon elastic block store": "an EBS volume",
    "persistentdisk": "a Google Cloud persistent disk",
    "card-pd": "a Google Cloud persistent disk",
    "virtual disk": "an Azure or Hyper-V virtual disk",
}


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    source = analysis.source
    if source is None or source.model is None or source.mount is None:
        return
    name = next((name for mark, name in _VOLUMES.items() if mark in source.model.lower()), None)
    if name is not None:
        yield Found("note", (f"{source.mount.point} is on {name} ({source.model})",))


CAUSE = Cause(
    page(
        "cloud_volume",
        "the dataset is on a network volume",
        means="The throughput of such volumes is provisioned: gp3 has 125 MB/s and 3,000 reads per second "
        "by default. The instance's own NVMe reaches gigabytes per second.",
        recognised="The disk's model name is Amazon Elastic Block Store, Google's PersistentDisk or Azure's Virtual "
        "Disk.",
        to_do="Copy the dataset to the instance's own NVMe (feedline stage), or raise the volume's throughput.",
        example="/data is on an EBS volume (Amazon Elastic Block Store).",
    ),
    priority=STORAGE + 40,
    evaluate=_evaluate,
)
