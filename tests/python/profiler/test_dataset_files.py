# SPDX-License-Identifier: Apache-2.0
"""Finds a dataset's files, their share in the page cache, and the speed of their disk."""

import json
import os
import threading

import pytest

pytest.importorskip("feedline", reason="the package is not installed")

from feedline import _engine
from feedline.diagnose.experiments import disk_probe
from feedline.profiler.dataset_files import FilesWatch, cached_share
from feedline.profiler.probe.opened_files import OpenedFiles


class Recorder:
    """Sees events like an audit hook."""

    def __init__(self, session):
        self.session, self.silent, self.in_worker, self.local = session, False, True, threading.local()

    def record(self, *event):
        pass

    def paid(self, took_ns):
        pass


@pytest.fixture
def photos(tmp_path):
    folder = tmp_path / "photos"
    folder.mkdir()
    for number in range(40):
        (folder / f"{number}.jpg").write_bytes(bytes(20_000))
    (folder / "labels.csv").write_text("a,b")
    return folder


def on_disk(folder):
    facts = _engine.look_at_files([str(path) for path in sorted(folder.iterdir())])
    if not facts[0]["device"]:
        pytest.skip("temporary files are on no local disk")
    return facts


def drop(folder):
    for path in folder.iterdir():
        with open(path, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def write_heard(session, *paths, end="\n"):
    (session / "77.files").write_text("\n".join(json.dumps(str(path)) for path in paths) + end)


def test_neighbours_tell_what_was_cached_before(photos, tmp_path):
    on_disk(photos)
    drop(photos)
    (photos / "3.jpg").read_bytes()
    write_heard(tmp_path, photos / "3.jpg")
    watch = FilesWatch(tmp_path)
    watch.look(os.listdir(tmp_path))
    for path in photos.glob("*.jpg"):
        path.read_bytes()
    found = watch.summary(watch.finish([]))
    # not more than one from each folder; labels.csv is of another kind
    assert found.seen == 1 and found.looked_at == 1 + 16
    assert found.cached_before == 0.0 and found.cached_after == 1.0
    assert found.median_bytes == 20_000 and found.devices


def test_a_line_that_is_being_written_waits_for_the_next_look(photos, tmp_path):
    write_heard(tmp_path, photos / "1.jpg", photos / "2.jpg", end="")
    watch = FilesWatch(tmp_path)
    watch.look(os.listdir(tmp_path))
    write_heard(tmp_path, photos / "1.jpg", photos / "2.jpg")
    paths = [facts["path"] for facts in watch.finish([str(photos / "labels.csv"), "/nowhere/module.py"])]
    assert {str(photos / name) for name in ("1.jpg", "2.jpg", "labels.csv")} <= set(paths)
    assert not [path for path in paths if path.endswith(".py")]


def test_nothing_seen_is_nothing_reported(tmp_path):
    watch = FilesWatch(tmp_path)
    assert watch.summary(watch.finish([str(tmp_path / "gone")])) is None
    assert cached_share([]) is None
    assert cached_share([{"bytes": 5, "cached_bytes": None}]) is None


def heard_by(opened, *events):
    for event in events:
        opened._gate.hook("open", event)
    opened._wrote_ns = 0
    opened.tell()


def test_only_what_is_opened_for_reading_is_noted(tmp_path):
    recorder = Recorder(tmp_path)
    opened = OpenedFiles(recorder)
    reading, writing = os.O_RDONLY | os.O_CLOEXEC, os.O_WRONLY | os.O_CREAT
    heard_by(
        opened, ("/data/1.jpg", "rb", reading), (b"/data/2.jpg", None, reading), (7, "rb", reading),
        ("/data/log", "w", writing), ("/usr/x.py", "r", reading), ("/proc/stat", "r", reading), (None, None, None),
    )  # fmt: skip
    opened._gate.hook("import", ("torch",))
    recorder.in_worker = False
    heard_by(opened, ("/data/3.jpg", "rb", reading))
    assert [json.loads(line) for line in next(tmp_path.glob("*.files")).read_text().splitlines()] == [
        "/data/1.jpg",
        "/data/2.jpg",
    ]
    opened.collected = set()
    heard_by(opened, ("/data/3.jpg", "rb", reading))
    assert opened.collected == {"/data/3.jpg"}


def test_a_long_run_writes_little(tmp_path):
    opened = OpenedFiles(Recorder(tmp_path))
    heard_by(opened, *((f"/data/{number}.jpg", "rb", 0) for number in range(20_000)))
    lines = next(tmp_path.glob("*.files")).read_text().splitlines()
    assert 32 * 8 <= len(lines) <= 32 * 16
    assert json.loads(lines[-1]) > "/data/1"  # not only the first


def test_the_first_name_is_written_at_once_and_others_together(tmp_path):
    opened = OpenedFiles(Recorder(tmp_path))

    def written():
        return len((tmp_path / f"{os.getpid()}.files").read_text().splitlines())

    hook = opened._gate.hook
    counts = []
    for number in range(10):
        hook("open", (f"/data/{number}.jpg", "rb", os.O_RDONLY))
        counts.append(written())
    assert counts == [1] * 8 + [9] * 2
    opened._wrote_ns = 2**62  # just now
    opened.tell()
    assert written() == 9
    opened._wrote_ns = 0
    opened.tell()
    assert written() == 10
    hook("open", ("/data/10.jpg", "rb", os.O_RDONLY))
    opened.write()  # an epoch has ended
    assert written() == 11


def test_the_hook_on_open_is_not_disturbed_by_what_it_is_called_with(tmp_path):
    """It is called for every audited event of the process, and the script would receive its exceptions."""
    opened = OpenedFiles(Recorder(tmp_path))
    for arguments in ((), ("open",), (7, ()), ("open", ()), ("open", (1, 2)), ("open", None), ("opener", ("/data/1",))):
        assert opened._gate.hook(*arguments) is None
    assert not list(tmp_path.glob("*.files"))


def test_the_disk_is_read_past_the_cache_and_left_as_it_was(photos):
    drop(photos)
    facts = on_disk(photos)
    before = {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in photos.iterdir()}
    drop(photos)
    found = disk_probe.probe(facts, 0.3)
    if found.refused:
        pytest.skip(found.refused)
    assert found.device == facts[0]["device"] and found.files == 40
    assert (
        0 <= found.bytes_per_s_low <= found.bytes_per_s <= found.bytes_per_s_high
    )  # an interval: 0 if the disk is busy
    assert found.bytes_per_s > 0
    assert 0 <= found.latency_ms_low <= found.latency_ms <= found.latency_ms_high and found.latency_ms > 0
    assert 1 < found.read_bytes <= 20_000
    assert cached_share(on_disk(photos)) == 0.0
    assert {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in photos.iterdir()} == before


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ([], "no file was opened"),
        ([{"path": "/x", "bytes": 9000, "device": ""}], "not on a local disk"),
        ([{"path": "/x", "bytes": 90, "device": "sda"}], "smaller than a block"),
        ([{"path": "/nowhere/x", "bytes": 9000, "device": "sda"}], "No such file"),
    ],
)
def test_where_there_is_no_disk_to_read_the_reason_is_given(facts, why):
    found = disk_probe.probe(facts, 0.1)
    assert found.bytes_per_s is None and why in found.refused
