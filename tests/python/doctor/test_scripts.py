# SPDX-License-Identifier: Apache-2.0
"""In scripts with one mistake each, the mistake is reported first, with its line. In scripts without mistakes, nothing
is reported.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from made_hosts import GPU_HOST, MadeGpus, build
from planted_scripts import PLANTED, SOUND, Planted

from feedline.doctor.evaluation import evaluate
from feedline.doctor.examination import examine
from feedline.doctor.script.command import parsed
from feedline.findings import Finding


def found(planted: Planted, folder: Path) -> tuple[Finding, ...]:
    path = folder / "train.py"
    path.write_text(planted.text)
    root, _ = build(GPU_HOST, folder)
    seen = examine(root, MadeGpus(GPU_HOST), {}, None, [*planted.launcher, str(path), *planted.words])
    return evaluate(replace(seen.analysis, machine=replace(seen.analysis.machine, python=planted.python)))


@pytest.mark.parametrize(("code", "planted"), PLANTED.values(), ids=PLANTED)
def test_a_mistake_is_named_first_with_its_line(code: str, planted: Planted, tmp_path: Path) -> None:
    first, *_ = found(planted, tmp_path)
    assert first.code == code
    if planted.line:
        number = planted.text.rindex(planted.line)
        assert f"line {planted.text.count(chr(10), 0, number) + 1}" in first.text


@pytest.mark.parametrize("planted", SOUND.values(), ids=SOUND)
def test_nothing_is_reported_for_a_sound_script(planted: Planted, tmp_path: Path) -> None:
    assert [(finding.code, finding.evidence) for finding in found(planted, tmp_path)] == []


def test_copies_that_do_not_wait_are_not_pageable_copies(tmp_path: Path) -> None:
    text = PLANTED["neither page-locked nor waited for"][1].text
    assert "pageable_copies" in {one.code for one in found(Planted(text), tmp_path)}
    without_waiting = text.replace(".to(device)", ".to(device, non_blocking=True)")
    for other in (without_waiting, text.replace("num_workers=4", "num_workers=4, pin_memory=False")):
        assert "pageable_copies" not in {one.code for one in found(Planted(other), tmp_path)}


def test_a_clock_without_workers_times_both_one_after_the_other(tmp_path: Path) -> None:
    planted = PLANTED["a clock read after the step"][1]
    assert "step_timed_as_loading" in {one.code for one in found(planted, tmp_path)}
    alone = replace(planted, text=planted.text.replace("num_workers=4", "num_workers=0"))
    assert "step_timed_as_loading" not in {one.code for one in found(alone, tmp_path)}


@pytest.mark.parametrize(
    ("data", "words"),
    [(b"\xff\xfe\0bad", "train.py"), (b"x = (" * 3000, "train.py"), (b"a\0b", "train.py"), (b"if x:\n", "line 1")],
)
def test_what_is_no_python_is_a_finding(data: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_bytes(data)
    root, _ = build(GPU_HOST, tmp_path)
    (finding,) = examine(root, MadeGpus(GPU_HOST), {}, None, ["python", str(path)]).findings
    assert (finding.code, finding.severity) == ("script_unreadable", "error") and words in finding.text


def test_a_script_that_is_not_there_is_a_finding(tmp_path: Path) -> None:
    root, _ = build(GPU_HOST, tmp_path)
    (finding,) = examine(root, MadeGpus(GPU_HOST), {}, None, ["python", "none.py"]).findings
    assert finding.code == "script_unreadable" and "none.py" in finding.text


def test_a_command_without_a_script_is_reported_as_not_seen(tmp_path: Path) -> None:
    root, _ = build(GPU_HOST, tmp_path)
    seen = examine(root, MadeGpus(GPU_HOST), {}, None, ["python", "-m", "train"])
    assert not seen.findings and any("does not name a Python file" in sentence for sentence in seen.unseen)


def test_ranks_come_from_the_launcher() -> None:
    command = parsed(["torchrun", "--nproc_per_node=8", "train.py", "--epochs", "3"])
    assert (command.script, command.arguments, command.ranks) == ("train.py", ("--epochs", "3"), 8)
    assert parsed(["accelerate", "launch", "--num_processes", "2", "t.py"]).ranks == 2
    assert parsed(["python", "train.py", "--nproc_per_node", "8"]).ranks is None


_DATA = """
import sqlite3, threading, requests, multiprocessing
from torch.utils.data import Dataset
from .bases import Base

class Photos(Dataset):
    def __init__(self):
        self.rows = sqlite3.connect("rows.db")
    def __len__(self): return 10
    def __getitem__(self, i):
        with multiprocessing.Pool(2) as pool:
            return decode(pool, i)

def decode(pool, i):
    return requests.get(f"http://host/{i}")

class Unused(Dataset):
    def __init__(self): self.lock = threading.Lock()
    def __getitem__(self, i): return i

class Derived(Base):
    pass

def collate(batch):
    return torch_stack(batch).cuda()
"""
_BASES = """
from torch.utils.data import Dataset
class Base(Dataset):
    def __init__(self):
        self.file = open("data.bin")
    def __getitem__(self, i):
        return self.file.read(i)
"""
_SCRIPT = """
from torch.utils.data import DataLoader
{imports}
def main():
    loader = DataLoader({dataset}, batch_size=64, num_workers=4{more})
    for images, labels in loader:
        step(images, labels)
if __name__ == "__main__":
    main()
