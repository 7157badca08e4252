# SPDX-License-Identifier: Apache-2.0
"""If the run read from the disk, the ladder does too: files are removed from the page cache when they are opened."""

import math
import mmap
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from feedline import _engine
from feedline.diagnose.experiments import cold_files, text
from feedline.diagnose.experiments.after_run import read_from_disk
from feedline.diagnose.experiments.cold_files import ColdFiles
from feedline.profiler.dataset_files import DatasetFiles
from feedline.profiler.experiments import Experiments, Rung

BYTES = 64 << 10


@pytest.fixture
def paths(tmp_path):
    paths = [tmp_path / f"{number}.bin" for number in range(4)]
    for path in paths:
        path.write_bytes(os.urandom(BYTES))
        with path.open("rb") as file:
            os.fsync(file.fileno())
    if not facts_of(paths[0])["device"]:
        pytest.skip("temporary files are on no local disk")
    return [str(path) for path in paths]


def facts_of(path):
    return _engine.look_at_files([str(path)])[0]


def test_a_file_is_dropped_each_time_that_it_is_opened(paths):
    cold = ColdFiles()
    for _ in range(2):
        assert facts_of(paths[0])["cached_bytes"] == BYTES
        cold.add(paths[0])
        assert facts_of(paths[0])["cached_bytes"] == 0
        with open(paths[0], "rb") as file:
            assert len(file.read()) == BYTES
    assert facts_of(paths[1])["cached_bytes"] == BYTES  # nobody opened it
    assert cold.warm_because is None


def test_beyond_a_gibibyte_files_are_left_and_it_is_reported(paths, monkeypatch):
    monkeypatch.setattr(cold_files, "MOST_BYTES", 2 * BYTES)
    cold = ColdFiles()
    for path in paths:
        cold.add(path)
    assert [facts_of(path)["cached_bytes"] for path in paths] == [0, 0, BYTES, BYTES]
    assert "1 GiB" in cold.warm_because


def test_files_that_stay_open_are_dropped_before_a_rung_and_mapped_ones_cannot_be(paths, monkeypatch):
    everything = cold_files.open_for_reading  # includes files that other tests of this process left open
    monkeypatch.setattr(cold_files, "open_for_reading", lambda: [path for path in everything() if path in paths])
    with open(paths[0], "rb") as file:
        cold = ColdFiles()
        cold.drop_open()
        assert facts_of(paths[0])["cached_bytes"] == 0 and cold.warm_because is None
        with mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
            assert len(mapped[:]) == BYTES
            cold.drop_open()
    assert "mapped" in cold.warm_because


HEARD = """
import sys, types
from feedline import _engine
from feedline.diagnose.experiments import cold_files
from feedline.profiler.probe.opened_files import OpenedFiles
opened = OpenedFiles(types.SimpleNamespace(in_worker=False, local=None, silent=True))
opened.listen()
assert cold_files.listen(opened, False) is None and opened.collected is None
cold_files.listen(opened, True)
for _ in range(2):
    file = open(sys.argv[1], "rb")
    print(_engine.look_at_files(sys.argv[1:])[0]["cached_bytes"])
    file.read()
"""


def test_the_hook_on_open_hears_of_files_and_not_of_its_own(paths):
    done = subprocess.run([sys.executable, "-c", HEARD, paths[0]], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "0"]


def test_a_run_was_cold_if_its_files_were_and_its_bytes_came_from_disks():
    files = DatasetFiles(100, 100, BYTES, ("sda",), False, cached_before=0.1, cached_after=1.0)
    rows = [{"pid": 1, "read_bytes": 10, "device_bytes": 8}, {"pid": 2, "read_bytes": 20, "device_bytes": 16}]
    rows = [{"pid": 1, "read_bytes": 0, "device_bytes": 0}, *rows]
    assert read_from_disk({"processes": rows}, files)
    assert not read_from_disk({"processes": rows}, replace(files, cached_before=0.9))
    assert not read_from_disk({"processes": rows}, replace(files, cached_before=None))
    assert not read_from_disk({"processes": rows}, None)
    cached = [{"pid": 1, "read_bytes": 30, "device_bytes": 3}]
    assert not read_from_disk({"processes": cached}, files)
    assert not read_from_disk({}, files)


def test_the_text_reports_where_rungs_read_from():
    rungs = [Rung(1, 10.0, 9.0, 11.0, 20, kept=True)]
    assert any("evicted from the page cache" in line for line in text.lines(Experiments(rungs, cold=True), {1: 11.0}))
    warm = text.lines(Experiments(rungs, warm_because="more than 1 GiB of files was read"), {})
    assert any("from the page cache" in line and "1 GiB" in line for line in warm)
    assert not any("page cache" in line for line in text.lines(Experiments(rungs), {1: 11.0}))


def test_predictions_of_rungs_are_in_one_column():
    rungs = [Rung(0, 5.1, 4.9, 5.2, 20), Rung(4, 20.6, 19.5, 21.8, 20), Rung(8, 30.0, math.nan, math.nan, 2)]
    ladder = text.lines(Experiments(rungs), {0: 5.7, 4: 22.6, 8: 45.2})[1:4]
    assert (
        len({line.index(model) + len(model) for line, model in zip(ladder, ("5.7", "22.6", "45.2"), strict=True)}) == 1
    )
