#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# albumentationsx 2.5.1: Compose(seed=1) draws the same numbers in every run of a program, but not in the worker processes
# of torch's DataLoader: there they depend on torch's base seed as well, so two runs differ without torch.manual_seed().
# shellcheck source=findings/environment
. "$(dirname "${BASH_SOURCE[0]}")/environment"
install albumentationsx==2.5.1 opencv-python-headless==5.0.0.93 numpy==2.4.6 torch==2.13.0

cat >run.py <<'PYTHON'
import sys

import albumentations
import numpy as np
import torch


class Crops(torch.utils.data.Dataset):
    def __init__(self):
        self.transform = albumentations.Compose([albumentations.RandomCrop(4, 4)], seed=1)
        self.image = np.arange(64 * 64, dtype=np.float32).reshape(64, 64, 1)

    def __len__(self):
        return 8

    def __getitem__(self, index):
        return int(self.transform(image=self.image)["image"][0, 0, 0])


workers, seed = int(sys.argv[1]), sys.argv[2]
if seed != "unseeded":
    torch.manual_seed(int(seed))
print([int(value) for batch in torch.utils.data.DataLoader(Crops(), batch_size=4, num_workers=workers) for value in batch])
PYTHON

same() { [ "$(python run.py "$@")" = "$(python run.py "$@")" ] && echo "the same" || echo "others"; }
{
  echo "two runs without workers: $(same 0 unseeded)"
  echo "two runs with two workers: $(same 2 unseeded)"
  echo "two runs with two workers and torch.manual_seed(5): $(same 2 5)"
} | expect "two runs without workers: the same
two runs with two workers: others
two runs with two workers and torch.manual_seed(5): the same"
