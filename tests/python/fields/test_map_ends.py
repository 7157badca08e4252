# SPDX-License-Identifier: Apache-2.0
"""However the process ends, nothing hangs, crashes or is left over: functions that hang, exit the program, or die."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from made_fields import make_tar, sample
from running_processes import HANG_S, until

import feedline

HEAD = """
import gc, os, signal, sys, threading, time
import mapped
import feedline

labels = feedline.open(sys.argv[1], fields=("cls",))

def interrupt_once(inside):
    def run():
        inside.wait()
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=run, daemon=True).start()
"""


@pytest.fixture(scope="module")
def tar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tar(tmp_path_factory.mktemp("ends") / "x.tar", [sample(number) for number in range(23)])


@pytest.fixture
def paths(environment: dict[str, str]) -> dict[str, str]:
    own = str(Path(__file__).parent)
    return {**environment, "PYTHONPATH": os.pathsep.join((environment["PYTHONPATH"], own))}


def start(body: str, tar: Path, paths: dict[str, str], folder: Path) -> subprocess.Popen[str]:
    """A script in a file, because its child processes import it again; the loader starts under its main guard."""
    script = folder / "script.py"
    guarded = textwrap.indent(textwrap.dedent(body), "    ")
    script.write_text(HEAD + '\nif __name__ == "__main__":\n' + guarded)
    return subprocess.Popen(
        [sys.executable, str(script), str(tar)],
        env=paths,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(body: str, tar: Path, paths: dict[str, str], folder: Path, code: int = 0) -> tuple[str, str]:
    process = start(body, tar, paths, folder)
    out, errors = process.communicate(timeout=HANG_S)
    assert process.returncode == code, (process.returncode, out, errors)
    return out, errors


STUCK = {
    "sleeps": "time.sleep(3600)",
    "waits for a lock": "threading.Semaphore(0).acquire()",
    "runs in Python": "while True: pass",
}


@pytest.mark.parametrize("way", STUCK)
@pytest.mark.parametrize("end", ["close", "exit", "forgotten"])
def test_ctrl_c_while_a_function_never_returns(
    way: str, end: str, tar: Path, paths: dict[str, str], tmp_path: Path
) -> None:
    last = {"close": "loader.close()", "exit": "pass", "forgotten": "del loader, iterator; gc.collect()"}[end]
    out, errors = run(
        f"""
        inside = threading.Event()
        def stuck(label):
            if threading.current_thread() is not threading.main_thread():
                inside.set()
                {STUCK[way]}
            return label
        interrupt_once(inside)
        loader = labels.map(stuck, "cls").loader(4, output="numpy", num_workers=2)
        iterator = None
        try:
            iterator = iter(loader)
            next(iterator)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        {last}
        print("end", flush=True)
        """,
        tar,
        paths,
        tmp_path,
    )
    assert out == "interrupted\nend\n"
    assert errors == ""


@pytest.mark.parametrize("method", ["explain", "for_loader", "begin"])
def test_ctrl_c_in_what_the_engine_asks_of_a_function(method: str, tar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is raised unchanged, wherever the signal interrupts Python code that the engine called."""

    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(f"feedline.data.map.mapping.Chain.{method}", interrupted)
    with pytest.raises(KeyboardInterrupt):
        iter(feedline.open(tar, fields=("cls",)).map(lambda label: label, "cls").loader(4, output="numpy"))


def test_the_end_of_an_interpreter_whose_threads_are_in_functions(
    tar: Path, paths: dict[str, str], tmp_path: Path
) -> None:
    """Some sleep, some run Python code, and the main thread waits for none of them and simply ends."""
    _, errors = run(
        """
        def works(label):
            until = time.monotonic() + 0.02
            while time.monotonic() < until:
                sum(range(100))
            time.sleep(0.01)
            return label
        loaders = [labels.map(works, "cls").loader(2, output="numpy", num_workers=3, epochs=1000) for _ in range(3)]
        iterators = [iter(loader) for loader in loaders]
        for iterator in iterators:
            next(iterator)
        """,
        tar,
        paths,
        tmp_path,
    )
    assert errors == ""


