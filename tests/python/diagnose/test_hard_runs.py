# SPDX-License-Identifier: Apache-2.0
"""Runs that are difficult to observe: another user, unreadable processes, many ranks and processes, days of run time,
no disk space.
"""

import ctypes
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from watched import FEEDLINE, sampled, watched

from feedline.profiler.collect import FileCollector
from feedline.profiler.probe import events
from feedline.profiler.probe.recorder import CAPACITY, Recorder

pytest.importorskip("torch", reason="torch, whose loader is watched, is not installed")
pytest.importorskip("click", reason="click, for the command line, is not installed")

LOOP = """
import os, sys, time, torch
class Samples(torch.utils.data.Dataset):
    def __len__(self): return 320
    def __getitem__(self, i):
        time.sleep(0.001)
        return torch.tensor(i)
if __name__ == "__main__":
    for step, batch in enumerate(torch.utils.data.DataLoader(Samples(), batch_size=4, num_workers=1)):
        time.sleep(0.002)
"""
# PR_SET_DUMPABLE 0: from now on, only processes that may trace it can read its /proc/PID/io
UNREADABLE = "import ctypes\nctypes.CDLL(None).prctl(4, 0, 0, 0, 0)\n"


def _without_rights():
    """Even root may not trace others without CAP_SYS_PTRACE; everything else is still read."""
    if os.getuid() == 0:
        ctypes.CDLL(None).prctl(24, 19, 0, 0, 0)


def test_processes_whose_counters_may_not_be_read(tmp_path):
    def run(steps):
        source = UNREADABLE + LOOP.replace("320", f"{4 * steps}") + "    sys.exit(9)"
        status, _, err, found = watched(tmp_path, source, "--quick", preexec_fn=_without_rights)
        assert status == 9, err
        assert found["summary"]["steps"] == steps
        return (found,)

    (found,) = sampled(run, 400, 4000)
    measured = found["summary"]
    assert "io" in measured["missing"] and measured["host"]["read_bytes_per_s"] is None
    abstained = {a["cause"]: a["missing"] for a in found["abstained"]}
    assert "not permitted to read" in abstained["small_files"] and "run as the user" in abstained["small_files"]
    assert len(abstained) < 13, "most of the 27 causes are judged, whether or not one of them applies"


def test_a_folder_for_events_that_cannot_be_written_leaves_the_script_alone(tmp_path):
    """The session's folder is deleted while the script runs."""
    source = LOOP.replace(
        "    for step", "    import shutil; shutil.rmtree(os.environ['FEEDLINE_DIAGNOSE_SESSION'])\n    for step"
    )
    status, out, err, found = watched(tmp_path, source + "    print('done'); sys.exit(6)", "--quick")
    assert (status, out) == (6, "done\n")
    assert "Traceback" not in err and found["summary"] is None
    assert len(found["abstained"]) == 27


def test_every_rank_of_torchrun_is_seen_and_its_failure_is_its_own(tmp_path):
    script, output = tmp_path / "train.py", tmp_path / "found.json"
    # torchrun kills the other rank as soon as one fails, so rank 1 waits for the end of rank 0.
    end = f"""    ended = {str(tmp_path / "ended")!r}
    print('rank', os.environ['RANK'], flush=True)
    if os.environ['RANK'] == '0':
        open(ended, 'w').close()
    while not os.path.exists(ended):
        time.sleep(0.01)
    sys.exit(int(os.environ['RANK']))"""
    script.write_text(LOOP + end)
    command = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2", str(script)]
    watched_command = [*FEEDLINE, "diagnose", "--quick", "--output", str(output), "--", sys.executable, *command]
    done = subprocess.run(watched_command, capture_output=True, text=True)
    assert done.returncode == 1  # as with torchrun
    assert sorted(done.stdout.splitlines()) == ["rank 0", "rank 1"]
    assert len(json.loads(output.read_text())["summary"]["ranks"]) == 2


@pytest.mark.parametrize("method", ["spawn"])
def test_ranks_that_a_script_starts_itself_are_seen(tmp_path, method):
    source = f"""
    import multiprocessing, os, sys, torch
    def rank(number):
        os.environ["RANK"] = str(number)
        for batch in torch.utils.data.DataLoader(range(400), batch_size=4):
            pass
    if __name__ == "__main__":
        context = multiprocessing.get_context({method!r})
        ranks = [context.Process(target=rank, args=(number,)) for number in range(2)]
        for process in ranks: process.start()
        for process in ranks: process.join()
        sys.exit(sum(process.exitcode for process in ranks))
    """
    status, _, err, found = watched(tmp_path, source, "--quick")
    assert status == 0, err
    assert len(found["summary"]["ranks"]) == 2 and found["summary"]["steps"] > 0


def test_days_of_loops_take_a_bounded_folder(tmp_path):
    """Many steps, thousands of loaders of different kinds, and as many errors."""
    recorder = Recorder(str(tmp_path))
    for step in range(50_000):
        recorder.record(events.WAIT, 0, 0, 1, step)
    for number in range(3000):
        recorder.number_of_loader({"batch_size": number})
        recorder.note("the same again")
    sizes = [path.stat().st_size for path in tmp_path.iterdir()]
    assert len(sizes) < 100 and sum(sizes) < 2 * 56 * CAPACITY
    assert len((tmp_path / f"{os.getpid()}.note").read_text().splitlines()) < 50
    (ring,) = FileCollector(tmp_path).processes()
    assert ring.totals[events.WAIT].times == 50_000 and len(ring.events) <= CAPACITY
    assert ring.events[-1].b == 49_999  # the latest ones are kept


def test_a_closed_standard_error_does_not_change_the_status(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("import sys; sys.exit(5)")
    command = [*FEEDLINE, "diagnose", "--quick", "--", sys.executable, str(script)]
    shell = shutil.which("sh")
    for closed in ("2>&-", ">&-", "2>&- >&- <&-"):
        quoted = " ".join("'" + re.sub("'", "'\\\\''", part) + "'" for part in command)
        assert subprocess.run([shell, "-c", f"{quoted} {closed}"], capture_output=True).returncode == 5, closed


def test_nothing_is_left_over(tmp_path):
    """Returns the files in the folder for temporary files, where the session is, and those in /dev/shm whose name
    contains a process id.
    """
    source = LOOP + "    print(os.environ['FEEDLINE_DIAGNOSE_SESSION'], os.getpid())"
    status, out, *_ = watched(tmp_path, source, "--quick", environment={"TMPDIR": str(tmp_path)})
    assert status == 0
    session, pid = out.split()
    assert Path(session).parent == tmp_path
    assert {path.name for path in tmp_path.iterdir()} == {"train.py", "diagnosis.json"}
    assert not [path for path in Path("/dev/shm").iterdir() if f"_{pid}_" in path.name]
