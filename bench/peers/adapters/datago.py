# SPDX-License-Identifier: Apache-2.0
"""datago: crops the central square and resizes it in its own threads; it has no random crop. It returns single Pillow
images, from which this adapter makes batches.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
from datago import DatagoClient, initialize_logging
from work import SIZE, Work, refuse

from adapters import pillow

DISTRIBUTIONS = ("datago", "pillow", "numpy")


def make(work: Work) -> Any:
    refuse(work.train, "has no random_resized_crop")
    os.environ["DATAGO_MAX_TASKS"] = str(work.threads)
    initialize_logging(log_level="error")
    count = len(work.files()[0])
    client = DatagoClient(
        json.dumps(
            {
                "source_type": "file",
                "source_config": {"root_path": work.folder, "random_sampling": False},
                "image_config": {
                    "crop_and_resize": True,
                    "default_image_size": SIZE,
                    "downsampling_ratio": SIZE,
                    "min_aspect_ratio": 1.0,
                    "max_aspect_ratio": 1.0,
                },
                "limit": count,
                "samples_buffer_size": 2 * work.batch,
            }
        )
    )

    def pictures() -> Iterator[Any]:
        while (sample := client.get_sample()) is not None:
            yield pillow.array(sample.image.convert("RGB"), work)

    def epoch() -> Iterator[Any]:
        client.start()
        found = pictures()
        while len(batch := list(itertools.islice(found, work.batch))) == work.batch:
            yield np.stack(batch)

    return epoch
