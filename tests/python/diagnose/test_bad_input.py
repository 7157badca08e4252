# SPDX-License-Identifier: Apache-2.0
"""Whatever a script does, its exit status and output are forwarded, and the diagnosis lists what was not observed."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

pytest.importorskip("torch", reason="torch, whose loader is watched, is not installed")
pytest.importorskip("click", reason="click, for the command line, is not installed")

FEEDLINE = [sys.executable, "-c", "import sys; from feedline.cli import main; sys.exit(main())"]
LOOP = """
import sys, time, torch
class Samples(torch.utils.data.Dataset):
    def __len__(self): return 400
    def __getitem__(self, i): return torch.tensor(i)
if __name__ == "__main__":
    for step, batch in enumerate(torch.utils.data.DataLoader(Samples(), batch_size=4)):
        time.sleep(0.003)
"""


@pytest.fixture
def watch(tmp_path):
    """Runs a script under diagnose; returns (exit status, standard output, standard error, diagnosis)."""

    def run(source, *options, python=(sys.executable,), arguments=(), environment=None, before=(), **popen):
        script = tmp_path / "train.py"
        script.write_text(textwrap.dedent(source))
        output = tmp_path / "diagnosis.json"
        command = [*before, *FEEDLINE, "diagnose", "--quick", "--output", str(output), *options]
        command += ["--", *python, str(script)]
        done = subprocess.run(
            [*command, *arguments], capture_output=True, text=True, env={**os.environ, **(environment or {})}, **popen
        )
        found = json.loads(output.read_text()) if output.exists() else None
        return done.returncode, done.stdout, done.stderr, found

    return run


def test_output_and_status_come_through_whole(watch):
    """More than a pipe holds, on both streams."""
    lines = "    for _ in range(20_000): print('o' * 99); print('e' * 99, file=sys.stderr)\n"
    status, out, err, found = watch(LOOP + lines + "    print('out', end=''); sys.exit(7)")
    assert status == 7 and out == ("o" * 99 + "\n") * 20_000 + "out"
    assert err.startswith(("e" * 99 + "\n") * 20_000) and err.count("e" * 99 + "\n") == 20_000
    assert found["exit_status"] == 7
    assert found["summary"]["steps"] == 100  # also if one event represents several
    assert {"verdicts", "abstained", "step_ms", "wait_ms", "overhead_share"} <= set(found)
    for verdict in found["verdicts"]:
        assert {"cause", "share", "confidence", "evidence", "fix", "predicted_gain"} <= set(verdict)


def test_json_follows_the_output_of_the_script(watch):
    status, out, _, _ = watch(LOOP + "    print('first line')", "--json")
    first, rest = out.split("\n", 1)
    assert (status, first) == (0, "first line")
    assert json.loads(rest)["schema"] == "feedline.diagnosis/1"


def test_a_crash_is_the_scripts_own(watch):
    status, _, err, found = watch(LOOP + "        if step == 50: raise ValueError('my own mistake')")
    assert status == 1
    said = err.split("feedline diagnose")[0]
    assert "ValueError: my own mistake" in said and "feedline/profiler" not in said and "feedline/diagnose" not in said
    assert 0 < found["summary"]["steps"] <= 50  # stages after the last event are unknown
    assert any("exit status 1" in note for note in found["notes"])


@pytest.mark.parametrize("source", ["import sys; sys.exit(3)", "import torch, sys; sys.exit(3)"])
def test_a_script_without_a_loop(watch, source):
    status, _, _, found = watch(source)
    assert status == 3 and found["verdicts"] == [] and found["summary"] is None
    assert len(found["abstained"]) == 27
    assert any("no process iterated over" in note for note in found["notes"])


def test_what_is_no_python_at_all(watch):
    status, out, _, found = watch("echo hello; exit 4", python=("/bin/sh",))
    assert (status, out) == (4, "hello\n")
    assert any("no Python process" in note for note in found["notes"])


def test_a_python_that_ignores_the_environment(watch):
    status, _, _, found = watch("import sys; sys.exit(5)", python=(sys.executable, "-I"))
    assert status == 5 and any("-I" in note for note in found["notes"])


def test_a_command_that_is_not_there():
    done = subprocess.run([*FEEDLINE, "diagnose", "--", "/no/such/python"], capture_output=True, text=True)
    assert done.returncode == 127 and "/no/such/python" in done.stderr


def test_a_killed_script_ends_as_killed_and_leaves_what_it_recorded(watch):
    status, _, _, found = watch(LOOP + "        if step == 60: import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    assert status == -signal.SIGKILL
    assert found["exit_status"] == -9
    assert 0 < found["summary"]["steps"] <= 60  # stages after the last event are unknown
    assert any("SIGKILL" in note for note in found["notes"])


def test_a_signal_reaches_the_script(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("import signal, sys, time\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(11))\n"
                      "print('up', flush=True)\ntime.sleep(600)")  # fmt: skip
    command = [*FEEDLINE, "diagnose", "--quick", "--", sys.executable, str(script)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout.readline() == b"up\n"
    process.send_signal(signal.SIGTERM)
    assert process.wait(300) == 11


def test_a_script_that_ignores_ctrl_c_runs_to_its_end_and_is_diagnosed(tmp_path):
    script, output = tmp_path / "train.py", tmp_path / "diagnosis.json"
    ignoring = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    script.write_text(ignoring + LOOP + "        if step == 10: print('up', flush=True)\n    sys.exit(12)")
    command = [*FEEDLINE, "diagnose", "--quick", "--output", str(output), "--", sys.executable, str(script)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout.readline() == "up\n"
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    _, err = process.communicate(timeout=300)
    assert process.returncode == 12 and "Traceback" not in err
    found = json.loads(output.read_text())
    assert found["summary"]["steps"] == 100 and found["death"] is None


@pytest.mark.parametrize("late", [False, True])
def test_a_script_that_forks_early_is_judged_by_the_process_with_the_loop(watch, late):
    """A launcher that forks and waits, before torch is imported or after."""
    fork = "import os, sys\n{}pid = os.fork()\nif pid: sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
    status, _, err, found = watch(fork.format("import torch\n" * late) + LOOP + "    sys.exit(8)")
    assert status == 8 and "Traceback" not in err
    assert found["summary"]["steps"] == 100 and found["verdicts"]


EXIT, KILL = "import os; os._exit(3)", "import os; os.kill(os.getpid(), 15)"


@pytest.mark.parametrize(
    ("end", "in_loop"),
    [(EXIT, False), (KILL, False), (EXIT, True), pytest.param(KILL, True, marks=pytest.mark.nightly)],
)
def test_a_script_that_ends_at_once_is_not_judged(watch, end, in_loop):
    """Without a goodbye, in its first line or with its first batch."""
    status, _, err, found = watch(LOOP + f"        {end}" if in_loop else end)
    assert status == (3 if end == EXIT else -15)
    assert "Traceback" not in err and found["verdicts"] == []


def test_a_container_without_sys_is_diagnosed(watch):
    """/sys is empty, as some sandboxes have it: the machine's facts are missing, and no more."""
    inside = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", 'mount -t tmpfs none /sys && exec "$@"']
    if subprocess.run([*inside, "sh", "true"], capture_output=True).returncode != 0:
        pytest.skip("this user may not mount a file system in a namespace")
    status, _, err, found = watch(LOOP + "    sys.exit(6)", before=[*inside, "sh"])
    assert status == 6 and "Traceback" not in err
    assert found["summary"]["steps"] == 100 and found["verdicts"]


