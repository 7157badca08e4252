# SPDX-License-Identifier: Apache-2.0
"""Cross-validation over scans in one zip file: for each fold workers are started by a fork server, in which they import
everything anew, and then they decode; rare classes are drawn more often.
"""

import io
import os
import zipfile

import numpy as np
import torch
from PIL import Image
from planting import amount, planted, stored

SIDE, FOLDS = 768, 3


def scan(folder):
    noise = np.random.default_rng(12)
    with zipfile.ZipFile(folder / "plates.zip", "w") as archive:
        for number in range(24):
            coarse = Image.fromarray(noise.integers(0, 255, (SIDE // 6, SIDE // 6, 3), dtype=np.uint8))
            encoded = io.BytesIO()
            coarse.resize((SIDE, SIDE), Image.BICUBIC).save(encoded, "WEBP", quality=85)
            archive.writestr(f"{number % 5}/{number:03}.webp", encoded.getvalue())


class Plates(torch.utils.data.Dataset):
    """Every process opens the archive itself."""

    def __init__(self, folder):
        self.path, self.opened_by, self.small = str(folder / "plates.zip"), None, {}
        with zipfile.ZipFile(self.path) as archive:
            self.names = archive.namelist() * 20
        if not planted("cpu_decode"):
            self.small = {name: self.decoded(name) for name in set(self.names)}

    def __len__(self):
        return len(self.names)

    def decoded(self, name):
        if self.opened_by != os.getpid():
            self.archive, self.opened_by = zipfile.ZipFile(self.path), os.getpid()
        with Image.open(io.BytesIO(self.archive.read(name))) as plate:
            return np.asarray(plate.convert("RGB").reduce(16), dtype=np.float32) / 255

    def __getitem__(self, index):
        name = self.names[index]
        plate = self.small[name] if self.small else self.decoded(name)
        return torch.from_numpy(plate.copy()), int(name.split("/")[0])

    def __getstate__(self):
        return self.__dict__ | {"archive": None, "opened_by": None}


def loader_of(fold, plates):
    chosen = [index for index in range(len(plates)) if index % FOLDS != fold]
    weights = [3.0 if index % 5 == 4 else 1.0 for index in chosen]
    drawn = torch.utils.data.WeightedRandomSampler(weights, amount(192, 16))
    start = "forkserver" if planted("worker_startup") else "fork"
    return torch.utils.data.DataLoader(
        torch.utils.data.Subset(plates, chosen),
        8,
        sampler=drawn,
        num_workers=amount(2, 1),
        multiprocessing_context=start,
    )


if __name__ == "__main__":
    torch.set_num_threads(1)
    plates = Plates(stored("plates", scan))
    for fold in range(amount(FOLDS, 1)):
        model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear((SIDE // 16) ** 2 * 3, 5))
        optimizer = torch.optim.SGD(model.parameters(), 1e-3)
        for plate, kind in loader_of(fold, plates):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(plate), kind).backward()
            optimizer.step()
