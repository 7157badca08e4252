# SPDX-License-Identifier: Apache-2.0
"""The package's types, checked by mypy --strict in a user's script."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from running_processes import HANG_S

import feedline
from feedline.data import literals
from feedline.torch_loader.options import settings

pytest.importorskip("mypy")

GOOD = """\
import feedline

train = feedline.open("photos", missing="skip", verify="headers").collate("pad", fields="boxes").resize((16, 16))
for batch in train.loader(8, shuffle=True, on_error="skip", layout="NHWC", output="numpy", uneven="drop"):
    print(batch.image.shape, batch[0], len(batch), batch._fields)
    image, label = batch
print(next(iter(train.loader(8))).label, train[0].image, train.sample(0).image, [one.label for one in train])
for anything in feedline.DataLoader(train, 8, num_workers="auto", on_error="replace", lower="require", uneven="exact"):
    print(anything[0])
"""
BAD = {
    "on_error": 'train.loader(8, on_error="skp")',
    "layout": 'train.loader(8, layout="NWHC")',
    "output": 'train.loader(8, output="jax")',
    "uneven": 'train.loader(8, uneven="even")',
    "mix_mode": 'train.loader(8, mixup=0.1, mix_mode="rows")',
    "partner": 'train.loader(8, mixup=0.1, partner="next")',
    "num_workers": 'train.loader(8, num_workers="all")',
    "shuffle": 'train.loader(8, shuffle="files")',
    "sample": 'train.sample(0, output="dlpack")',
    "collate": 'train.collate("padded")',
    "missing": 'feedline.open("photos", missing="ignore")',
    "verify": 'feedline.open("photos", verify="all")',
    "crowd": 'feedline.open("photos", crowd="drop")',
    "padding_mode": 'train.pad(1, padding_mode="wrap")',
    "fidelity": 'train.decode(fidelity="slow")',
    "DataLoader on_error": 'feedline.DataLoader(train, on_error="skp")',
    "DataLoader lower": 'feedline.DataLoader(train, lower="always")',
    "DataLoader uneven": 'feedline.DataLoader(train, uneven="drop")',
    "DataLoader worker_method": 'feedline.DataLoader(train, worker_method="threads")',
}
# reading these takes a minute
SKIPPED = "".join(f"[mypy-{name}.*]\nfollow_imports = skip\n" for name in ("numpy", "torch", "PIL"))


def test_mypy_takes_what_runs_and_refuses_other_words(tmp_path: Path) -> None:
    (tmp_path / "good.py").write_text(GOOD)
    lines = ["import feedline", 'train = feedline.open("photos")', *BAD.values()]
    (tmp_path / "bad.py").write_text("\n".join(lines) + "\n")
    (tmp_path / "mypy.ini").write_text("[mypy]\n" + SKIPPED)
    place = Path(feedline.__file__).parents[1]
    path = "" if place.name == "site-packages" else str(place)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "good.py", "bad.py"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, env={**os.environ, "MYPYPATH": path}, timeout=HANG_S
    )
    found = [line for line in done.stdout.splitlines() if ": error: " in line]
    assert [line for line in found if not line.startswith("bad.py")] == []
    refused = {int(line.split(":")[1]) for line in found if "[arg-type]" in line}
    assert refused == set(range(3, 3 + len(BAD))), found


def test_words_are_those_of_the_checks() -> None:
    for name, alias in (
        ("on_error", literals.OnError),
        ("lower", literals.Lower),
        ("worker_method", literals.WorkerMethod),
    ):
        assert alias.__args__ == settings._CHOICES[name]
    data = feedline.arrays(x=np.zeros((2, 1)))
    for name, alias in (("uneven", literals.Uneven), ("on_error", literals.OnError), ("layout", literals.Layout)):
        for word in alias.__args__:
            data.loader(1, output="numpy", num_workers=1, **{name: word})
        with pytest.raises(feedline.ConfigError, match=name):
            data.loader(1, output="numpy", num_workers=1, **{name: "other"})