def test_an_iterator_that_is_dropped(tar: Path, paths: dict[str, str], tmp_path: Path) -> None:
    out, errors = run(
        """
        from feedline import _engine
        for _ in range(10):
            loader = labels.map(mapped.plain, "cls").loader(2, output="numpy", num_workers=3)
            iterator = iter(loader)
            next(iterator)
            del iterator, loader
            # nobody closes this one: it goes with the GIL held, for which its threads wait
            engine = _engine.make_loader(labels.map(mapped.plain, "cls")._engine, {"batch_size": 2, "num_workers": 3})
            engine.start_epoch()
            engine.next()
            del engine
            gc.collect()
        end = time.monotonic() + 30  # the last threads may still be ending
        while (threads := (threading.active_count(), len(os.listdir("/proc/self/task")))) > (1, 6):
            if time.monotonic() > end:
                break
            time.sleep(0.05)
        print(*threads)
        """,
        tar,
        paths,
        tmp_path,
    )
    assert errors == ""
    active, threads = map(int, out.split())
    assert active == 1 and threads <= 6  # the main thread, and threads of NumPy and of the metrics


@pytest.mark.parametrize("way", ["", ", processes=2"])
@pytest.mark.parametrize("policy", ["raise", "skip", "replace"])
def test_a_wish_to_end_the_program_is_no_bad_sample(
    policy: str, way: str, tar: Path, paths: dict[str, str], tmp_path: Path
) -> None:
    _, errors = run(
        f"""
        data = labels.map(mapped.asks_for_the_end, "cls"{way})
        for batch in data.loader(2, output="numpy", num_workers=2, on_error={policy!r}):
            pass
        print("not reached")
        """,
        tar,
        paths,
        tmp_path,
        code=1,
    )
    assert errors == "enough\n"


def test_keyboard_interrupt_of_a_function(tar: Path, paths: dict[str, str], tmp_path: Path) -> None:
    out, _ = run(
        """
        def raises(label):
            if label == 3:
                raise KeyboardInterrupt("by hand")
            return label
        try:
            list(labels.map(raises, "cls").loader(2, output="numpy", num_workers=2, on_error="skip"))
        except KeyboardInterrupt as error:
            print(error)
        try:
            labels.map(raises, "cls")[3]
        except KeyboardInterrupt as error:
            print(error)
        """,
        tar,
        paths,
        tmp_path,
    )
    assert out == "by hand\nby hand\n"


def test_ctrl_c_in_ds_i_comes_from_the_function(tar: Path, paths: dict[str, str], tmp_path: Path) -> None:
    out, errors = run(
        """
        inside = threading.Event()
        def waits(label):
            inside.set()
            while True:
                time.sleep(0.01)  # a signal just before a long one would be seen only behind it
        interrupt_once(inside)
        try:
            labels.map(waits, "cls")[0]
        except KeyboardInterrupt:
            print("interrupted")
        """,
        tar,
        paths,
        tmp_path,
    )
    assert (out, errors) == ("interrupted\n", "")


def test_fork_while_threads_are_in_functions(tar: Path, paths: dict[str, str], tmp_path: Path) -> None:
    out, errors = run(
        """
        import warnings
        warnings.simplefilter("ignore")
        data = labels.map(mapped.slow, "cls")
        loader = data.loader(2, output="numpy", num_workers=3)
        iterator = iter(loader)
        first = next(iterator).cls.tolist()
        for _ in range(8):
            pid = os.fork()
            if pid == 0:
                try:
                    next(iterator)
                except feedline.ConfigError:
                    pass
                loader.close()
                own = data.loader(5, output="numpy", num_workers=2)
                os._exit(sum(len(batch.cls) for batch in own))
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 23
        print(first + [label for batch in iterator for label in batch.cls.tolist()])
        """,
        tar,
        paths,
        tmp_path,
    )
    assert out == f"{[number % 5 for number in range(23)]}\n" and errors == ""


# ---- processes ----


