# SPDX-License-Identifier: Apache-2.0
"""After fork(), a child that uses a loader started by its parent gets a clear error, never hangs, and may create its
own loader.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import made_parquet
import pytest
from running_processes import HANG_S

import feedline

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def run(script: str, folder: Path, environment: dict[str, str]) -> str:
    head = f"import os, sys, feedline\nds = feedline.open({str(folder)!r}).random_resized_crop(32)\n"
    code = head + textwrap.dedent(script)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], env=environment, capture_output=True, text=True, timeout=HANG_S
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    return done.stdout


def test_every_call_in_a_child_is_refused_or_harmless(folder: Path, environment: dict[str, str]) -> None:
    out = run(
        """
        loader = ds.loader(2, output="numpy", num_workers=3)
        iterator = iter(loader)
        next(iterator)
        state = loader.state_dict()
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            calls = dict(next=lambda: next(iterator), iter=lambda: iter(loader), stats=loader.stats,
                         errors=lambda: loader.errors, state=loader.state_dict, explain=loader.explain,
                         rows_per_rank=lambda: loader._engine.rows_per_rank,
                         restore=lambda: loader.load_state_dict(state))
            for name, call in calls.items():
                try:
                    call()
                    print(name, "worked")
                except feedline.ConfigError as error:
                    assert "fork" in str(error), error
                    print(name, "refused")
            loader.close()
            del loader, iterator
            own = ds.loader(2, output="numpy", num_workers=2)
            print("own", sum(len(batch.label) for batch in own))
            sys.stdout.flush()
            sys.exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        print("parent", 2 + sum(len(batch.label) for batch in iterator))
        """,
        folder,
        environment,
    )
    assert out.splitlines() == [
        f"{name} refused"
        for name in ("next", "iter", "stats", "errors", "state", "explain", "rows_per_rank", "restore")
    ] + [
        "own 21",
        "parent 21",
    ]


def test_a_question_of_a_child_waits_for_no_thread_of_the_parent(folder: Path, environment: dict[str, str]) -> None:
    """rows_per_rank is called while another thread of the parent is in the engine: its lock stays locked in the
    child.
    """
    out = run(
        """
        import threading
        loader = ds.loader(1, output="numpy", num_workers=3)
        next(iter(loader))
        over = threading.Event()
        def ask():
            while not over.is_set():
                loader.stats()
        others = [threading.Thread(target=ask) for _ in range(3)]
        for other in others:
            other.start()
        for _ in range(30):
            pid = os.fork()
            if pid == 0:
                try:
                    loader._engine.rows_per_rank
                except feedline.ConfigError:
                    os._exit(0)
                os._exit(1)
            assert os.waitpid(pid, 0)[1] == 0
        over.set()
        for other in others:
            other.join()
        print(loader._engine.rows_per_rank)
        """,
        folder,
        environment,
    )
    assert out.strip() == "[1]"


def test_an_iterator_over_arrays_leaves_the_parents_threads_alone(folder: Path, environment: dict[str, str]) -> None:
    """The parent's thread pool, one of whose threads may hold the pool's locks at the fork."""
    pytest.importorskip("torch")
    out = run(
        """
        import signal, torch
        from torch.utils.data import TensorDataset
        loader = feedline.DataLoader(TensorDataset(torch.zeros(40, 100_000)), batch_size=4, num_workers=2)
        iterator = iter(loader)
        next(iterator)
        assert iterator._threads is not None
        with iterator._threads._shutdown_lock:
            pid = os.fork()
            if pid == 0:
                signal.alarm(100)
                del iterator
                os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0, "the child hangs"
        print(1 + len(list(iterator)))
        """,
        folder,
        environment,
    )
    assert out.strip() == "10"


def test_a_loader_that_has_not_started_works_in_the_child(folder: Path, environment: dict[str, str]) -> None:
    out = run(
        """
        loader = ds.loader(2, output="numpy")
        pid = os.fork()
        if pid == 0:
            print("child", sum(len(batch.label) for batch in loader), flush=True)
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        print("parent", sum(len(batch.label) for batch in loader))
        """,
        folder,
        environment,
    )
    assert out.split() == ["child", "21", "parent", "21"]


def test_forks_while_threads_are_busy(folder: Path, environment: dict[str, str]) -> None:
    """Any lock that a thread holds at the fork."""
    out = run(
        """
        loader = ds.loader(1, output="numpy", num_workers=3, epochs=40)
        children = 0
        for step, batch in enumerate(loader):
            if step % 10 == 0:
                pid = os.fork()
                if pid == 0:
                    try:
                        loader.stats()
                        os._exit(1)
                    except feedline.ConfigError:
                        pass
                    try:
                        next(iter(loader))
                        os._exit(2)
                    except feedline.ConfigError:
                        pass
                    loader.close()
                    os._exit(0)
                assert os.waitpid(pid, 0)[1] == 0
                children += 1
        print(children)
        """,
        folder,
        environment,
    )
    assert out.strip() == "84"


def _count_samples(path: str) -> int:
    dataset = feedline.open(path).random_resized_crop(16)
    return sum(len(batch.label) for batch in dataset.loader(4, output="numpy"))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_multiprocessing(
    folder: Path, method: str, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", environment["PYTHONPATH"])
    with feedline.open(folder).resize((8, 8)).loader(2, output="numpy") as running:
        next(iter(running))
        with multiprocessing.get_context(method).Pool(2) as pool:
            assert pool.map_async(_count_samples, [str(folder)] * 4).get(timeout=HANG_S) == [21] * 4


def test_a_loader_does_not_pickle(train: feedline.Dataset, tmp_path: Path) -> None:
    import pickle

    with train.loader(4, output="numpy") as loader, pytest.raises(TypeError, match="create one in each process"):
        pickle.dumps(loader)


def test_threads_start_with_iter_and_end_with_close(train: feedline.Dataset) -> None:
    def threads() -> int:
        return len(os.listdir("/proc/self/task"))

    before = threads()
    loader = train.loader(2, output="numpy", num_workers=3)
    assert threads() == before
    iterator = iter(loader)
    next(iterator)
    assert threads() > before
    loader.close()
    until = time.monotonic() + HANG_S  # a joined thread may still be in the list for a moment
    while threads() > before and time.monotonic() < until:
        time.sleep(0.001)
    assert threads() <= before  # fewer: those that an earlier test left have ended
    wait: Callable[[], object] = lambda: next(iterator)  # noqa: E731
    with pytest.raises(feedline.Error, match="close"):
        wait()
    loader.close()


def test_a_fork_waits_for_a_thread_that_imports_pillow(tmp_path: Path, environment: dict[str, str]) -> None:
    """In the child, nothing would ever release the locks of a partly imported module."""
    image = pytest.importorskip("PIL.Image")
    (tmp_path / "a").mkdir()
    image.new("RGB", (8, 8), (10, 20, 30)).save(tmp_path / "a/0.bmp")
    script = """
        import importlib.abc, threading, time
        begun = threading.Event()
        class Slow(importlib.abc.MetaPathFinder):
            def find_spec(self, name, path, target=None):
                if name == "PIL.ImageOps":
                    begun.set()
                    time.sleep(0.5)
        sys.meta_path.insert(0, Slow())
        whole = feedline.open(ds.source)
        thread = threading.Thread(target=lambda: whole[0])
        thread.start()
        begun.wait()
        child = os.fork()
        if child == 0:
            os._exit(0 if feedline.open(ds.source)[0].image[0, 0, 0] == 10 else 1)
        thread.join()
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    """
    run(script, tmp_path, environment)


def test_a_first_read_in_another_thread_imports_nothing_but_pillow(tmp_path: Path, environment: dict[str, str]) -> None:
    """A module that a thread imports during fork() stays partly imported in the child, which then waits for it."""
    image = pytest.importorskip("PIL.Image")
    (tmp_path / "a").mkdir()
    image.new("RGB", (8, 8), (10, 20, 30)).save(tmp_path / "a/0.bmp")
    script = """
        import importlib.abc, threading
        class Imports(importlib.abc.MetaPathFinder):
            def find_spec(self, name, path, target=None):
                if threading.current_thread() is not threading.main_thread():
                    imported.append(name)
        imported = []
        whole = feedline.open(ds.source)
        whole.resize((4, 4)).loader(1, num_workers=1, epochs=1)
        sys.meta_path.insert(0, Imports())
        shapes = []
        def read():
            shapes.append(whole[0].image.shape)
            shapes.extend(batch.image.shape for batch in whole.resize((4, 4)).loader(1, num_workers=1, epochs=1))
        thread = threading.Thread(target=read)
        thread.start()
        thread.join()
        assert [tuple(shape) for shape in shapes] == [(3, 8, 8), (1, 3, 4, 4)], shapes
        assert "PIL.Image" in imported
        assert not {"numpy", "json", "feedline.data.storage.foreign_images"} & set(imported), imported
    """
    run(script, tmp_path, environment)


def test_a_child_reads_while_other_threads_of_the_parent_read_for_the_first_time(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    """Nothing that a first read initialises may stay locked in the child."""
    (tmp_path / "t.csv").write_text("text,label\n" + "".join(f"word {i},{i}\n" for i in range(10)))
    script = f"""
        import os, threading, feedline
        ds = feedline.open({str(tmp_path / "t.csv")!r}, fields=("text:text", "label:value"))
        threads = [threading.Thread(target=lambda: [ds[i] for i in range(10)]) for _ in range(3)]
        for thread in threads:
            thread.start()
        child = os.fork()
        if child == 0:
            os._exit(ds[3].label - 3)
        for thread in threads:
            thread.join()
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    """
    for _ in range(5):  # number of processes, because only the first reads of each matter
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", textwrap.dedent(script)], env=environment, timeout=HANG_S
        )
        assert done.returncode == 0


def test_a_child_reads_a_block_that_its_parent_is_reading(tmp_path: Path, environment: dict[str, str]) -> None:
    rows = [{"n": i, "text": f"text {i}"} for i in range(20)]
    (tmp_path / "x.parquet").write_bytes(made_parquet.file_of(rows))
    script = f"""
        import os, signal, threading, feedline
        from pathlib import Path
        from range_server import serving
        with serving(Path({str(tmp_path)!r})) as server:
            dataset = feedline.open(server.url("x.parquet"), fields=("n", "text"))
            reading, forked = threading.Event(), threading.Event()
            def hold(number, path):  # the answer to a read of the parent's thread
                if not forked.is_set():
                    reading.set()
                    forked.wait()
                return ""
            server.fault = hold
            thread = threading.Thread(target=lambda: dataset[3])
            thread.start()
            reading.wait()
            child = os.fork()
            if child == 0:
                signal.alarm(10)  # a read takes milliseconds
                os._exit(dataset[3].n - 3)
            forked.set()
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            thread.join()
            assert status == 0, status
    """
    paths = {**environment, "PYTHONPATH": f"{Path(__file__).parent}:{environment['PYTHONPATH']}"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(script)], env=paths, capture_output=True, timeout=HANG_S
    )
    assert done.returncode == 0, done.stderr.decode()
