# SPDX-License-Identifier: Apache-2.0
"""``feedline top`` as users run it: on a terminal, in a pipe, with real runs."""

from __future__ import annotations

import codecs
import contextlib
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from running_processes import HANG_S, until

pytest.importorskip("rich", reason="rich is not installed")

from rich.cells import cell_len

TOP = [sys.executable, "-c", "import sys; from feedline.cli import main; sys.exit(main())", "top"]
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()=>][A-Z0-9]?")
ENTERS, LEAVES, SHOWS_CURSOR = "\x1b[?1049h", "\x1b[?1049l", "\x1b[?25h"
HOME = "\x1b[H"

TRAIN = """
import sys, time, feedline
dataset = feedline.open(sys.argv[1]).random_resized_crop(32)
loaders = [dataset.loader(4, output="numpy", epochs=10**6) for _ in range(int(sys.argv[2]))]
iterators = [iter(loader) for loader in loaders]
while True:
    for iterator in iterators:
        next(iterator)
    time.sleep(0.01)
"""
RANKS = """
import os, subprocess, sys
ranks = [os.environ | {"RANK": str(i), "WORLD_SIZE": "2"} for i in range(2)]
children = [subprocess.Popen([sys.executable, "-c", sys.argv[1], sys.argv[2], "1"], env=rank) for rank in ranks]
for child in children:
    child.wait()
"""


@pytest.fixture
def surroundings(environment: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """Finds only the test's runs; a terminal like those of SSH and tmux."""
    left_out = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR")
    inherited = {name: value for name, value in environment.items() if name not in left_out}
    return {**inherited, "FEEDLINE_RUNTIME_DIR": str(tmp_path / "feedline"), "TERM": "xterm-256color"}


@contextlib.contextmanager
def running(surroundings: dict[str, str], *command: str, loaders: int = 1) -> Iterator[subprocess.Popen[bytes]]:
    """Starts a process, and waits until it and its children publish `loaders` sockets; ends it with its children."""
    with subprocess.Popen([sys.executable, "-c", *command], env=surroundings, start_new_session=True) as run:
        try:
            folder = Path(surroundings["FEEDLINE_RUNTIME_DIR"])
            deadline = time.monotonic() + HANG_S
            while len(list(folder.glob("[0-9]*.sock"))) < loaders:
                assert run.poll() is None and time.monotonic() < deadline, "it did not start"
                time.sleep(0.02)
            yield run
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(run.pid, signal.SIGKILL)


def printed(surroundings: dict[str, str], *arguments: str, status: int | None = 0) -> str:
    done = subprocess.run([*TOP, *arguments], env=surroundings, capture_output=True, text=True, timeout=HANG_S)
    assert done.stderr == "" or status not in (0, 1), done.stderr
    assert status is None or done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def answered(surroundings: dict[str, str], *arguments: str, loaders: int = 1) -> str:
    """Returns the output once this many loaders responded in time; without enough CPU time, the output says that they
    did not.
    """
    expected = ("rank 0, loader 0", "rank 1, loader 0") if loaders > 1 else ("samples/s",)

    def look() -> str | None:
        text = printed(surroundings, *arguments, status=None)
        if "--json" not in arguments:
            return text if all(word in text for word in expected) else None
        seen = json.loads(text).get("loaders", []) if text.startswith("{") else []
        return text if len(seen) == loaders and all(each["rates"] for each in seen) else None

    return str(until(look))


class Terminal:
    """Runs a command like a shell on a terminal, and stores its output."""

    def __init__(self, command: list[str], environment: dict[str, str], columns: int, rows: int) -> None:
        self.master, slave = pty.openpty()
        self.resize(columns, rows, signalled=False)
        self.before = termios.tcgetattr(slave)
        self.text = ""
        # a read may end within a character, and Ctrl-C makes the kernel drop unread output
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.process = subprocess.Popen(
            command,
            env=environment,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        self.slave = slave

    def resize(self, columns: int, rows: int, signalled: bool = True) -> None:
        # the kernel sends the signal
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))
        if signalled:
            self.text = ""

    def press(self, keys: bytes) -> None:
        self.text = ""
        os.write(self.master, keys)

    def until(self, condition: Callable[[str], Any], seconds: float = HANG_S) -> str:
        """Returns the output since the last key press or change of size, once `condition` holds for it."""
        deadline = time.monotonic() + seconds
        while not condition(self.text):
            assert time.monotonic() < deadline, f"not seen in {self.text[-3000:]!r}"
            if select.select([self.master], [], [], 0.1)[0]:
                with contextlib.suppress(OSError):
                    self.text += self.decoder.decode(os.read(self.master, 1 << 16))
        return self.text

    def ended(self) -> int:
        """Returns the exit status; all output is in `text`."""
        self.until(lambda text: self.process.poll() is not None)
        self.until(lambda text: not select.select([self.master], [], [], 0.1)[0])
        return self.process.returncode

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()
        os.close(self.slave)
        os.close(self.master)