def test_a_closed_pipe_is_the_scripts_own(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("import sys\nfor i in range(100000): print(i)\n")
    statuses = []
    for before in ([], [*FEEDLINE, "diagnose", "--quick", "--"]):
        process = subprocess.Popen([*before, sys.executable, script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        process.stdout.readline()
        process.stdout.close()
        statuses.append(process.wait(300))
    assert statuses[0] == statuses[1] != 0


def test_a_dataset_that_cannot_be_pickled_fails_as_it_would(watch):
    source = """
    import torch
    if __name__ == "__main__":
        data = [lambda: 0]
        for batch in torch.utils.data.DataLoader(data, num_workers=1, multiprocessing_context="spawn"):
            pass
    """
    status, _, err, found = watch(source)
    assert status == 1 and "pickle" in err.lower()
    assert found["verdicts"] == []


def test_grandchildren_may_outlive_the_script(watch, tmp_path):
    marker = tmp_path / "grandchild"
    source = LOOP + f"    import subprocess; subprocess.Popen(['sh', '-c', 'sleep 3; touch {marker}'])\n"
    begin = time.monotonic()
    command_output = watch(source)[1]  # they keep the pipe open, as without diagnose
    assert command_output == "" and time.monotonic() - begin >= 2
    assert marker.exists()


def test_the_users_own_sitecustomize_runs(watch, tmp_path):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "sitecustomize.py").write_text("import builtins; builtins.seen_by_user = 41\n")
    paths = os.pathsep.join([str(tmp_path / "own"), *filter(None, [os.environ.get("PYTHONPATH")])])
    source = "import sys, sitecustomize; assert 'own' in sitecustomize.__file__; sys.exit(seen_by_user + 1)"
    status, _, _, found = watch(source, environment={"PYTHONPATH": paths})
    assert status == 42 and found is not None


def test_a_long_run_is_bounded(watch):
    """If there are more steps than the ring can hold, the latest ones are used."""
    source = """
    import torch
    for batch in torch.utils.data.DataLoader(range(800000), batch_size=8, collate_fn=len):
        pass
    """
    status, _, _, found = watch(source)
    assert status == 0 and 0 < found["summary"]["steps"] <= 100000
    assert 0 < found["overhead_share"] < 0.2  # the overhead is reported; tools/scenarios measures how small it is


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_of_every_start_method_are_seen(watch, method):
    source = LOOP.replace("batch_size=4", f"batch_size=4, num_workers=1, multiprocessing_context={method!r}")
    status, _, _, found = watch(source)
    assert status == 0
    making = found["summary"]["making"]
    assert making["batches"] == 100 and making["stages"] is not None
