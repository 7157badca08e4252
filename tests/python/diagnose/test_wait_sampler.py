# SPDX-License-Identifier: Apache-2.0
"""The system call in which a worker waits shows what it waits for, and its stack shows the line."""

import os
import socket
import subprocess
import sys
import textwrap
import threading

import pytest
from watched import recorded

from feedline.diagnose import verdict
from feedline.profiler.probe import system_calls, wait_sampler
from feedline.profiler.summary import timeline

KNOWN = pytest.mark.skipif(not system_calls.are_known(), reason="this kernel does not tell in what call a thread is")

SCRIPT = """
    import {imports}, os, tempfile, time, torch
    {setup}
    class Samples(torch.utils.data.Dataset):
        def __len__(self): return 96
        def __getitem__(self, index):
            {wait}
            return torch.tensor(index)
    if __name__ == "__main__":
        for _ in torch.utils.data.DataLoader(Samples(), 8, num_workers={workers}): pass
"""
WAITS = {
    "sleep": ("time", "", "time.sleep(0.01)"),
    "lock": ("threading", "", "threading.Event().wait(0.01)"),
    "events": ("select", "poll = select.poll(); poll.register(os.pipe()[0])", "poll.poll(10)"),
    "network": (
        "socket, threading",
        """near, far = socket.socketpair()
    def serve():
        while True:
            near.recv(1); time.sleep(0.01); near.send(b'1')
    threading.Thread(target=serve, daemon=True).start()""",
        "far.send(b'?'); far.recv(1)",
    ),
    "process": ("subprocess", "", "subprocess.run(['sleep', '0.01'])"),
}


@KNOWN
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", WAITS)
def test_what_is_waited_for_outside_of_files_is_reported_with_its_line(tmp_path, kind, workers):
    imports, setup, wait = WAITS[kind]
    summary = timeline.summarise(
        recorded(tmp_path, SCRIPT.format(imports=imports, setup=setup, wait=wait, workers=workers))
    )
    seen = summary.making.waited_for
    assert seen is not None and seen.looks >= 3 and seen.in_files < 0.2
    wanted = {kind, "events"} if kind == "process" else {kind}  # subprocess waits for its pipes, too
    assert seen.outside in wanted, seen
    line = next(
        number for number, text in enumerate((tmp_path / "train.py").read_text().splitlines(), 1) if wait in text
    )
    assert f"train.py:{line} in __getitem__()" in seen.places[0].line
    assert "threading" not in seen.places[0].line or "'s " in seen.places[0].line


def test_the_calls_of_files_are_distinguished_from_others_by_their_descriptors(tmp_path):
    (tmp_path / "sample").write_bytes(b"1")
    near, far = socket.socketpair()
    reading, writing = os.pipe()
    with open(tmp_path / "sample", "rb") as file, near, far:
        numbers = {42: system_calls._BY_DESCRIPTOR, 43: system_calls._SELECT, 44: "lock"}

        def kind(call, first=0):
            return system_calls.kind_of(f"{call} {first:#x} 0x0 0x1".encode(), numbers)

        assert kind(42, file.fileno()) == "file" and kind(42, near.fileno()) == "network"
        assert kind(42, reading) == "process" and kind(42, 999_999) is None
        assert kind(43, 0) == "sleep" and kind(43, 5) == "events"
        assert kind(44) == "lock" and kind(45) == "other" and kind(-1) == "file"
        assert system_calls.kind_of(b"running\n", numbers) is None and system_calls.kind_of(b"", numbers) is None
    os.close(reading), os.close(writing)


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_a_number_is_one_call(machine):
    column = system_calls._MACHINES[machine]
    numbers = [pair[column] for pairs in system_calls._CALLS.values() for pair in pairs if pair[column] >= 0]
    assert len(numbers) == len(set(numbers)) == len(system_calls.table(machine))
    assert system_calls.table("a machine of tomorrow") == {}


@KNOWN
def test_a_thread_that_computes_is_not_taken_to_wait_for_a_lock(tmp_path):
    """It waits for the interpreter while it is sampled, which is caused by the sampler."""
    busy = "until = time.thread_time() + 0.01\n            while time.thread_time() < until: sum(range(100))"
    summary = timeline.summarise(recorded(tmp_path, SCRIPT.format(imports="time", setup="", wait=busy, workers=2)))
    seen = summary.making.waited_for
    assert seen is None or seen.looks <= 2, seen