@pytest.fixture
def terminal(surroundings: dict[str, str]) -> Iterator[Callable[..., Terminal]]:
    opened: list[Terminal] = []

    def open_one(*arguments: str, columns: int = 80, rows: int = 24) -> Terminal:
        opened.append(Terminal([*TOP, "--interval", "0.2", *arguments], surroundings, columns, rows))
        return opened[-1]

    yield open_one
    for one in opened:
        one.close()


def frames(text: str) -> list[list[str]]:
    """Returns complete pictures, as lines of plain text."""
    parts = text.split(HOME)[1:-1]  # the last one may be incomplete
    return [ESCAPE.sub("", part).replace("\r", "").split("\n") for part in parts]


def check(text: str, columns: int, rows: int) -> list[str]:
    """Returns the last picture; all pictures fill the terminal exactly."""
    found = [frame for frame in frames(text) if any(frame)]
    assert found
    for frame in found:
        assert len(frame) == rows
        assert max(map(cell_len, frame)) <= columns
    return found[-1]


def has(*words: str) -> Callable[[str], bool]:
    """Waits for a complete picture with these words."""
    return lambda text: any(all(any(word in line for line in frame) for word in words) for frame in frames(text))


def test_on_a_terminal(folder: Path, surroundings: dict[str, str], terminal: Callable[..., Terminal]) -> None:
    with running(surroundings, TRAIN, str(folder), "2") as run:
        shown = terminal(str(run.pid))
        picture = check(shown.until(has("samples/s", "decode", "loader 1  ")), 80, 24)
        assert ENTERS in shown.text
        assert re.match(rf"feedline top  pid {run.pid}  00:\d\d:\d\d", picture[0])
        assert picture[-1].startswith("q quit")
        assert any(line.startswith("> ") and "loader 0" in line for line in picture)

        shown.press(b"\t")
        shown.until(lambda text: any(f[2].startswith("  ") and f[3].startswith("> ") for f in frames(text)))
        shown.press(b"\x1b[A")
        shown.until(lambda text: any(f[2].startswith("> ") for f in frames(text)))
        shown.press(b"p")
        shown.until(has("paused"))
        shown.press(b" ")
        shown.until(lambda text: frames(text) and "paused" not in frames(text)[-1][0])

        for columns, rows in ((60, 15), (132, 50), (20, 5)):
            shown.resize(columns, rows)
            shown.until(lambda text, rows=rows: any(len(frame) == rows for frame in frames(text)))
            shown.text = ""
            check(shown.until(lambda text: len(frames(text)) > 1), columns, rows)

        shown.press(b"q")
        assert shown.ended() == 0
        assert LEAVES in shown.text and SHOWS_CURSOR in shown.text
        assert termios.tcgetattr(shown.slave) == shown.before, "the terminal is left as it was found"


def test_another_size_is_painted_at_once(terminal: Callable[..., Terminal]) -> None:
    shown = terminal(str(os.getpid()), "--interval", "60")
    shown.until(lambda text: "tab loader" in text)
    shown.resize(100, 30)
    shown.until(lambda text: HOME in text and "tab loader" in text, seconds=50)  # not with the next sample
    shown.press(b"q")
    assert shown.ended() == 0


def test_a_run_that_ends_leaves_its_last_figures(
    folder: Path, surroundings: dict[str, str], terminal: Callable[..., Terminal]
) -> None:
    with running(surroundings, TRAIN, str(folder), "1") as run:
        shown = terminal()
        shown.until(has("samples/s", "decode"))
        run.kill()
        run.wait()
        shown.until(has("ended", "decode"))
        shown.press(b"q")
        assert shown.ended() == 0
        after = ESCAPE.sub("", shown.text.rpartition(LEAVES)[2])
        assert f"feedline top  ended  pid {run.pid}" in after and "decode" in after


