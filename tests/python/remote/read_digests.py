# SPDX-License-Identifier: Apache-2.0
"""`python read_digests.py SOURCE [CACHE]`: prints a digest of two epochs of training over SOURCE, as JSON."""

from __future__ import annotations

import hashlib
import json
import sys

import numpy as np

import feedline


def digest(source: str, cache: str | None = None) -> dict[str, str | int]:
    data = feedline.open(source, **({"cache": cache, "cache_limit": "1 GiB"} if cache else {}))
    chain = data.random_resized_crop(32).random_horizontal_flip()
    sums, samples = hashlib.sha256(), 0
    with chain.loader(5, shuffle=True, seed=3, output="numpy", num_workers=2) as loader:
        for _ in range(2):
            for batch in loader:
                samples += len(batch[1])
                for field in batch:
                    sums.update(np.asarray(field).tobytes())
    return {"digest": sums.hexdigest(), "samples": samples, "fingerprint": data.fingerprint}


if __name__ == "__main__":
    print(json.dumps(digest(*sys.argv[1:])))
