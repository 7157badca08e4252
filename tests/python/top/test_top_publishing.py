# SPDX-License-Identifier: Apache-2.0
"""The data that running loaders publish: available while they run, visible only to this user, and without side
effects.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import resource
import signal
import socket
import stat
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from running_processes import HANG_S, end_publishing, until

import feedline
from feedline.serving import publishing
from feedline.top import published


@pytest.fixture(autouse=True)
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for the test; its path is longer than a socket's may be."""
    folder = tmp_path / ("long" * 30) / "feedline"
    folder.parent.mkdir()
    monkeypatch.setenv("FEEDLINE_RUNTIME_DIR", str(folder))
    gc.collect()
    end_publishing()
    yield folder
    end_publishing()


def answers(count: int = 1) -> tuple[published.Process, ...]:
    found = until(lambda: (f := published.find(os.geteuid(), HANG_S)) and len(f.processes) >= count and f)
    assert found.notes == ()
    return found.processes


def names(runtime: Path) -> list[str]:
    return sorted(os.listdir(runtime)) if runtime.exists() else []


def publish_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "feedline-publish"]


def test_counters_are_published_from_iter_to_close(train: feedline.Dataset, folder: Path, runtime: Path) -> None:
    loader = train.loader(4, output="numpy", num_workers=2)
    assert not publish_threads() and not runtime.exists(), "nothing before the first iter()"
    iterator = iter(loader)
    next(iterator)
    next(iterator)
    ((process),) = answers()
    assert (process.pid, process.user, process.rank) == (os.getpid(), os.geteuid(), None)
    (seen,) = process.loaders
    assert (seen.kind, seen.source, seen.batches, seen.samples) == ("Loader", str(folder), 2, 8)
    assert (seen.batches_per_epoch, seen.threads, seen.epoch) == (6, 2, 0)
    assert seen.stages["decode"].items >= 8 and sum(seen.stages["decode"].latency_us) >= 8
    assert seen.wait_s is not None and seen.wait_s > 0
    loader.close()
    until(lambda: names(runtime) == [] and not publish_threads())
    assert published.find(os.geteuid()).processes == ()


def test_only_this_user_can_ask(train: feedline.Dataset, runtime: Path) -> None:
    old = os.umask(0)
    try:
        with train.loader(4, output="numpy") as loader:
            iter(loader)
            (name,) = until(lambda: [n for n in names(runtime) if n.endswith(publishing.SUFFIX)])
            assert stat.S_IMODE(runtime.stat().st_mode) == 0o700
            assert stat.S_IMODE((runtime / name).stat().st_mode) == 0o600
    finally:
        os.umask(old)


