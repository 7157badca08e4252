# SPDX-License-Identifier: Apache-2.0
"""Waits for remote storage are reported, whether a library, a program or Feedline's client sends the requests."""

import shutil
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from made_data import make_folder, write_tar
from range_server import serving
from summaries import HALF, LOADER, OF_STORE, stages, summary
from watched import recorded

from feedline.diagnose import verdict
from feedline.profiler.probe import system_calls, wait_sampler
from feedline.profiler.summary import timeline
from feedline.profiler.summary.figures import Store, WaitedFor

KNOWN = pytest.mark.skipif(not system_calls.are_known(), reason="this kernel does not tell in what call a thread is")
LATENCY_S = 0.03
NATIVE = {**LOADER, "class": "feedline.Loader", "native": True}
# a batch has 32 samples, and there are 200 batches
STORE = Store("store.example:443", 6400, 6400 * 110_000, 50.3, 80e6)


def codes(measured):
    return [found.code for found in verdict.evaluate(measured).verdicts]


@pytest.fixture
def server(tmp_path):
    """Photos in a tar, far apart, on a slow server."""
    members = []
    for photo in sorted(make_folder(tmp_path / "photos", 16).glob("*/*.jpg")):
        key = f"{photo.parent.name}_{photo.stem}"
        members += [(f"{key}.jpg", photo.read_bytes()), (f"{key}.bin", bytes(200_000))]
    (tmp_path / "stored").mkdir()
    write_tar(tmp_path / "stored" / "000.tar", members)
    with serving(tmp_path / "stored") as running:
        running.fault = lambda number, path: time.sleep(LATENCY_S) or ""
        yield running


def test_of_feedlines_threads_the_requests_are_the_evidence():
    waiting = summary(HALF, {"stages": stages(storage=1.0), "cpu_ms": 2.0, "store": STORE}, loader=NATIVE)
    found = verdict.evaluate(waiting).verdicts[0]
    assert found.code == "remote_storage"
    assert "received 6400 requests of 110 KB each; time to first byte was 50.3 ms" in found.evidence[2]
    assert "80.0 MB/s" in found.evidence[2]
    assert "cache=PATH" in found.fix and 'shuffle="shards"' in found.fix and "feedline stage" in found.fix
    assert "num_workers" not in found.fix
    # the same run with decoding, and one whose bytes come from a disk, which may be a cache
    decoding = replace(waiting, making=replace(waiting.making, stages=stages(decode=1.0)))
    assert "remote_storage" not in codes(decoding)
    by_disk = replace(waiting, making=replace(waiting.making, store=replace(STORE, bytes=6400 * 40_000)))
    assert codes(by_disk) == ["storage_latency"]


def test_of_python_the_most_of_what_is_waited_for_decides():
    def waits(**kinds):
        return summary(HALF, {"stages": stages(storage=1.0), "cpu_ms": 2.0, "waited_for": WaitedFor(60, kinds)})

    assert codes(waits(store=0.7, sleep=0.3)) == ["remote_storage"]
    assert codes(waits(store=0.3, sleep=0.7)) == ["blocked_outside_files"]
    assert codes(waits(network=1.0)) == ["blocked_outside_files"], "a socket may be anything"
    assert codes(waits(file=0.6, store=0.4)) == ["storage_latency", "remote_storage"]
    certain = verdict.evaluate(waits(**OF_STORE.kinds)).verdicts[0].confidence
    assert certain >= verdict.CERTAIN > verdict.evaluate(waits(store=0.7, sleep=0.3)).verdicts[0].confidence


@KNOWN
def test_a_script_that_reads_urls_by_a_library_of_pythons(server, tmp_path):
    summary = timeline.summarise(
        recorded(
            tmp_path,
            f"""
            import torch, urllib.request
            class Photos(torch.utils.data.Dataset):
                def __len__(self): return 80
                def __getitem__(self, index):
                    with urllib.request.urlopen({server.url("000.tar")!r}) as answer:
                        return len(answer.read())
            if __name__ == "__main__":
                for _ in torch.utils.data.DataLoader(Photos(), 8, num_workers=2): pass
            """,
        )
    )
    seen = summary.making.waited_for
    assert seen is not None and seen.outside == "store" and "urlopen" in (tmp_path / "train.py").read_text()
    found = verdict.evaluate(summary).verdicts[0]
    assert found.code == "remote_storage" and any("train.py:6 in __getitem__()" in line for line in found.evidence)


def test_a_loader_of_feedlines_that_reads_urls(server, tmp_path):
    summary = timeline.summarise(
        recorded(
            tmp_path,
            f"""
            import os
            os.environ |= {{"XDG_CACHE_HOME": {str(tmp_path)!r}, "FEEDLINE_HTTP_CONNECTIONS": "1"}}
            import feedline
            data = feedline.open({server.url("000.tar")!r}, fields=("jpg",))
            loader = data.decode().center_crop(16).loader(8, shuffle=True, num_workers=1, output="numpy")
            for epoch in range(2):
                for batch in loader: pass
            """,
        )
    )
    store = summary.making.store
    assert store is not None and store.host == server.url("").split("/")[2]
    asked = len(server.requests)
    assert 0.3 * asked < store.requests <= asked and 0 < store.bytes < 10 * 48 * 200_000
    assert store.latency_ms is not None and store.latency_ms > 900 * LATENCY_S
    found = verdict.evaluate(summary).verdicts[0]
    assert found.code == "remote_storage" and any(store.host in line for line in found.evidence)


@KNOWN
def test_a_program_that_fetches_is_distinguished_from_one_that_does_not(tmp_path):
    """As with webdataset's `pipe:curl`: the worker waits for the output of a child process."""
    for name, fetches in (("curl", True), ("sleeper", False)):
        program = tmp_path / name
        shutil.copy(shutil.which("sleep"), program)
        with subprocess.Popen([program, "60"]) as child:
            try:
                deadline = time.monotonic() + 60
                while (name not in wait_sampler._text(f"/proc/{child.pid}/comm")) and time.monotonic() < deadline:
                    time.sleep(0.01)
                assert wait_sampler._has_fetcher() == fetches
            finally:
                child.kill()


def test_only_a_librarys_own_code_asks_stores(tmp_path):
    """A script in a folder with such a name is not treated as remote."""
    frames = []
    for script_path in (tmp_path / "requests" / "train.py", tmp_path / "site-packages" / "requests" / "sessions.py"):
        scope = {"frames": frames, "sys": sys}
        exec(compile("def ask(): frames.append(sys._getframe())\nask()", str(script_path), "exec"), scope)
    assert [wait_sampler.asks_store(frame) for frame in frames] == [False, True]
    assert not wait_sampler.asks_store(None)
