# SPDX-License-Identifier: Apache-2.0
"""A stored sample whose size is given as huge is a bad sample: its error names it, and no memory is allocated for
it.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import textwrap
from pathlib import Path

import made_data
import pytest
from running_processes import HANG_S

import feedline

TERABYTE = 1 << 40
MIB = 1 << 20


def grown(path: Path, size: int) -> Path:
    try:
        with path.open("r+b") as file:
            file.truncate(size)
    except OSError as error:
        pytest.skip(f"no file of {size} bytes on this file system: {error}")
    return path


@pytest.fixture
def huge_folder(tmp_path: Path) -> Path:
    """21 photos; birch/003.jpg is a sparse file of a terabyte."""
    root = made_data.make_folder(tmp_path / "train")
    (root / "birch/003.jpg").write_bytes(b"")
    grown(root / "birch/003.jpg", TERABYTE)
    return root


@pytest.fixture
def huge_tar(tmp_path: Path) -> Path:
    """21 photos in a tar; birch_003 is a hole of a terabyte."""
    folder = made_data.make_folder(tmp_path / "for_tar")
    path = tmp_path / "huge.tar"
    with path.open("wb") as file:
        for photo in sorted(folder.glob("*/*.jpg")):
            key = f"{photo.parent.name}_{photo.stem}"
            label = str(made_data.CLASSES.index(photo.parent.name)).encode()
            for name, content in ((f"{key}.cls", label), (f"{key}.jpg", photo.read_bytes())):
                huge = name == "birch_003.jpg"
                member = tarfile.TarInfo(name)
                member.size = TERABYTE if huge else len(content)
                file.write(member.tobuf(tarfile.GNU_FORMAT))
                if huge:
                    file.seek(TERABYTE, 1)
                else:
                    file.write(content + bytes(-len(content) % 512))
        try:
            file.truncate(file.tell() + 1024)
        except OSError as error:
            pytest.skip(f"no file of a terabyte on this file system: {error}")
    return path


SCRIPT = """
import resource, sys
import numpy  # before the limit: its libraries reserve address space
import feedline
import feedline.testing

source, on_error, reads = sys.argv[1:]
feedline.testing.force(read_ahead=reads)
dataset = feedline.open(source).resize((8, 8))
loader = dataset.loader(2, output="numpy", num_workers=3, on_error=on_error, memory_budget=8 << 20)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
# more than what is there plus a gigabyte cannot be had: an allocation by the file's word would fail
space = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (space + (1 << 30), resource.RLIM_INFINITY))
rows, errors = 0, []
for epoch in range(2):
    iterator = iter(loader)
    while True:
        try:
            rows += len(next(iterator).label)
        except StopIteration:
            break
        except feedline.DataError as error:
            errors.append(error)
assert len(errors) == (2 if on_error == "raise" else 0)
for sample in loader.errors:
    print(sample.key, sample.stage, sample.message)
print(rows)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.parametrize("reads", ["never", "always", "threads"])
@pytest.mark.parametrize("on_error", ["raise", "skip", "replace"])
@pytest.mark.parametrize("source", ["folder", "tar"])
def test_a_terabyte_is_that_samples_error(
    source: str, on_error: str, reads: str, request: pytest.FixtureRequest, environment: dict[str, str]
) -> None:
    path = request.getfixturevalue(f"huge_{source}")
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SCRIPT), str(path), on_error, reads],
        env=environment,
        capture_output=True,
        text=True,
        timeout=HANG_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    *bad, rows, kilobytes = done.stdout.splitlines()
    key = "birch/003.jpg" if source == "folder" else "birch_003"
    assert len(bad) == 2, "once an epoch"
    for line in bad:
        assert line.startswith(f"{key} storage the sample has 1099511"), line  # with a header between its members
        assert f"over the limit of {256 * MIB}" in line
        assert "raise memory_budget" in line
    # a batch of two is lost with its bad sample; with skip, the epoch is one sample shorter; with replace, it is not
    assert int(rows) == {"raise": 2 * 19, "skip": 2 * 20, "replace": 2 * 21}[on_error]
    assert int(kilobytes) < 200 * 1024


def test_single_samples_too(huge_folder: Path, huge_tar: Path) -> None:
    for source in (huge_folder, huge_tar):
        dataset = feedline.open(source).resize((8, 8))
        with pytest.raises(feedline.DataError, match=r"has 10995116\d{5} bytes, over the limit of"):
            dataset[10]
        assert dataset[11] is not None


def test_what_the_budget_holds_continues_working(tmp_path: Path) -> None:
    """A photo with much data after its end: above the limit for small budgets, and within that for a large one."""
    root = made_data.make_folder(tmp_path / "train", per_class=1)
    grown(root / "birch/000.jpg", 300 * MIB)
    dataset = feedline.open(root).resize((8, 8))
    for budget in (None, 512 * MIB):
        with dataset.loader(3, output="numpy", memory_budget=budget, on_error="skip", num_workers=1) as loader:
            rows = sum(len(batch.label) for batch in loader)
            limit = loader.stats()["budget_bytes"]
            assert rows == (3 if limit >= 300 * MIB else 2)
    with dataset.loader(3, output="numpy", memory_budget=MIB) as loader, pytest.raises(feedline.DataError) as failed:
        list(loader)
    assert failed.value.key == "birch/000.jpg"
    assert f"has {300 * MIB} bytes, over the limit of {256 * MIB}" in str(failed.value)