def test_another_user_is_sent_nothing(train: feedline.Dataset, runtime: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with train.loader(4, output="numpy") as loader:
        iter(loader)
        (name,) = until(lambda: [n for n in names(runtime) if n.endswith(publishing.SUFFIX)])
        folder = publishing.open_folder(str(runtime), os.geteuid())
        monkeypatch.setattr(publishing, "peer", lambda connection: (1, os.geteuid() + 1))
        with publishing.connect(folder, name, HANG_S) as connection:
            assert connection.recv(100) == b""
        os.close(folder)


def test_several_loaders_come_and_go(train: feedline.Dataset, runtime: Path) -> None:
    loaders = [train.loader(4, output="numpy") for _ in range(3)]
    for loader in loaders:
        list(loader)
        list(loader)  # a second epoch is the same loader
    numbers = [loader.number for loader in answers()[0].loaders]
    assert len(numbers) == 3 == len(set(numbers))
    loaders[1].close()
    assert [loader.number for loader in answers()[0].loaders] == [numbers[0], numbers[2]]
    del loaders[:], loader
    gc.collect()
    until(lambda: not publish_threads())
    assert names(runtime) == []


def test_a_loader_after_the_last_is_published_again(train: feedline.Dataset) -> None:
    for _ in range(3):
        with train.loader(4, output="numpy") as loader:
            next(iter(loader))
            assert len(answers()[0].loaders) == 1


def test_many_open_files_are_no_obstacle(folder: Path, environment: dict[str, str]) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard != resource.RLIM_INFINITY and hard < 1500:
        pytest.skip("this user may not open so many files")
    first = f"import os, resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (1500, {hard}))\n"
    first += "held = [os.open('/dev/null', os.O_RDONLY) for _ in range(1100)]\n"
    with start(folder, environment, "time.sleep(600)", first) as run:
        assert [process.pid for process in answers()] == [run.pid]


def test_training_continues_where_nothing_can_be_published(
    train: feedline.Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: Any, **named: Any) -> Any:
        raise OSError(24, "Too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(publishing.socket, "socketpair", refuse)
        with train.loader(4, output="numpy") as loader:
            assert len(list(loader)) == 6

    def refuse_threads(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse_threads)
        with train.loader(4, output="numpy") as loader:
            assert len(list(loader)) == 6
    with train.loader(4, output="numpy") as loader:
        list(loader)
        assert len(answers()[0].loaders) == 1, "and is published when it can be"


def test_it_can_be_forbidden(train: feedline.Dataset, runtime: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEEDLINE_PUBLISH", "0")
    with train.loader(4, output="numpy") as loader:
        list(loader)
        assert not publish_threads() and not runtime.exists()


def test_nothing_runs_while_no_one_asks(train: feedline.Dataset) -> None:
    def switches() -> int:
        text = Path(f"/proc/self/task/{thread.native_id}/status").read_text()
        return sum(int(line.split()[1]) for line in text.splitlines() if "ctxt_switches" in line)

    with train.loader(4, output="numpy", epochs=30) as loader:
        iterator = iter(loader)
        next(iterator)
        answers()
        (thread,) = publish_threads()
        before = until(lambda: (a := switches()) and time.sleep(0.05) is None and switches() == a and a)
        assert len(list(iterator)) > 100
        assert switches() == before
        answers()
        assert switches() > before, "then the line above could not see it"


def test_the_drop_in_publishes(folder: Path) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    dataset = torch.utils.data.TensorDataset(torch.arange(100))
    for workers in (0, 2):
        loader = feedline.DataLoader(dataset, 10, num_workers=workers, lower="never")
        iterator = iter(loader)
        for _ in range(3):
            next(iterator)
        (seen,) = answers()[0].loaders
        assert (seen.kind, seen.batches, seen.samples, seen.threads) == ("DataLoader", 3, 30, workers)
        assert (seen.source, seen.batches_per_epoch, seen.epoch) == ("TensorDataset", 10, 0)
        assert (seen.wait_s is None) == (workers == 0), "without workers nobody measures it"
        del loader, iterator
        gc.collect()
        until(lambda: not publish_threads())


def test_a_lowered_drop_in_publishes_its_stages(folder: Path) -> None:
    torchvision = pytest.importorskip("torchvision", reason="torchvision is not installed")
    transforms = torchvision.transforms
    chain = transforms.Compose([transforms.RandomResizedCrop(32), transforms.ToTensor()])
    loader = feedline.DataLoader(torchvision.datasets.ImageFolder(folder, chain), 4, num_workers=2, lower="require")
    iterator = iter(loader)
    next(iterator)
    (seen,) = answers()[0].loaders
    assert seen.source == f"ImageFolder {folder}"
    assert (seen.batches, seen.threads) == (1, 2) and seen.stages["decode"].items >= 4
    assert seen.wait_s is not None


SCRIPT = """
import glob, os, sys, time, feedline
dataset = feedline.open({folder!r}).random_resized_crop(32)
loader = dataset.loader(4, output="numpy", epochs=10**6)
iterator = iter(loader)
next(iterator)
"""


@contextlib.contextmanager
def start(folder: Path, environment: dict[str, str], more: str = "time.sleep(600)", first: str = "") -> Iterator[Any]:
    code = first + SCRIPT.format(folder=str(folder)) + textwrap.dedent(more)
    with subprocess.Popen(
        [sys.executable, "-W", "error", "-c", code],
        env={**environment, "FEEDLINE_RUNTIME_DIR": os.environ["FEEDLINE_RUNTIME_DIR"]},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as run:
        try:
            yield run
        finally:
            run.kill()


def test_a_killed_process_leaves_nothing_for_long(
    folder: Path, environment: dict[str, str], runtime: Path, train: feedline.Dataset
) -> None:
    for next_reader in ("find", "publish"):
        with start(folder, environment) as run:
            assert [process.pid for process in answers()] == [run.pid]
        assert len(names(runtime)) == 1, "then nothing would be tested"
        if next_reader == "find":
            assert published.find(os.geteuid()) == published.Found((), (), ())
        else:
            with train.loader(4, output="numpy") as loader:
                iter(loader)
                until(lambda: [n.partition("-")[0] for n in names(runtime)] == [str(os.getpid())])
        assert names(runtime) == []


def test_a_stopped_process_is_there_and_does_not_answer(folder: Path, environment: dict[str, str]) -> None:
    with start(folder, environment) as run:
        answers()
        run.send_signal(signal.SIGSTOP)
        status = Path(f"/proc/{run.pid}/status")
        until(lambda: "State:\tT" in status.read_text())
        assert published.find(os.geteuid(), 0.2) == published.Found((), (run.pid,), ())
        run.send_signal(signal.SIGCONT)
        answers()


@pytest.mark.parametrize("end", ["", "sys.exit(3)", "raise SystemExit(4)", "os.kill(os.getpid(), 2)"])
def test_exits_are_clean(folder: Path, environment: dict[str, str], runtime: Path, end: str) -> None:
    wait = "while not glob.glob(os.environ['FEEDLINE_RUNTIME_DIR'] + '/*'): time.sleep(0.01)\n"
    with start(folder, environment, wait + end) as run:
        _, errors = run.communicate(timeout=HANG_S)
    assert run.returncode == {"": 0, "sys.exit(3)": 3, "raise SystemExit(4)": 4}.get(end, -signal.SIGINT)
    assert errors.strip().splitlines()[-1:] == ([] if run.returncode >= 0 else ["KeyboardInterrupt"])
    assert names(runtime) == []


def test_forked_children_publish_as_themselves(folder: Path, environment: dict[str, str]) -> None:
    more = """
        while not glob.glob(os.environ["FEEDLINE_RUNTIME_DIR"] + "/*"): time.sleep(0.01)
        import warnings; warnings.simplefilter("ignore")
        children = []
        for own in (False, True):
            pid = os.fork()
            if pid == 0:
                if own:
                    mine = iter(dataset.loader(2, output="numpy"))
                    next(mine)
                time.sleep(600)
            children.append(pid)
        print(*children, flush=True)
        time.sleep(600)
        """
    with start(folder, environment, more) as run:
        silent, own = map(int, run.stdout.readline().split())
        try:
            assert {process.pid for process in answers(2)} == {run.pid, own}
            run.kill()
            run.wait()
            until(lambda: [process.pid for process in published.find(os.geteuid(), HANG_S).processes] == [own])
            # a child that kept its parent's socket would leave a connection unanswered
            until(lambda: published.find(os.geteuid(), HANG_S).unanswered == ())
        finally:
            for pid in (silent, own):
                os.kill(pid, signal.SIGKILL)


def test_no_thread_of_ours_is_there_at_a_fork(folder: Path, environment: dict[str, str]) -> None:
    more = """
        publishing = lambda: sum(t.name == "feedline-publish" for t in threading.enumerate())
        while not glob.glob(os.environ["FEEDLINE_RUNTIME_DIR"] + "/*"): time.sleep(0.01)
        for _ in range(20):
            seen.clear()
            assert publishing() == 1
            pid = os.fork()
            if pid == 0:
                os._exit(0)
            os.waitpid(pid, 0)
            assert seen == [0], seen
        print("fine", flush=True)
        time.sleep(600)
        """
    first = "import os, threading\nseen = []\n"  # registered before Feedline's handler, so called after it
    first += "os.register_at_fork(before=lambda: seen.append(publishing()))\n"
    with start(folder, environment, more, first) as run:
        assert run.stdout.readline() == "fine\n", run.stderr.read()
        assert [process.pid for process in answers()] == [run.pid]


def _link(path: Path) -> None:
    (path.parent / "elsewhere").mkdir(mode=0o700)
    path.symlink_to(path.parent / "elsewhere")


def _another_users(path: Path) -> None:
    path.mkdir(mode=0o700)
    os.chown(path, 65534, 65534)


def _open_to_all(path: Path) -> None:
    path.mkdir()
    path.chmod(0o777)


@pytest.mark.parametrize(
    "make, word",
    [
        (_link, "is a link"),
        (_another_users, "belongs to user 65534"),
        (_open_to_all, "chmod 700"),
        (Path.touch, "link"),
    ],
)
def test_folders_that_others_could_have_made_are_refused(
    train: feedline.Dataset, runtime: Path, make: Callable[[Path], None], word: str
) -> None:
    if make is _another_users and os.geteuid() != 0:
        pytest.skip("only root can make another user's folder")
    make(runtime)
    with train.loader(4, output="numpy") as loader:
        assert sum(len(batch.label) for batch in loader) == 21, "training goes on"
        until(lambda: not publish_threads())
        found = published.find(os.geteuid())
        assert found.processes == () and len(found.notes) == 1 and word in found.notes[0]
    assert not list(runtime.parent.rglob(f"*{publishing.SUFFIX}"))


def test_another_folder_is_taken_where_the_first_is_refused(
    train: feedline.Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused, taken = tmp_path / "a", tmp_path / "b"
    _open_to_all(refused)
    monkeypatch.setattr(publishing, "folders", lambda uid: [str(refused), str(tmp_path / "no" / "parent"), str(taken)])
    with train.loader(4, output="numpy") as loader:
        iter(loader)
        until(lambda: names(taken))
        assert published.find(os.geteuid()).processes[0].pid == os.getpid()


def test_folders_are_those_that_jobs_and_shells_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FEEDLINE_RUNTIME_DIR")
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/somewhere")
    uid = os.geteuid()
    assert publishing.folders(uid) == ["/somewhere/feedline", f"/run/user/{uid}/feedline", f"/tmp/feedline-{uid}"]
    assert publishing.folders(uid + 1)[0] == f"/run/user/{uid + 1}/feedline", "this one's variable is not theirs"


# -- answers from other programs


Serve = Callable[[Callable[[socket.socket], None]], None]


@pytest.fixture
def served(runtime: Path) -> Iterator[Serve]:
    """Listens in the folder, and handles each connection in a given way."""
    runtime.mkdir(mode=0o700)
    listeners: list[socket.socket] = []

    def serve(act: Callable[[socket.socket], None]) -> None:
        listener = socket.socket(socket.AF_UNIX)
        folder = os.open(runtime, os.O_RDONLY)
        listener.bind(f"/proc/self/fd/{folder}/{os.getpid()}-{len(listeners)}{publishing.SUFFIX}")
        os.close(folder)
        listener.listen()
        listeners.append(listener)

        def run() -> None:
            with listener, listener.accept()[0] as connection, contextlib.suppress(OSError):
                act(connection)

        threading.Thread(target=run, daemon=True).start()

    yield serve
    for listener in listeners:
        listener.close()


def _endless(connection: socket.socket) -> None:
    while True:
        connection.sendall(b"[" * 100_000)


def _hangs_in_the_middle(connection: socket.socket) -> None:
    connection.sendall(b'{"feedline_counters": 1, ')
    time.sleep(5)


@pytest.mark.parametrize(
    "act, note",
    [
        (_endless, "has more than 1,048,576 bytes"),
        (_hangs_in_the_middle, None),
        (lambda c: time.sleep(5), None),
        (lambda c: c.sendall(b"\x00\xff" * 50), "is truncated, or is not a loader's counters"),
        (lambda c: c.sendall(b"[" * 200_000), "is truncated, or is not a loader's counters"),
        (lambda c: c.sendall(b"1" * 100_000), "is truncated, or is not a loader's counters"),
        (lambda c: c.sendall(b'{"feedline_counters": 2}'), "version 2, but this version of Feedline reads 1"),
        (lambda c: c.sendall(b'{"feedline_counters": 1, "time_s": NaN}'), "has no time"),
    ],
)
def test_bad_answers_are_bounded_and_named(served: Serve, act: Callable[[socket.socket], None], note: str) -> None:
    served(act)
    found = published.find(os.geteuid(), 0.3 if note is None else HANG_S)
    assert found.processes == () and found.unanswered == (os.getpid(),)
    assert (found.notes == ()) if note is None else (note in found.notes[0])


def test_one_that_hangs_does_not_hold_up_others(served: Serve) -> None:
    good = json.dumps({"feedline_counters": 1, "time_s": 1.0, "loaders": []}).encode()
    all_are_asked = threading.Barrier(12)  # fails if the second is asked after the first

    def wait_for_the_others(_: socket.socket) -> None:
        all_are_asked.wait(HANG_S)

    for _ in range(12):
        served(wait_for_the_others)
    served(lambda c: c.sendall(good))
    found = published.find(os.geteuid(), HANG_S)
    assert [process.pid for process in found.processes] == [os.getpid()]
    assert not all_are_asked.broken


def test_other_files_in_the_folder_are_left_alone(runtime: Path) -> None:
    runtime.mkdir(mode=0o700)
    (runtime / "1-a.sock").write_text("no socket")
    (runtime / "2-b.sock").symlink_to("/etc/passwd")
    (runtime / "notes").write_text("mine")
    assert published.find(os.geteuid()) == published.Found((), (), ())
    assert names(runtime) == ["1-a.sock", "2-b.sock", "notes"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=20,
)
COUNTERS = ("threads", "batches", "samples", "bad_samples", "wait_s", "held_bytes", "ready_batches")
STAGE = st.fixed_dictionaries({}, optional=dict.fromkeys(("items", "bytes", "busy_s", "latency_us"), JSON))
ROW = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(("number", "kind", "source", "epoch", "batches_per_epoch", "batch_size"), JSON),
        "counters": JSON
        | st.fixed_dictionaries(
            {},
            optional={
                **dict.fromkeys(COUNTERS, JSON),
                "stages": JSON | st.dictionaries(st.text(max_size=20), STAGE | JSON, max_size=3),
            },
        ),
    },
)
DOCUMENT = st.fixed_dictionaries(
    {"feedline_counters": st.just(1) | JSON, "time_s": st.floats(0, 1e9) | JSON},
    optional={"rank": JSON, "world_size": JSON, "loaders": JSON | st.lists(ROW | JSON, max_size=3)},
)


def test_text_cannot_move_the_cursor() -> None:
    hostile = "\x1b[2J\r\n\x9b1m\u202e" + "long" * 1000
    row = {"kind": hostile, "source": hostile, "counters": {"stages": {hostile: {"items": 1}}}}
    answer = json.dumps({"feedline_counters": 1, "time_s": 1.0, "loaders": [row]}).encode()
    (loader,) = published.parse(answer, 5, 6).loaders
    for text in (loader.kind, loader.source, *loader.stages):
        assert text.isprintable() and text.startswith("?[2J???1m?") and len(text) <= 200
    with pytest.raises(feedline.Error) as caught:
        published.parse(json.dumps({"feedline_counters": hostile}).encode(), 5, 6)
    assert str(caught.value).isprintable()


def numbers_and_texts(value: Any) -> Iterator[Any]:
    if hasattr(value, "__dataclass_fields__"):
        value = [getattr(value, name) for name in value.__dataclass_fields__]
    if isinstance(value, dict):
        value = [*value.keys(), *value.values()]
    if isinstance(value, (list, tuple)):
        for inner in value:
            yield from numbers_and_texts(inner)
    elif value is not None:
        yield value


@settings(max_examples=150, deadline=None)
@given(DOCUMENT.map(lambda document: json.dumps(document).encode()) | st.binary(max_size=200), st.data())
def test_any_answer_is_harmless(answer: bytes, data: st.DataObject) -> None:
    answer = answer[: data.draw(st.integers(0, len(answer)), label="cut")] if data.draw(st.booleans()) else answer
    try:
        process = published.parse(answer, 5, 6)
    except feedline.Error as error:
        assert str(error).isprintable()
        return
    assert (process.pid, process.user) == (5, 6)
    for value in numbers_and_texts(process):
        if isinstance(value, str):
            assert value.isprintable() and len(value) <= 200, "text could move a terminal's cursor"
        else:
            assert 0 <= value <= 1e18


def test_a_thread_is_joined_only_once_it_has_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a fork, one thread starts the server again while another withdraws the last loader."""
    server = publishing._Server()

    class Joined(publishing._Thread):
        def start(self) -> None:
            server.join()
            super().start()

    monkeypatch.setattr(publishing, "_Thread", Joined)
    server.start()
    server.stop()
    server.join()
    server.close()
