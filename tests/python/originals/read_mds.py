# SPDX-License-Identifier: Apache-2.0
"""Prints what streaming reads of the MDS dataset in argv[1], a sample as its values in hexadecimal or JSON."""

import json
import sys

import numpy as np
from PIL import Image
from streaming import StreamingDataset


def shown(value):
    if isinstance(value, np.ndarray):
        return [value.dtype.name, list(value.shape), value.tobytes().hex()]
    if isinstance(value, Image.Image):
        return shown(np.asarray(value))
    if isinstance(value, bytes):
        return value.hex()
    return value.item() if isinstance(value, np.generic) else value


dataset = StreamingDataset(local=sys.argv[1], shuffle=False, batch_size=1)
print(json.dumps([{name: shown(value) for name, value in row.items()} for row in dataset]))
