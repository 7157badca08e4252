# SPDX-License-Identifier: Apache-2.0
"""Each sample is a file on storage that answers late."""

import torch
from late_files import LateFiles
from work import Samples, gpu_step

if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(Samples(480, LateFiles(12)), batch_size=8, num_workers=2)
    for _batch in loader:
        gpu_step(2)