@KNOWN
def test_who_waits_for_a_thread_that_reads_waits_for_the_file(tmp_path):
    """A pool in the worker reads a file with a lease, whose holder delays open() for some time."""
    script = """
    import concurrent.futures, sys, torch
    sys.path.insert(0, {scripts!r})
    from late_files import LateFiles
    class Samples(torch.utils.data.Dataset):
        files, pool = None, None
        def __len__(self): return 160
        def __getitem__(self, index):
            self.pool = self.pool or concurrent.futures.ThreadPoolExecutor(1)
            return self.pool.submit(FILES, index).result()
    if __name__ == "__main__":
        FILES = LateFiles(12)
        for _ in torch.utils.data.DataLoader(Samples(), 8, num_workers=2): pass
    """
    scripts = os.path.join(os.path.dirname(__file__), "..", "..", "scenarios", "scripts")
    summary = timeline.summarise(recorded(tmp_path, script.format(scripts=os.path.abspath(scripts))))
    assert summary.making.waited_for is not None and summary.making.waited_for.in_files > 0.7
    assert "storage_latency" in [v.code for v in verdict.evaluate(summary).verdicts]


SERVING = """
    import hashlib, os, socket, sys, threading, time
    from feedline.profiler.probe import system_calls, wait_sampler
    server = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(server.getsockname())
    peer, _ = server.accept()
    def compute():
        while True: hashlib.pbkdf2_hmac("sha256", b"", b"", 10**7)
    waiting = {"accept": server.accept, "recv": lambda: peer.recv(1), "compute": compute}[sys.argv[1]]
    threading.Thread(target=waiting, daemon=True).start()
    own = threading.get_native_id()
    for _ in range(1000):  # until the thread is in its call
        time.sleep(0.01)
        others = [int(name) for name in os.listdir("/proc/self/task") if int(name) != own]
        kinds = [system_calls.kind_of(wait_sampler._call_of(thread)) for thread in others]
        if kinds == [None if sys.argv[1] == "compute" else "network"]:
            break
    print(wait_sampler._of_other_threads(own), flush=True)
    os._exit(0)
"""


@KNOWN
@pytest.mark.parametrize("call, kind", [("accept", "lock"), ("recv", "network"), ("compute", "None")])
def test_a_lock_is_a_wait_for_the_work_of_other_threads_except_for_clients(tmp_path, call, kind):
    """In torch's workers, a thread of multiprocessing waits for clients, and serves file descriptors."""
    script = tmp_path / "serving.py"
    script.write_text(textwrap.dedent(SERVING))
    done = subprocess.run([sys.executable, script, call], capture_output=True, text=True, check=True)
    assert done.stdout == f"{kind}\n"


@KNOWN
def test_looking_leaves_the_scripts_threads_and_its_forks_alone(tmp_path):
    summary = timeline.summarise(
        recorded(
            tmp_path,
            """
            import os, threading, time, torch
            class Samples(torch.utils.data.Dataset):
                def __len__(self): return 64
                def __getitem__(self, index):
                    assert threading.active_count() == 1 and len(threading.enumerate()) == 1
                    if index % 16 == 0:
                        child = os.fork()
                        if child == 0: os._exit(0)
                        os.waitpid(child, 0)
                    time.sleep(0.005)
                    return torch.tensor(index)
            if __name__ == "__main__":
                for _ in torch.utils.data.DataLoader(Samples(), 8): pass
            """,
        )
    )
    assert summary.making.waited_for is not None


def test_a_place_is_the_innermost_line_of_the_scripts_own_code():
    event, frames = threading.Event(), {}
    waiting = threading.Thread(target=lambda: event.wait(5))
    waiting.start()
    while not event._cond._waiters:  # it is in wait()
        pass
    frames = sys._current_frames()
    location = wait_sampler.place_of(frames[waiting.ident])
    event.set()
    waiting.join()
    assert "test_wait_sampler.py" in location and location.endswith("in threading.py's wait()")
    assert wait_sampler.place_of(None) == ""
