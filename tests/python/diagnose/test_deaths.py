# SPDX-License-Identifier: Apache-2.0
"""Runs that die: the cause of death is reported with evidence and fixes, and their speed is never judged."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch, whose loader is watched, is not installed")

from feedline.diagnose import deaths, report, verdict
from feedline.diagnose.rules.death import DeadRun
from feedline.diagnose.watch import watch
from feedline.machine.kernel_log import KernelLog
from feedline.profiler.crashes import Crash, CrashWatch, Dead
from feedline.profiler.probe import failures
from feedline.profiler.summary import timeline

MOUNTS = "1 0 259:1 / / rw,relatime - ext4 /dev/nvme0n1p1 rw\n30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n"

# The body of __getitem__ has the fault, for sample 24, which a worker reads.
SCRIPT = """
import errno, os, signal, sys, time
import torch
HOST = os.environ["PLANTED_HOST"]
class Samples(torch.utils.data.Dataset):
    def __len__(self): return 64
    def __getitem__(self, i):
        if i == 24:
            {fault}
        return torch.tensor(i)
{more}
def main():
    for batch in torch.utils.data.DataLoader({dataset}, batch_size=4, {options}):
        time.sleep(0.001)
{start}
"""
WITHOUT_LOOP = """
import errno, os, signal
{start}
"""
GUARD = 'if __name__ == "__main__": main()'
KILL = "os.kill(os.getpid(), signal.{})"
GROUP = "open(HOST + '/sys/fs/cgroup/box/memory.events', 'w').write('max 9\\noom 1\\noom_kill 1\\n'); "
LOG = "open(HOST + '/dev/kmsg', 'a').write('6,1,2,-;Out of memory: Killed process 7 (python) total-vm:9kB\\n'); "
COUNT = "open(HOST + '/proc/vmstat', 'w').write('pgfault 1\\noom_kill 3\\n'); "


@dataclass(frozen=True)
class Planted:
    """A script that dies. `says`: texts of the evidence; `first`: the first fix; `script`: torch takes seconds."""

    code: str
    fault: str = "pass"
    says: tuple[str, ...] = ()
    first: str = ""
    options: str = "num_workers=2"
    dataset: str = "Samples()"
    more: str = ""
    start: str = GUARD
    status: int = 1
    script: str = SCRIPT


PLANTED = {
    "cgroup": Planted(
        "killed_for_memory",
        GROUP + KILL.format("SIGKILL"),
        ("killed by SIGKILL", "the cgroup's counter of out-of-memory kills rose by 1"),
        "prefetch_factor=1 instead of 2",
    ),
    "host": Planted(
        "killed_for_memory",
        LOG + COUNT + KILL.format("SIGKILL"),
        ("the machine's counter of out-of-memory kills rose by 3", "Out of memory: Killed process 7 (python)"),
        "prefetch_factor=1 instead of 2",
    ),
    "kill": Planted(
        "killed", KILL.format("SIGKILL"), ("did not rise, so this was not an out-of-memory kill",), "a scheduler"
    ),
    "main": Planted(
        "killed",
        says=("the command's process",),
        start=KILL.format("SIGKILL"),
        status=-signal.SIGKILL,
        script=WITHOUT_LOOP,
    ),
    "truncated": Planted(
        "bus_error",
        "import mmap; f = open(HOST + '/mapped', 'w+b'); f.truncate(8192); m = mmap.mmap(f.fileno(), 8192); "
        "f.truncate(0); m[5000]",
        ("killed by SIGBUS", "train.py:9 in __getitem__()"),
        "memory-mapped file",
    ),
    "native": Planted(
        "native_crash",
        "import ctypes; ctypes.string_at(8)",
        ("killed by SIGSEGV", "train.py:9 in __getitem__()"),
        "num_workers=0",
    ),
    "abort": Planted("native_crash", "os.abort()", ("killed by SIGABRT",), "num_workers=0"),
    "children": Planted(
        "daemonic_children",
        "import multiprocessing; multiprocessing.Pool(2)",
        ("daemonic processes are not allowed to have children", "train.py:9 in __getitem__() in worker"),
        "Remove the pool",
    ),
    "loader": Planted(
        "daemonic_children",
        "next(iter(torch.utils.data.DataLoader(range(9), num_workers=1)))",
        ("daemonic processes are not allowed to have children", "in worker"),
        "Remove the pool",
    ),
    "pool": Planted(
        "pool_process_died",
        more="import concurrent.futures\ndef die(i): os._exit(1)\n",
        dataset="[concurrent.futures.ProcessPoolExecutor(1).submit(die, 0).result()]",
        says=("BrokenProcessPool",),
        first="in the process itself",
    ),
    "files": Planted(
        "open_files_exhausted",
        "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)); "
        "self.files = [open('/dev/null') for _ in range(99)]",
        ("Too many open files", "open files per process"),
        "Close files",
    ),
    "gpu": Planted(
        "gpu_out_of_memory",
        start='if __name__ == "__main__": main(); raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to '
        'allocate 2.00 GiB. GPU 0 has a total capacity of 8.00 GiB")',
        says=("Tried to allocate 2.00 GiB",),
        first="smaller batch_size (now 4)",
    ),
    "spawn": Planted(
        "cannot_pickle",
        options='num_workers=1, multiprocessing_context="spawn", collate_fn=lambda rows: rows',
        says=("pickle", "workers are started with spawn"),
        first="lambdas and nested functions",
    ),
    "forkserver": Planted(
        "cannot_pickle",
        dataset="[open(__file__)]",
        options='num_workers=1, multiprocessing_context="forkserver"',
        says=("cannot pickle", "workers are started with forkserver"),
        first="lambdas and nested functions",
    ),
    "guard": Planted(
        "main_guard_missing",
        options='num_workers=1, multiprocessing_context="spawn"',
        start="main()",
        says=("a new process imported the script",),
        first='if __name__ == "__main__":',
    ),
    "shapes": Planted(
        "sample_shapes_differ",
        "return torch.zeros(2)",
        ("RuntimeError: ",),
        "Resize or crop",
    ),
    "sample": Planted(
        "sample_error",
        "{}['missing']",
        ("KeyError: 'missing'", "train.py:9 in __getitem__() in worker 0"),
        "Read the traceback",
    ),
    "single": Planted(
        "sample_error",
        "{}['missing']",
        ("KeyError", "train.py:9 in __getitem__()"),
        "Read the traceback",
        options="num_workers=0",
    ),
    "exit": Planted("worker_exit", "os._exit(3)", ("ended with exit status 3",), "os._exit()"),
    "disk": Planted(
        "disk_full",
        start='raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "last.ckpt")',
        says=("No space left on device",),
        first="df -h",
        script=WITHOUT_LOOP,
    ),
    "script": Planted(
        "script_error",
        start='if __name__ == "__main__":\n    main()\n    raise ValueError("my own mistake")',
        says=("ValueError: my own mistake", "train.py:17 in <module>()"),
        first="Read the traceback",
    ),
    "memory": Planted(
        "allocation_failed",
        "bytearray(1 << 60)",
        ("MemoryError", "in worker"),
        "prefetch_factor=1 instead of 2",
    ),
}


# the same cause and fix as another one's: of "native", "children" and "spawn"
_REPEATED = {"abort", "loader", "forkserver"}
NAMES = [pytest.param(name, marks=[pytest.mark.nightly] if name in _REPEATED else []) for name in PLANTED]


def made_host(folder: Path) -> Path:
    """A host whose cgroup has the limit and counters that the scripts modify."""
    files = {
        "proc/self/cgroup": "0::/box\n",
        "proc/self/mountinfo": MOUNTS,
        "proc/meminfo": "MemTotal: 8000000 kB\nMemAvailable: 4000000 kB\n",
        "proc/vmstat": "pgfault 1\noom_kill 0\n",
        "dev/kmsg": "6,0,1,-;Out of memory: Killed process 5 (earlier)\n",
        "sys/fs/cgroup/box/memory.max": "4000000000\n",
        "sys/fs/cgroup/box/memory.current": "1000000000\n",
        "sys/fs/cgroup/box/memory.events": "max 9\noom 0\noom_kill 0\n",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "dev/shm").mkdir()
    return folder


@dataclass
class Seen:
    """Returns the diagnosis of a run that died."""

    document: dict
    text: str
    returncode: int
    code: str = field(init=False)

    def __post_init__(self) -> None:
        self.code = self.document["death"]["code"] if self.document["death"] else ""


def diagnosed(command: list[str], root: Path) -> Seen:
    recording = watch(command, budget=5.0, root=root)
    summary = timeline.summarise(recording)
    diagnosis = verdict.judge(recording, summary)
    document = report.as_json(recording, summary, diagnosis)
    assert recording.experiments is None or not diagnosis.death
    return Seen(document, report.as_text(recording, summary, diagnosis), recording.returncode)


def run(folder: Path, planted: Planted) -> Seen:
    host = made_host(folder / "host")
    script = folder / "train.py"
    script.write_text(
        textwrap.dedent(planted.script).format(
            fault=planted.fault,
            more=planted.more,
            dataset=planted.dataset,
            options=planted.options,
            start=planted.start,
        )
    )
    settings = f"PLANTED_HOST={host}"
    return diagnosed(["/usr/bin/env", settings, sys.executable, "-W", "ignore", str(script)], host)


@pytest.fixture(scope="module")
def seen(tmp_path_factory, request):
    """Returns the diagnoses of all scripts, run two at a time, because most of their time is spent importing torch."""
    wanted = {getattr(item, "callspec", None) and item.callspec.params.get("name") for item in request.session.items}
    folders = {name: tmp_path_factory.mktemp(name) for name in PLANTED if name in {*wanted, "host", "cgroup"}}
    with ThreadPoolExecutor(2) as pool:
        found = {name: pool.submit(run, folder, PLANTED[name]) for name, folder in folders.items()}
        return {name: future.result() for name, future in found.items()}


@pytest.mark.parametrize("name", NAMES)
def test_the_death_of_a_run_is_named(seen, name):
    planted, found = PLANTED[name], seen[name]
    assert found.code == planted.code, found.text
    assert found.returncode == planted.status
    evidence = " | ".join(found.document["death"]["evidence"])
    for text in planted.says:
        assert text in evidence
    fixes = found.document["death"]["fixes"]
    assert planted.first in fixes[0]
    assert [line for line in found.text.splitlines() if re.match(r"    \d+\. ", line)] == [
        f"    {number}. {fix}" for number, fix in enumerate(fixes, 1)
    ]


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_said_about_the_speed_of_a_dead_run(seen, name):
    document, text = seen[name].document, seen[name].text
    assert document["verdicts"] == [] and document["changes"] == [] and document["experiments"] is None
    assert document["more_workers"] is None and document["drop_in"] is None
    assert document["answer"]["text"].startswith("the run died: ") and document["answer"]["gain"] is None
    assert text.startswith("\nfeedline diagnose: the run died: ") and "batches/s" not in text and "what if" not in text
    assert {one["missing"] for one in document["abstained"]} == {"the run died, so its speed is not judged"}
    assert "no process iterated" not in text


def test_earlier_kernel_messages_are_not_of_this_run(seen):
    assert "earlier" not in seen["host"].text and "Killed process 7" in seen["host"].text
    assert not any("kernel's log" in line for line in seen["cgroup"].document["death"]["evidence"])


def test_a_full_dev_shm_is_named(tmp_path):
    """Runs in a mount namespace with a /dev/shm of 1 MB, which is too small for a batch."""
    unshare = ["unshare", "--mount", "--propagation", "private"]
    if shutil.which("unshare") is None or subprocess.run([*unshare, "true"], capture_output=True).returncode:
        pytest.skip("this user may not create a mount namespace")
    script = tmp_path / "train.py"
    script.write_text(
        "import subprocess, torch\n"
        "subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=1m', 'none', '/dev/shm'], check=True)\n"
        "class Samples(torch.utils.data.Dataset):\n"
        "    def __len__(self): return 8\n"
        "    def __getitem__(self, i): return torch.zeros(1_000_000)\n"
        "for batch in torch.utils.data.DataLoader(Samples(), batch_size=4, num_workers=1): pass\n"
    )
    found = diagnosed([*unshare, sys.executable, "-W", "ignore", str(script)], made_host(tmp_path / "host"))
    assert found.code == "shared_memory_full", found.text
    assert "--shm-size" in found.document["death"]["fixes"][0]


# -- runs that end with an error, but did not die


@pytest.mark.parametrize(
    "end",
    [
        "sys.exit(3)",
        "os.kill(os.getpid(), signal.SIGTERM)",
        "raise KeyboardInterrupt",
        "try: {}['caught']\n    except KeyError: pass",
    ],
)
def test_a_run_that_ends_by_itself_or_by_its_user_is_not_dead(tmp_path, end):
    script = tmp_path / "train.py"
    script.write_text(f"import os, signal, sys\nif True:\n    {end}\n")
    found = diagnosed([sys.executable, str(script)], made_host(tmp_path / "host"))
    assert found.document["death"] is None and "died" not in found.text


def test_an_error_that_the_script_survives_is_not_its_death(tmp_path):
    planted = Planted(
        "", "{}['missing']", start='if __name__ == "__main__":\n    try: main()\n    except KeyError: pass'
    )
    found = run(tmp_path, planted)
    assert (found.returncode, found.document["death"]) == (0, None)


# -- the evidence


def dead_run(*dead: Dead, status: int = 1, host: dict | None = None, **crash: object) -> DeadRun:
    return DeadRun(Crash(dead=list(dead), **crash), status, host or {})  # type: ignore[arg-type]


WORKER = Dead(41, "worker", -signal.SIGKILL, 1)


@pytest.mark.parametrize(
    ("evidence", "code"),
    [
        ({"cgroup_kills": 2}, "killed_for_memory"),
        ({"host_kills": 1, "cgroup_kills": 0}, "killed_for_memory"),
        ({"kernel": ("oom-kill:constraint=CONSTRAINT_MEMCG,task=python,pid=41",)}, "killed_for_memory"),
        ({"kernel": ("python[41]: segfault at 8 ip 0",)}, "killed"),
        ({"cgroup_kills": 0, "host_kills": 0}, "killed"),
        ({}, "killed"),
    ],
)
def test_a_kill_is_one_for_memory_only_with_evidence(evidence, code):
    assert deaths.judge(dead_run(WORKER, **evidence)).code == code


def test_without_counters_memory_is_likely_but_not_claimed():
    found = deaths.judge(dead_run(WORKER, unseen=("/dev/kmsg cannot be read: Operation not permitted",)))
    assert "probably for memory" in found.text and "likely but not shown" in " ".join(found.died.evidence)
    assert found.unseen == ("/dev/kmsg cannot be read: Operation not permitted",)
    assert any("prefetch_factor=1" in fix for fix in found.died.fixes)


def test_a_bus_error_is_of_shared_memory_if_that_was_full():
    dead = Dead(9, "worker", -signal.SIGBUS, 0)
    full = {"host": [{"shared_memory_used": 0.2}, {"shared_memory_used": 0.97}]}
    found = deaths.judge(dead_run(dead, host=full, shared_bytes=64_000_000))
    assert found.code == "shared_memory_full"
    assert "/dev/shm has 64 MB, and was 97% full during the run" in found.died.evidence
    stack = (
        'Current thread 0x0 (most recent call first):\n  File "/x/torch/utils/data/_utils/collate.py", line 9 in f\n'
    )
    assert deaths.judge(dead_run(dead, stacks={9: stack})).code == "shared_memory_full"
    assert deaths.judge(dead_run(dead, host={"host": [{"shared_memory_used": 0.2}]})).code == "bus_error"


def test_the_ranks_of_a_launcher_are_found_in_its_error():
    text = "train.py FAILED\n  rank      : 1 (local_rank: 1)\n  exitcode  : -9 (pid: 812)\n"
    failure = {"pid": 1, "fatal": True, "causes": [{"error": "x.ChildFailedError", "message": text}]}
    dead = CrashWatch.dead_of([failure], 1)
    assert dead == [Dead(812, "rank", -9)]
    assert deaths.judge(dead_run(*dead, failures=[failure], cgroup_kills=1)).code == "killed_for_memory"


def test_the_exit_status_of_a_worker_is_found_in_torchs_message():
    """torch's SIGCHLD handler may raise in any line of the loop."""
    text = "DataLoader worker (pid 31) exited unexpectedly with exit code 3. Details are lost due to multiprocessing."
    failure = {"pid": 1, "fatal": True, "causes": [{"error": "RuntimeError", "message": text}]}
    dead = CrashWatch.dead_of([failure], 1)
    assert dead == [Dead(31, "worker", 3)]
    assert deaths.judge(dead_run(*dead, failures=[failure])).code == "worker_exit"


