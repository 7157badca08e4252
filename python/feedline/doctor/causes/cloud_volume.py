# SPDX-License-Identifier: Apache-2.0
"""The dataset lies on a volume over the network."""

from __future__ import annotations

from collections.abc import Iterator

from ..case import STORAGE, Case, Cause, Found, page

_VOLUMES = {
    "amazon elastic block store": "an EBS volume",
    "persistentdisk": "a persistent disk of Google Cloud",
    "card-pd": "a persistent disk of Google Cloud",
    "virtual disk": "a virtual disk of Azure or Hyper-V",
}


def _judge(case: Case) -> Iterator[Found]:
    source = case.source
    if source is None or source.model is None or source.mount is None:
        return
    name = next((name for mark, name in _VOLUMES.items() if mark in source.model.lower()), None)
    if name is not None:
        yield Found("note", (f"{source.mount.point} is on {name} ({source.model})",))


CAUSE = Cause(
    page(
        "cloud_volume",
        "the dataset lies on a volume over the network",
        means="Such volumes have a rate that was bought: gp3 has 125 MB/s and 3,000 reads a second unless "
        "more was paid for. The instance's own NVMe gives gigabytes.",
        recognised="What the disk calls itself: Amazon Elastic Block Store, Google's PersistentDisk, Azure's "
        "Virtual Disk.",
        to_do="Copy the dataset to the instance's own NVMe (feedline stage), or raise the volume's rate for the run.",
        example="/data is on an Amazon Elastic Block Store.",
    ),
    turn=STORAGE + 40,
    judge=_judge,
)
