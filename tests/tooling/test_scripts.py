# SPDX-License-Identifier: Apache-2.0
"""The scripts in tools/ announce what they install, and say clearly what they cannot do."""

import os
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def machine(tmp_path):
    """A machine made of fakes: bin/ holds the commands that differ from the real ones, logged to `calls`."""
    (tmp_path / "bin").mkdir()

    def command(name, body):
        path = tmp_path / "bin" / name
        path.write_text(f'#!/bin/bash\necho "{name} $*" >>"{tmp_path}/calls"\n{body}\n')
        path.chmod(0o755)

    def run(script, **variables):
        preamble = f'. "{ROOT}/tools/environment.sh"; FEEDLINE_LOGS="{tmp_path}/log"; FEEDLINE_VENV="{tmp_path}/venv"; '
        environment = {**os.environ, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}", **variables}
        return subprocess.run(
            ["bash", "-c", preamble + script], capture_output=True, text=True, env=environment, stdin=subprocess.DEVNULL
        )

    run.command = command
    run.folder = tmp_path
    run.calls = lambda: (tmp_path / "calls").read_text().splitlines() if (tmp_path / "calls").exists() else []
    (tmp_path / "packages.txt").write_text("# for tests\nlibone-dev  # one\n\nlibtwo-dev\n")
    return run


def test_names_leave_comments_out(machine):
    done = machine(f"feedline_names {machine.folder}/packages.txt")
    assert done.stdout.split() == ["libone-dev", "libtwo-dev"]


def test_nothing_is_installed_where_nothing_is_missing(machine):
    machine.command("dpkg-query", "echo -n installed")
    machine.command("apt-get", "exit 1")
    done = machine(f"feedline_apt {machine.folder}/packages.txt")
    assert (done.returncode, done.stdout) == (0, "")
    assert not any(call.startswith("apt-get") for call in machine.calls())


def test_what_is_missing_is_announced_before_it_is_installed(machine):
    machine.command("dpkg-query", "[[ $* == *libone* ]] && echo -n installed || exit 1")
    machine.command("apt-get", f'cp "{machine.folder}/said" "{machine.folder}/said_before_$2"; true')
    machine.command("id", "echo 0")
    done = machine(f"feedline_apt {machine.folder}/packages.txt >{machine.folder}/said")
    assert done.returncode == 0, done.stderr
    assert "libtwo-dev" in (machine.folder / "said_before_install").read_text()
    (install,) = (call for call in machine.calls() if "install" in call and call.startswith("apt-get"))
    assert install.split()[-1] == "libtwo-dev"
    assert "libone-dev" not in install


def test_without_root_the_command_to_run_is_named(machine):
    machine.command("dpkg-query", "exit 1")
    machine.command("apt-get", "exit 1")
    machine.command("id", "echo 1000")
    machine.command("sudo", "exit 1")
    done = machine(f"feedline_apt {machine.folder}/packages.txt")
    assert done.returncode == 1
    assert "apt-get install libone-dev libtwo-dev" in done.stdout
    assert not any(call.startswith("apt-get") for call in machine.calls())


def test_a_python_that_is_too_old_is_refused(machine):
    for name in ("python3", "python3.11", "python3.12", "python3.13", "python3.14"):
        machine.command(name, "exit 1")
    done = machine("feedline_venv", PYTHON="")
    assert done.returncode == 1
    assert "Python 3.11 or newer" in done.stderr
    assert not (machine.folder / "venv").exists()


def test_a_failing_step_shows_its_output_and_status(machine):
    done = machine("feedline_step 'a step' bash -c 'echo the reason >&2; exit 7'")
    assert done.returncode == 7
    assert "FAILED" in done.stdout
    assert "the reason" in done.stdout


def test_a_passing_step_is_quiet(machine):
    done = machine("feedline_step 'a step' echo noise")
    assert done.returncode == 0
    assert "noise" not in done.stdout
    assert (machine.folder / "log/a_step.log").read_text() == "noise\n"


def test_a_build_continues_next_to_what_follows(machine):
    waits = f'for _ in {{1..1000}}; do [ ! -e "{machine.folder}/go" ] || break; sleep 0.01; done'
    done = machine(
        f'feedline_compile() {{ echo compiling; {waits}; [ -e "{machine.folder}/go" ] && echo compiled; }}; '
        "feedline_install() { echo installed; }; "
        f'feedline_build_begin; echo between; touch "{machine.folder}/go"; feedline_build_end'
    )
    assert done.returncode == 0, done.stdout
    assert done.stdout.splitlines()[1:] == ["between", "compiling", "compiled", "installed"]


def test_a_build_that_fails_next_to_others_is_shown_and_not_installed(machine):
    done = machine(
        "feedline_compile() { echo why; return 3; }; feedline_install() { echo installed; }; "
        "feedline_build_begin; feedline_build_end"
    )
    assert done.returncode == 3
    assert done.stdout.splitlines()[1:] == ["why"]


def test_a_script_that_ends_early_ends_its_compilers(machine):
    pid = machine.folder / "pid"
    done = machine(
        f'feedline_compile() {{ sleep 100 & echo $! >"{pid}"; wait; }}; '
        f'feedline_build_begin; until [ -s "{pid}" ]; do sleep 0.01; done; exit 4'
    )
    assert done.returncode == 4
    assert ended(int(pid.read_text()))


def ended(pid):
    """Whether that process goes within some seconds; nobody may be there to fetch its status."""
    stat = Path(f"/proc/{pid}/stat")
    for _ in range(500):
        if not stat.exists() or stat.read_text().rsplit(")", 1)[1].split()[0] == "Z":
            return True
        time.sleep(0.01)
    return False


def test_several_runs_of_pytest_are_counted_as_one(machine):
    ends = {
        "first": "a test says: 9 failed\n== 12 passed, 2 skipped, 1 error in 61.02s (0:01:01) ==\n",
        "second": "===== 1 failed, 30 passed, 4 deselected in 5.00s =====\n",
        "third": "=== 7 deselected in 1.00s ===\n",
    }
    for name, end in ends.items():
        (machine.folder / f"{name}.log").write_text(end)
    logs = [f"{machine.folder}/{name}.log" for name in ends]
    assert machine(f"feedline_pytest_summary {' '.join(logs)}").stdout == "42 passed, 2 failed, 2 skipped\n"
    assert machine(f"feedline_pytest_summary {logs[2]}").stdout == ""


def test_counts_of_both_languages_add_up(machine):
    lines = "'100 passed, 2 failed, 3 skipped\n42 passed, 1 failed, 2 skipped'"
    for words, sum_of_them in (("passed", 142), ("failed error", 3), ("skipped", 5)):
        assert machine(f"feedline_count ${lines} {words}").stdout == f"{sum_of_them}\n"


@pytest.mark.parametrize("script", ["test", "check", "wheel"])
def test_help_and_wrong_arguments(script):
    helped = subprocess.run([ROOT / "tools" / script, "--help"], capture_output=True, text=True)
    assert helped.returncode == 0
    assert f"tools/{script}" in helped.stdout
    wrong = subprocess.run([ROOT / "tools" / script, "--nonsense"], capture_output=True, text=True)
    assert wrong.returncode == 1
    assert "--nonsense" in wrong.stderr


def test_packages_are_named_in_one_place():
    """No script installs a distribution package by name."""
    for script in [*(ROOT / "tools").glob("*"), ROOT / ".ci/run"]:
        if script.is_file() and not script.name.startswith("apt_packages"):
            text = script.read_text()
            assert "libjpeg-dev" not in text, script
            assert "libspng-dev" not in text, script
