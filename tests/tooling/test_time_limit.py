# SPDX-License-Identifier: Apache-2.0
"""tests/conftest.py ends the hang of any test by a limit, and restores signal handlers."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

HANG_S = 300
TESTS = Path(__file__).parents[1]

LOCK = "lock = ctypes.create_string_buffer(64); mutex = ctypes.PyDLL(None).pthread_mutex_lock; mutex(lock); mutex(lock)"
HANGS = {
    "in Python": "threading.Event().wait()",
    "with the GIL": LOCK,
    "in a call that a signal ends": "ctypes.PyDLL(None).sleep(3600)",
}


def run(folder: Path, body: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Runs pytest with the plugin under test on a separate file."""
    file = folder / "test_it.py"
    imports = "import ctypes, os, signal, threading, time\nfrom pathlib import Path\nimport pytest\n\n"
    file.write_text(imports + textwrap.dedent(body))
    command = [sys.executable, "-m", "pytest", "-c", os.devnull, "--rootdir", str(folder), "-p", "conftest", *options]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment["PYTHONPATH"] = str(TESTS)
    return subprocess.run(
        [*command, str(file)], env=environment, cwd=folder, capture_output=True, text=True, timeout=HANG_S
    )


def is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.parametrize(
    ("hang", "processes"),
    [
        *((hang, "0") for hang in HANGS),
        ("with the GIL", "2"),
        pytest.param("in Python", "2", marks=pytest.mark.nightly),
        pytest.param("in a call that a signal ends", "2", marks=pytest.mark.nightly),
    ],
)
def test_a_hanging_test_ends_the_run_and_shows_its_stacks(hang: str, processes: str, tmp_path: Path) -> None:
    """The forked child, which holds the pipes of the run and ignores SIGTERM, ends, too."""
    pytest.importorskip("xdist")
    done = run(
        tmp_path,
        f"""
        def stuck():
            {HANGS[hang]}

        @pytest.mark.time_limit(1)
        def test_hangs():
            signal.signal(signal.SIGTERM, lambda number, frame: None)
            child = os.fork()
            if child == 0:
                while True:
                    time.sleep(1)
            Path("child").write_text(str(child))
            stuck()
        """,
        *("-n", processes),
    )
    assert done.returncode != 0
    assert "test_hangs exceeded its limit of 1 s" in done.stderr
    assert "in stuck" in done.stderr
    child, end = int((tmp_path / "child").read_text()), time.monotonic() + HANG_S
    while is_alive(child) and time.monotonic() < end:
        time.sleep(0.01)
    assert not is_alive(child)


def test_the_end_of_the_run_has_a_limit_too(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        """
        import conftest
        conftest._LIMIT_S = 1

        def test_leaves_a_thread():
            threading.Thread(target=threading.Event().wait).start()
        """,
    )
    assert "1 passed" in done.stdout
    assert "the end of the run exceeded its limit" in done.stderr and done.returncode != 0


def test_a_test_within_its_limit_is_left_alone(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        """
        @pytest.mark.time_limit(60)
        def test_passes():
            pass

        @pytest.mark.time_limit(0.5)
        def test_ends_the_limit_before():
            pass

        def test_takes_longer_than_the_limit_of_another():
            time.sleep(1.5)
        """,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_handlers_of_signals_end_with_the_test(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        """
        def test_installs_one():
            signal.signal(signal.SIGTERM, lambda number, frame: None)
            signal.signal(signal.SIGUSR1, signal.SIG_IGN)

        def test_has_the_handlers_from_before():
            assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
            assert signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL
        """,
    )
    assert done.returncode == 0, done.stdout
