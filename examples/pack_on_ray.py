# SPDX-License-Identifier: Apache-2.0
"""Packs a dataset on a Ray cluster: `python pack_on_ray.py SOURCE OUTPUT --shard-size 500MB --workers 32`.

Every node must be able to read SOURCE and to write to OUTPUT (s3://bucket/prefix, or a shared folder). Each task packs
a range of shards; if its node is lost, Ray runs it again, and it resumes. After an interruption, run the command again:
finished ranges are not packed again.
"""

from __future__ import annotations

import argparse
from itertools import pairwise
from typing import Any

from feedline import packing


def ranges(shards: int, workers: int) -> list[tuple[int, int]]:
    """Divides `shards` into equal, non-empty ranges. To resume with the same ranges, pass the same --workers."""
    count = max(1, min(shards, workers))
    ends = [shards * i // count for i in range(count + 1)]
    return list(pairwise(ends))


def pack_range(source: str, output: str, span: tuple[int, int], options: dict[str, Any], cpus: int) -> int:
    """Packs the shards of one task, and returns their number of samples."""
    return packing.pack(source, output, shard_range=span, num_workers=cpus, **options).samples


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("output")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--shard-size")
    size.add_argument("--samples-per-shard", type=int)
    parser.add_argument("--shuffle", action="store_true")
    parser.add_argument("--workers", type=int, default=8, help="ranges of shards; Ray runs as many as fit in parallel")
    parser.add_argument("--cpus", type=int, default=4, help="CPUs per worker")
    given = parser.parse_args()
    options = {
        "shard_bytes": given.shard_size,
        "samples_per_shard": given.samples_per_shard,
        "shuffle": given.shuffle,
    }
    import ray

    ray.init()
    shards = packing.shard_count(given.source, **options)
    task = ray.remote(num_cpus=given.cpus, max_retries=5)(pack_range)
    waiting = [
        task.remote(given.source, given.output, span, options, given.cpus) for span in ranges(shards, given.workers)
    ]
    done = 0
    while waiting:
        finished, waiting = ray.wait(waiting)
        done += sum(ray.get(finished))
        print(f"{done:,} samples packed, {len(waiting)} ranges left", flush=True)
    merged = packing.merge_index(given.output)
    print(f'{merged.samples:,} samples in {merged.shards:,} shards: feedline.open("{merged.pattern}")')


if __name__ == "__main__":
    main()