"""


def found_beside(folder: Path, imports: str, dataset: str, more: str = "", data: str = _DATA) -> list[tuple[str, str]]:
    """Returns the codes and evidence for a script next to a package with datasets."""
    (folder / "mydata").mkdir()
    (folder / "mydata/__init__.py").write_text("")
    (folder / "mydata/photos.py").write_text(data)
    (folder / "mydata/bases.py").write_text(_BASES)
    findings = found(Planted(_SCRIPT.format(imports=imports, dataset=dataset, more=more)), folder)
    return [(one.code, one.text) for one in findings]


@pytest.mark.parametrize(
    ("imports", "dataset"),
    [
        ("from mydata.photos import Photos", "Photos()"),
        ("from mydata.photos import Photos as P", "P()"),
        ("from mydata import photos", "photos.Photos()"),
        ("import mydata.photos", "mydata.photos.Photos()"),
        ("import mydata.photos as p", "p.Photos()"),
        ("from mydata.photos import *", "Photos()"),
    ],
)
def test_a_dataset_of_another_file_is_read_there(imports: str, dataset: str, tmp_path: Path) -> None:
    reported = dict(found_beside(tmp_path, imports, dataset))
    assert (
        "mydata/photos.py, line 8: the dataset stores a connection (sqlite3.connect)"
        in reported["connection_in_dataset"]
    )
    assert "mydata/photos.py, line 11: multiprocessing.Pool" in reported["nested_pool"]
    assert "mydata/photos.py, line 15: requests.get" in reported["network_in_dataset"], "by a function that it calls"


def test_a_pool_and_a_video_one_import_further_are_found(tmp_path: Path) -> None:
    (tmp_path / "mydata").mkdir()
    (tmp_path / "mydata/deep.py").write_text(
        "import cv2\nfrom concurrent.futures import ProcessPoolExecutor\n"
        "def run(i):\n    with ProcessPoolExecutor() as pool:\n        return pool.submit(cv2.VideoCapture, i)\n"
        "def frames(path):\n    return cv2.VideoCapture(path)\n"
    )
    (tmp_path / "mydata/between.py").write_text(
        "from .deep import run, frames\ndef decode(i):\n    return run(i)\ndef film(i):\n    return frames(i)\n"
    )
    (tmp_path / "mydata/__init__.py").write_text("")
    (tmp_path / "mydata/photos.py").write_text(
        "from torch.utils.data import Dataset\nfrom .between import decode\nfrom . import between\n"
        "class Photos(Dataset):\n    def __getitem__(self, i):\n        return decode(i), between.film(i)\n"
    )
    text = _SCRIPT.format(imports="from mydata.photos import Photos", dataset="Photos()", more="")
    told = {(one.code, one.text) for one in found(Planted(text), tmp_path)}
    pool = "mydata/deep.py, line 4: concurrent.futures.ProcessPoolExecutor in code that workers run"
    assert ("nested_pool", pool) in told
    assert ("video_in_dataset", "mydata/deep.py, line 7: cv2.VideoCapture in code that workers run") in told


def test_what_the_script_does_not_use_is_not_reported(tmp_path: Path) -> None:
    reported = found_beside(tmp_path, "from mydata.photos import Photos, Unused", "[1, 2]")
    assert reported == [], "imported and never made"
    (tmp_path / "again").mkdir()
    reported = found_beside(tmp_path / "again", "from mydata.photos import Photos", "Photos()")
    assert not any("a lock" in text for _, text in reported)


def test_functions_that_the_loop_calls_are_no_workers(tmp_path: Path) -> None:
    """collate uses a GPU, which is correct if the script calls it itself."""
    imports = "from mydata.photos import collate\ncollate([])"
    assert found_beside(tmp_path, imports, "[1, 2]") == []


def test_a_base_class_and_a_collate_function_are_followed(tmp_path: Path) -> None:
    more = ", collate_fn=collate"
    reported = found_beside(tmp_path, "from mydata.photos import Derived, collate", "Derived()", more)
    assert ("connection_in_dataset", "mydata/bases.py, line 5: the dataset stores an open file (open)") in reported
    assert any(code == "cuda_in_worker" and "mydata/photos.py, line 25" in text for code, text in reported)


@pytest.mark.parametrize("data", ["def (", "\0", "class Photos(" * 400])
def test_a_file_next_to_it_that_is_not_python_is_reported_as_not_seen(data: str, tmp_path: Path) -> None:
    assert found_beside(tmp_path, "from mydata.photos import Photos", "Photos()", data=data) == []
    root, _ = build(GPU_HOST, tmp_path)
    seen = examine(root, MadeGpus(GPU_HOST), {}, None, ["python", str(tmp_path / "train.py")])
    assert any("mydata/photos.py" in one and "cannot be parsed" in one for one in seen.unseen)


def test_loaders_that_other_files_make_are_reported_as_not_read(tmp_path: Path) -> None:
    data = "from torch.utils.data import DataLoader\ndef make():\n    return DataLoader([1], num_workers=9)\n"
    found_beside(tmp_path, "from mydata.photos import make", "make()", data=data)
    root, _ = build(GPU_HOST, tmp_path)
    seen = examine(root, MadeGpus(GPU_HOST), {}, None, ["python", str(tmp_path / "train.py")])
    assert any("the DataLoader in mydata/photos.py, line 3" in one for one in seen.unseen)


def test_files_that_import_each_other_end(tmp_path: Path) -> None:
    data = _DATA.replace("from .bases import Base", "from .bases import Base\nimport mydata.photos")
    assert found_beside(tmp_path, "from mydata.photos import Photos", "Photos()", data=data)
