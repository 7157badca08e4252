# SPDX-License-Identifier: Apache-2.0
"""The loaders for training from the same remote photos, with the adapters of bench/peers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from work import Work


@dataclass(frozen=True)
class Loader:
    name: str
    adapter: str
    environment: str = ""  # an environment of peers.toml; empty for Feedline, which uses that of the benchmark
    variant: str = ""
    tars: str = "{}"  # how the tars are passed
    needs_s3: bool = False  # its own files are in the bucket
    later: int = 0  # number of epochs after the first
    note: str = ""

    @property
    def is_ours(self) -> bool:
        return not self.environment


STORED, CACHED = "Feedline, as stored", "Feedline, cache="
LOADERS = (
    Loader(STORED, "feedline", variant="stored", later=1),
    Loader("Feedline, shuffle=\"shards\"", "feedline", variant="shards"),
    Loader("Feedline, shuffle=True", "feedline", variant="tar"),
    Loader(CACHED, "feedline", variant="node-cache", later=2, note='shuffle="shards"; later epochs read this node'),
    Loader("WebDataset over curl", "webdataset", "webdataset", tars="pipe:curl -sf {}",
           note="Pillow; shuffles in a buffer of 1,000"),
    Loader("LitData", "litdata", "litdata", needs_s3=True, note="its own chunks, from S3 to this disk; Pillow"),
    Loader("MosaicML Streaming", "mosaic", "mosaic", needs_s3=True,
           note="its own shards, from S3 to this disk; Pillow"),
)  # fmt: skip


def wrong(figures: dict[str, Any], samples: int, work: Work) -> str:
    """Returns why an epoch is wrong; empty if it is correct."""
    for epoch in (figures, *figures["later"]):
        # each worker may have an incomplete batch, and some samples of MosaicML's shards are delivered twice
        if abs(samples - epoch["samples"]) > (work.threads + 1) * work.batch:
            return f"its epoch has {epoch['samples']} of {samples} photos"
        shape = epoch["first_batch"]["shape"]
        if shape != [work.batch, 3, 224, 224]:
            return f"its batches are {shape}"
    return ""