@pytest.mark.parametrize("returncode", [-9, 137, -11, 139])
def test_a_shell_reports_a_signal_by_its_status(returncode):
    assert Crash().ended(returncode)
    assert CrashWatch.dead_of([], returncode, 5) == [
        Dead(5, "command", -(returncode - 128) if returncode > 0 else returncode)
    ]


@pytest.mark.parametrize("returncode", [0, 1, 3, -2, -15, 130, 143, 255])
def test_other_statuses_are_no_death_by_themselves(returncode):
    assert not Crash().ended(returncode)


def test_a_machine_without_any_evidence_is_not_a_traceback(tmp_path):
    """There is no /proc, no /sys and no kernel log, and the session's files contain no failures."""
    session = tmp_path / "session"
    session.mkdir()
    for number, text in enumerate(("", "{", "[]", '{"causes": 3}', '{"causes": ["x"]}', "\x00\xff")):
        (session / f"1.{number}{failures.SUFFIX}").write_text(text)
    (session / f"x{failures.STACK}").write_text("Fatal Python error")
    (tmp_path / "nothing").mkdir()
    watching = CrashWatch(tmp_path / "nothing")
    found = watching.collect(session, -9, 3)
    watching.close()
    assert found.failures == [] and found.dead == [Dead(3, "command", -9)] and found.kernel == ()
    assert found.cgroup_kills is None and found.host_kills is None
    assert any("/dev/kmsg cannot be read" in sentence for sentence in found.unseen)
    assert deaths.judge(DeadRun(found, -9)).code == "killed"


def test_the_kernel_log_of_this_machine_is_read_or_refused():
    log = KernelLog()
    try:
        assert log.kills() == () or not log.refused
        assert bool(log.refused) == (not os.access("/dev/kmsg", os.R_OK)) or log.refused.startswith("/dev/kmsg")
    finally:
        log.close()


def test_many_failures_of_a_process_are_few_files(tmp_path):
    for _ in range(50):
        failures.write(tmp_path, failures.of_error(ValueError("again" * 9000)))
    files = list(tmp_path.iterdir())
    assert len(files) == 8 and all(path.stat().st_size < 10_000 for path in files)


def test_every_death_has_fixes_and_a_page_of_its_own():
    pages = deaths.entries()
    assert len({page.code for page in pages}) == len(pages) == len(deaths.registered())
    priorities = [death.priority for death in deaths.registered()]
    assert len(set(priorities)) == len(priorities)
    assert {planted.code for planted in PLANTED.values()} <= {page.code for page in pages}