def running(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture
def labels(tar: Path) -> feedline.Dataset:
    return feedline.open(tar, fields=("cls",))


def test_they_are_as_many_as_asked_for_and_end_with_the_loader(labels: feedline.Dataset) -> None:
    import mapped

    with labels.map(mapped.process_and_thread, "cls", processes=3).loader(4, output="numpy", num_workers=5) as loader:
        rows = np.concatenate([batch.cls for batch in loader])
    assert rows[:, 0].tolist() == [number % 5 for number in range(23)]
    pids = set(rows[:, 1].tolist())
    assert os.getpid() not in pids and len(pids) <= 3
    assert not any(running(str(pid)) for pid in pids)


@pytest.mark.parametrize(
    ("function", "how"),
    [("dies_where_three", r"was killed by signal 9 \(SIGKILL\)"), ("exits_where_three", "ended with exit code 7")],
)
def test_a_process_that_dies_is_its_samples_error(labels: feedline.Dataset, function: str, how: str) -> None:
    import mapped

    data = labels.map(mapped.plain, "cls").map(getattr(mapped, function), "cls", processes=2)
    with data.loader(4, output="numpy", num_workers=2) as loader:
        iterator = iter(loader)
        with pytest.raises(feedline.DataError, match=how) as caught:
            next(iterator)
        assert caught.value.key == "0003" and caught.value.stage == "map"
        assert next(iterator).cls.tolist() == [4, 0, 1, 2]
    with data.loader(4, output="numpy", num_workers=2, on_error="skip") as loader:
        assert sorted(label for batch in loader for label in batch.cls.tolist()) == sorted(
            label for label in (number % 5 for number in range(23)) if label != 3
        )
        assert [error.key for error in loader.errors] == ["0003", "0008", "0013", "0018"]


def test_what_cannot_come_back_is_its_samples_error(labels: feedline.Dataset) -> None:
    import mapped

    data = labels.map(mapped.raises_unpicklable_in_process, "cls", processes=1)
    with data.loader(4, output="numpy") as loader, pytest.raises(feedline.DataError, match="Unpicklable: 0 and 2"):
        next(iter(loader))
    data = labels.map(mapped.gives_a_lock_in_process, "cls", processes=1)
    with data.loader(4, output="numpy") as loader, pytest.raises(feedline.DataError, match=r"pickle.*lock"):
        next(iter(loader))


@pytest.mark.parametrize("how", ["close", "interrupt", "kill"])
def test_nothing_is_left_of_processes_that_are_stuck(
    how: str, tar: Path, paths: dict[str, str], tmp_path: Path
) -> None:
    process = start(
        """
        import multiprocessing
        loader = labels.map(mapped.stuck, "cls", processes=2).loader(4, output="numpy", num_workers=2)
        iterator = iter(loader)
        print(*[child.pid for child in multiprocessing.active_children()], flush=True)
        signal.signal(signal.SIGUSR1, lambda *_: loader.close())
        next(iterator)
        """,
        tar,
        paths,
        tmp_path,
    )
    assert process.stdout is not None
    pids = process.stdout.readline().split()
    assert len(pids) == 2 and all(map(running, pids))
    until(lambda: all(Path(f"/proc/{pid}/wchan").exists() for pid in pids))
    process.send_signal({"close": signal.SIGUSR1, "interrupt": signal.SIGINT, "kill": signal.SIGKILL}[how])
    process.communicate(timeout=HANG_S)
    assert process.returncode != 0
    until(lambda: not any(map(running, pids)), "the processes end", seconds=60)


def test_a_script_without_a_main_guard_ends_in_one_sentence(tar: Path, paths: dict[str, str], tmp_path: Path) -> None:
    script = tmp_path / "unguarded.py"
    script.write_text(
        HEAD
        + textwrap.dedent(
            """
            try:
                list(labels.map(mapped.plain, "cls", processes=1).loader(4, output="numpy"))
            except feedline.ConfigError as error:
                print(__name__, error, sep=": ", flush=True)
                if __name__ != "__main__":
                    raise
            """
        )
    )
    done = subprocess.run(
        [sys.executable, str(script), str(tar)], env=paths, capture_output=True, text=True, timeout=HANG_S
    )
    lines = done.stdout.splitlines()
    assert [line.split(":")[0] for line in lines] == ["__mp_main__", "__main__"], done.stderr
    for line in lines:
        assert 'if __name__ == "__main__"' in line and "on_error" not in line


def test_a_loader_may_be_made_without_a_main_guard(tar: Path, paths: dict[str, str], tmp_path: Path) -> None:
    script = tmp_path / "guarded.py"
    script.write_text(
        HEAD
        + textwrap.dedent(
            """
            loader = labels.map(mapped.plain, "cls", processes=1).loader(4, output="numpy")
            if __name__ == "__main__":
                print(sum(len(batch.cls) for batch in loader))
            """
        )
    )
    done = subprocess.run(
        [sys.executable, str(script), str(tar)], env=paths, capture_output=True, text=True, timeout=HANG_S
    )
    assert done.stdout == "23\n", done.stderr


def test_a_process_ends_on_sigterm_where_the_main_process_ignores_it(
    tar: Path, paths: dict[str, str], tmp_path: Path
) -> None:
    """As with job control that ignores SIGTERM: started programs inherit the ignored signal."""
    run(
        """
        import multiprocessing.connection
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        loader = labels.map(mapped.plain, "cls", processes=1).loader(4, output="numpy")
        next(iter(loader))
        (child,) = multiprocessing.active_children()
        os.kill(child.pid, signal.SIGTERM)
        assert multiprocessing.connection.wait([child.sentinel], 60), "it has not ended"
        """,
        tar,
        paths,
        tmp_path,
    )
