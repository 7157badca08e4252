# SPDX-License-Identifier: Apache-2.0
"""An IterableDataset over JSON lines, divided between two workers, with a shuffle buffer."""

import json
import random

import torch

LINE = json.dumps({"events": [{"kind": f"k{i % 9}", "at": i * 1.5, "values": [i, i + 1, i + 2]} for i in range(300)]})


class Lines(torch.utils.data.IterableDataset):
    def __iter__(self):
        worker = torch.utils.data.get_worker_info()
        buffer, draw = [], random.Random(worker.id)
        for _number in range(worker.id, 3600, worker.num_workers):
            record = json.loads(LINE)
            buffer.append(torch.tensor([event["at"] for event in record["events"]]))
            if len(buffer) > 50:
                yield buffer.pop(draw.randrange(len(buffer)))
        yield from buffer


if __name__ == "__main__":
    torch.set_num_threads(1)
    model = torch.nn.Linear(300, 1)
    for batch in torch.utils.data.DataLoader(Lines(), batch_size=24, num_workers=2):
        model(batch).mean().backward()
