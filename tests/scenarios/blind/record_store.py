# SPDX-License-Identifier: Apache-2.0
"""Thousands of tiny records in SQLite; some contain a patient's whole history and take long to parse."""

import json
import sqlite3

import torch
from planting import amount, planted, stored

RARE = 160


def fill(folder):
    long = json.dumps(
        [{"at": at, "codes": [at % 97, at % 31, at % 7], "note": f"visit {at}"} for at in range(amount(50_000, 9_000))]
    )
    with sqlite3.connect(folder / "records.db") as store:
        store.execute("create table record (id integer primary key, visits text, risk real)")
        store.executemany("insert into record values (?, ?, ?)", (
            (number, json.dumps([{"at": number % 50, "codes": [number % 97], "note": "visit"}]), number % 10 / 10)
            for number in range(8_000)
        ))  # fmt: skip
        store.execute("create table history (visits text)")
        store.execute("insert into history values (?)", (long,))
    store.close()


class Patients(torch.utils.data.Dataset):
    def __init__(self, folder, count):
        self.path, self.count, self.store = str(folder / "records.db"), count, None

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        self.store = self.store or sqlite3.connect(self.path)
        visits, risk = self.store.execute("select visits, risk from record where id = ?", (index % 8_000,)).fetchone()
        if index % RARE == 77 and planted("straggling_sample"):
            (visits,) = self.store.execute("select visits from history").fetchone()
        seen = torch.zeros(97)
        for visit in json.loads(visits):
            seen[visit["codes"][0]] = 1.0
        return seen, risk


if __name__ == "__main__":
    torch.set_num_threads(1)
    patients = Patients(stored("records", fill), amount(16 * 320, 96))
    model = torch.nn.Sequential(
        torch.nn.Linear(97, 1200),
        torch.nn.ReLU(),
        torch.nn.Linear(1200, 1200),
        torch.nn.ReLU(),
        torch.nn.Linear(1200, 1),
    )
    optimizer = torch.optim.Adam(model.parameters())
    for seen, risk in torch.utils.data.DataLoader(patients, batch_size=16, num_workers=2):
        optimizer.zero_grad()
        (model(seen).squeeze(1) - risk).square().mean().backward()
        optimizer.step()
