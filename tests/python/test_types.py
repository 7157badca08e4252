# SPDX-License-Identifier: Apache-2.0
"""The package's types, checked by mypy --strict in a user's script."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from running_processes import HANG_S

import feedline
from feedline.data import literals, packed_sequences
from feedline.torch_loader.options import settings

GOOD = """\
import feedline

train = feedline.open("photos", missing="skip", verify="headers").collate("pad", fields="boxes").resize((16, 16))
for batch in train.loader(8, shuffle=True, on_error="skip", layout="NHWC", output="numpy", uneven="drop"):
    print(batch.image.shape, batch[0], len(batch), batch._fields)
    image, label = batch
print(next(iter(train.loader(8))).label, train[0].image, train.sample(0).image, [one.label for one in train])
def images_of(batch: feedline.Batch) -> object:
    return batch.image, batch._fields[0]
print(images_of(train[0]), images_of(next(iter(train.loader(8)))))
for anything in feedline.DataLoader(train, 8, num_workers="auto", on_error="replace", lower="require", uneven="exact"):
    print(anything[0])
packed = feedline.open("books.idx").pack_sequences(8192, long="drop")
for packs in packed.loader(8, shuffle=True, uneven="exact"):
    print(packs.input_ids, packs.max_seqlen)
def model(input_ids: object, labels: object, **more: object) -> None: ...
for arguments in packed.loader(8, preset="transformers", epochs=2):
    model(**arguments)
    longest: int = arguments["max_length_q"]
for inputs, labels in packed.loader(8, preset="torchtitan"):
    print(inputs["input"], inputs["positions"], labels)
for megatron in packed.loader(8, preset="megatron"):
    print(megatron["tokens"], megatron["loss_mask"], megatron["cu_seqlens"])
for thd in packed.loader(8, preset="thd"):
    print(thd["tokens"], thd["packed_seq_params"]["cu_seqlens_q"], thd["packed_seq_params"]["max_seqlen_q"] + 1)
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
    "balanced": 'train.loader(8, balanced="over")',
    "sample": 'train.sample(0, output="dlpack")',
    "collate": 'train.collate("padded")',
    "missing": 'feedline.open("photos", missing="ignore")',
    "verify": 'feedline.open("photos", verify="all")',
    "crowd": 'feedline.open("photos", crowd="drop")',
    "padding_mode": 'train.pad(1, padding_mode="wrap")',
    "fidelity": 'train.decode(fidelity="slow")',
    "method": 'train.pack_sequences(8, method="first_fit")',
    "DataLoader on_error": 'feedline.DataLoader(train, on_error="skp")',
    "DataLoader lower": 'feedline.DataLoader(train, lower="always")',
    "DataLoader uneven": 'feedline.DataLoader(train, uneven="drop")',
    "DataLoader worker_method": 'feedline.DataLoader(train, worker_method="threads")',
}
MISSPELT = [
    'feedline.opne("photos")',
    "feedline.Dataloader(train)",
    "feedline.DataSet",
    "train.random_resize_crop(8)",
    "from feedline import DataLoadr",
]
# reading these takes a minute
SKIPPED = "".join(f"[mypy-{name}.*]\nfollow_imports = skip\n" for name in ("numpy", "torch", "PIL"))
PACKED = {
    "preset": 'packed.loader(8, preset="trl")',
    "packed option": 'packed.loader(8, on_error="replace")',
    "key of a preset": 'next(iter(packed.loader(8, preset="transformers")))["tokens"]',
    "form of a preset": 'next(iter(packed.loader(8, preset="thd"))).tokens',
}


FIRST = 3  # first line of bad.py with a mistake
CODES = ("arg-type", "attr-defined")


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    """A folder with good.py, and bad.py, in which each line from the third on is a mistake."""
    (tmp_path / "good.py").write_text(GOOD)
    lines = ["import feedline", 'train = feedline.open("photos")', *BAD.values(), *MISSPELT]
    (tmp_path / "bad.py").write_text("\n".join(lines) + "\n")
    packed = 'packed = feedline.open("books.idx").pack_sequences(8)'
    (tmp_path / "bad_packed.py").write_text("\n".join(["import feedline", packed, *PACKED.values()]) + "\n")
    return tmp_path


def package_path() -> str:
    """The folder of an installation in place; empty if the package is in site-packages."""
    folder = Path(feedline.__file__).parents[1]
    return "" if folder.name == "site-packages" else str(folder)


def test_mypy_accepts_valid_calls_and_refuses_others(scripts: Path) -> None:
    pytest.importorskip("mypy")
    (scripts / "mypy.ini").write_text("[mypy]\n" + SKIPPED)
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--cache-dir",
        str(scripts / "cache"),
        "good.py",
        "bad.py",
        "bad_packed.py",
    ]
    environment = {**os.environ, "MYPYPATH": package_path()}
    done = subprocess.run(command, cwd=scripts, capture_output=True, text=True, env=environment, timeout=HANG_S)
    found = [line for line in done.stdout.splitlines() if ": error: " in line]
    assert [line for line in found if not line.startswith("bad")] == []
    packed = {int(line.split(":")[1]) for line in found if line.startswith("bad_packed.py")}
    assert packed == set(range(FIRST, FIRST + len(PACKED))), found
    found = [line for line in found if line.startswith("bad.py")]
    lines = {code: {int(line.split(":")[1]) for line in found if line.endswith(f"[{code}]")} for code in CODES}
    assert lines["arg-type"] == set(range(FIRST, FIRST + len(BAD))), found
    assert lines["attr-defined"] == set(range(FIRST + len(BAD), FIRST + len(BAD) + len(MISSPELT))), found


def test_pyright_accepts_valid_calls_and_refuses_others(scripts: Path) -> None:
    pytest.importorskip("basedpyright", reason="basedpyright, pyright in a wheel with Node.js, is not installed")
    project = {"typeCheckingMode": "strict", "extraPaths": [package_path()], "pythonVersion": "3.11"}
    (scripts / "pyrightconfig.json").write_text(json.dumps(project))
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "good.py", "bad.py"]
    done = subprocess.run(command, cwd=scripts, capture_output=True, text=True, timeout=HANG_S)
    found = [one for one in json.loads(done.stdout)["generalDiagnostics"] if one["severity"] == "error"]
    errors = [(Path(one["file"]).name, one["range"]["start"]["line"] + 1, one["rule"]) for one in found]
    # batches are Any: strict mode reports uses of an unknown type, which are not errors of the package
    assert [error for error in errors if error[0] != "bad.py" and not error[2].startswith("reportUnknown")] == []
    refused = {line for _, line, rule in errors if rule in ("reportArgumentType", "reportAttributeAccessIssue")}
    assert refused == set(range(FIRST, FIRST + len(BAD) + len(MISSPELT))), found


def test_options_of_packed_loaders_are_those_of_the_method() -> None:
    declared = packed_sequences.LoaderOptions.__annotations__
    parameters = inspect.signature(feedline.PackedSequences.loader).parameters
    assert set(declared) | {"self", "batch_size", "preset"} == set(parameters)
    for name, annotation in declared.items():
        assert annotation.__forward_arg__ == parameters[name].annotation, name


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