@pytest.mark.parametrize("number, status", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_end_it_quietly(terminal: Callable[..., Terminal], number: int, status: int) -> None:
    shown = terminal(str(os.getpid()))
    shown.until(has("cpu"))
    if number == signal.SIGINT:
        shown.press(b"\x03")
    else:
        shown.text = ""
        shown.process.send_signal(number)
    assert shown.ended() == status
    assert LEAVES in shown.text and "Traceback" not in shown.text and "interrupted" not in shown.text
    assert termios.tcgetattr(shown.slave) == shown.before


def test_ctrl_z_gives_the_terminal_back(terminal: Callable[..., Terminal]) -> None:
    shown = terminal(str(os.getpid()))
    shown.until(has("cpu"))
    shown.press(b"\x1a")
    shown.until(lambda text: LEAVES in text)
    status = Path(f"/proc/{shown.process.pid}/status")
    shown.until(lambda text: "State:\tT" in status.read_text())
    assert termios.tcgetattr(shown.slave) == shown.before
    shown.text = ""
    shown.process.send_signal(signal.SIGCONT)
    shown.until(lambda text: ENTERS in text and has("cpu")(text))
    shown.press(b"q")
    assert shown.ended() == 0


def test_once_is_plain_text_of_80_columns(folder: Path, surroundings: dict[str, str]) -> None:
    with running(surroundings, TRAIN, str(folder), "1") as run:
        text = answered(surroundings, "--interval", "0.5")
        assert "\x1b" not in text and max(map(cell_len, text.splitlines())) <= 80
        for word in (f"pid {run.pid}", "samples/s", "storage", "decode", "cpu", "memory", "disk", "gpu"):
            assert word in text, text
        wide = printed({**surroundings, "COLUMNS": "150"}, str(run.pid), "--once", "--interval", "0.1", status=None)
        assert max(map(cell_len, wide.splitlines())) > 80

        found = json.loads(answered(surroundings, "--json", "--interval", "2"))
        (loader,) = found["loaders"]
        assert loader["rates"]["batches_per_s"] > 0 and loader["pid"] == found["process"]["pid"] == run.pid
        assert loader["totals"]["source"] == str(folder)
        assert set(loader["rates"]["stages"]) == {"storage", "decode", "transform", "batch"}
        assert found["host"]["pids"] == [run.pid] and found["ended"] is False


def test_ranks_are_shown_together(folder: Path, surroundings: dict[str, str]) -> None:
    with running(surroundings, RANKS, TRAIN, str(folder), loaders=2) as launcher:
        for arguments in ([], [str(launcher.pid)]):
            text = answered(surroundings, "--once", "--interval", "0.3", *arguments, loaders=2)
            assert f"pid {launcher.pid}" in text.splitlines()[0]
        found = json.loads(answered(surroundings, "--json", "--interval", "0.1", loaders=2))
        assert len(found["host"]["pids"]) == 3
        assert [(loader["rank"], loader["world_size"]) for loader in found["loaders"]] == [(0, 2), (1, 2)]


def test_a_process_without_our_loaders(surroundings: dict[str, str]) -> None:
    text = printed(surroundings, str(os.getpid()), "--once", "--interval", "0.1", status=None)
    assert "no Feedline loader publishes its counters here" in text and "feedline diagnose" in text
    assert "cpu" in text and "CPUs" in text


def test_no_such_process(surroundings: dict[str, str]) -> None:
    assert "process 4194303 does not exist" in printed(surroundings, "4194303", "--once", status=2)
    assert "0.1<=x<=60" in printed(surroundings, "--interval", "0", status=2)


@pytest.mark.parametrize("form", ["--once", "--json"])
def test_a_closed_pipe_is_no_error(surroundings: dict[str, str], form: str) -> None:
    command = [*TOP, str(os.getpid()), form, "--interval", "0.1"]
    pairs = []
    for _ in range(10):  # the machine may get an alarm in between, but not each time
        whole = subprocess.run(command, env=surroundings, capture_output=True, timeout=HANG_S).returncode
        with subprocess.Popen(command, env=surroundings, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
            assert run.stdout is not None and run.stderr is not None
            run.stdout.close()
            assert run.stderr.read() == b""
            pairs.append((whole, run.wait(HANG_S)))
        if pairs[-1][0] == pairs[-1][1]:
            break
    assert pairs[-1][0] == pairs[-1][1], pairs
