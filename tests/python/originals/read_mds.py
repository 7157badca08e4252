# SPDX-License-Identifier: Apache-2.0
"""Prints what streaming reads of the MDS dataset in argv[1], a sample as its values in hexadecimal or JSON."""

import json
import sys

from streaming_here import StreamingDataset, shown

dataset = StreamingDataset(local=sys.argv[1], shuffle=False, batch_size=1)
print(json.dumps([{name: shown(value) for name, value in row.items()} for row in dataset]))
