# SPDX-License-Identifier: Apache-2.0
"""All code that starts threads or workers, or chooses memory sizes, uses the same reader of limits."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from feedline import _engine
from feedline.machine import facts as machine
from feedline.machine import limits, memory
from feedline.profiler.probe import loader_facts

ROOT = Path(__file__).resolve().parents[3]
GIB = 1 << 30
TOP = "sys/fs/cgroup"
ALLOWED = "Cpus_allowed_list:\t0-15\n"
MEMINFO = f"MemTotal: {64 << 20} kB\nMemAvailable: {61 << 20} kB\n"
RANK_VARIABLES = ("LOCAL_RANK", "LOCAL_WORLD_SIZE", "SLURM_STEP_ID", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS")

Make = Callable[..., Path]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """A machine with 16 CPUs and 64 GiB and these files, which the package reads instead of this machine's."""
    for name in (*RANK_VARIABLES, "MASTER_ADDR"):
        monkeypatch.delenv(name, raising=False)
    calls = ("cpu_limits", "memory_limits", "share_of_cpus", "sharing_ranks")

    def made(files: dict[str, str], mounts: str = f"/ /{TOP} rw - cgroup2 cgroup rw") -> Path:
        lines = "".join(f"3{i} 20 0:2{i} {mount}\n" for i, mount in enumerate(filter(None, mounts.split("|"))))
        basic = {"proc/self/status": ALLOWED, "proc/meminfo": MEMINFO, "proc/self/mountinfo": lines}
        for name, text in (basic | files).items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        root = str(tmp_path)

        def of(call: str) -> Callable[..., Any]:
            return lambda _root="", *pid: getattr(_engine, call)(root, *pid)

        stand_in = SimpleNamespace(local_ranks=_engine.local_ranks, **{call: of(call) for call in calls})
        monkeypatch.setattr(limits, "_engine", stand_in)
        return tmp_path

    return made


PARENT = {
    "proc/self/cgroup": "0::/box/job\n",
    f"{TOP}/box/cpu.max": "200000 100000\n",
    f"{TOP}/box/memory.max": f"{4 * GIB}\n",
    f"{TOP}/box/memory.current": f"{GIB}\n",
    f"{TOP}/box/memory.stat": f"anon 5\ninactive_file {GIB // 2}\n",
    f"{TOP}/box/job/cpu.max": "max 100000\n",
    f"{TOP}/box/job/memory.max": "max\n",
    f"{TOP}/box/job/memory.events": "max 0\noom_kill 7\n",
}
FIRST = {
    "proc/self/cgroup": "4:memory:/docker/x\n2:cpu,cpuacct:/docker/x\n",
    f"{TOP}/cpu/cpu.cfs_quota_us": "200000\n",
    f"{TOP}/cpu/cpu.cfs_period_us": "100000\n",
    f"{TOP}/memory/memory.limit_in_bytes": f"{4 * GIB}\n",
    f"{TOP}/memory/memory.usage_in_bytes": f"{GIB}\n",
    f"{TOP}/memory/memory.stat": f"inactive_file 1\ntotal_inactive_file {GIB // 2}\n",
    f"{TOP}/memory/memory.oom_control": "under_oom 0\noom_kill 7\n",
}
FIRST_MOUNTS = (
    f"/docker/x /{TOP}/cpu rw - cgroup cgroup rw,cpu,cpuacct|/docker/x /{TOP}/memory rw - cgroup cgroup rw,memory"
)


@pytest.mark.parametrize(("files", "mounts"), [(PARENT, None), (FIRST, FIRST_MOUNTS)], ids=["a_parents", "version_1"])
def test_limits_around_the_process_count(make: Make, files: dict[str, str], mounts: str | None) -> None:
    make(files, *([mounts] if mounts else []))
    assert limits.usable_cpus() == limits.share_of_cpus() == 2
    assert limits.memory_left() == limits.share_of_memory_left() == 4 * GIB - GIB // 2
    assert limits.memory_words() == (
        f"the machine has {61 * GIB:,} bytes available; the cgroup uses {GIB // 2:,} of {4 * GIB:,}"
    )
    assert limits.oom_kills() == 7
    assert limits.physical_memory() == 64 * GIB


def test_half_a_cpu_starts_a_thread_and_is_half_a_cpu_of_time(make: Make) -> None:
    root = make({"proc/self/cgroup": "0::/\n", f"{TOP}/cpu.max": "250000 100000\n", f"{TOP}/cgroup.procs": ""})
    assert limits.usable_cpus() == 3
    facts, _ = machine.machine_facts(root)
    assert (facts["usable_cpus"], facts["quota_cpus"], facts["cpus_allowed"]) == (2.5, 2.5, 16)


def test_what_only_slows_down_is_planned_with_and_refuses_nothing(make: Make) -> None:
    make({"proc/self/cgroup": "0::/\n", f"{TOP}/memory.high": f"{GIB}\n", f"{TOP}/memory.current": f"{2 * GIB}\n"})
    assert limits.memory_left() == 61 * GIB
    assert limits.share_of_memory_left() == GIB


def test_without_limits_the_machine_counts(make: Make) -> None:
    make({"proc/self/cgroup": "0::/\n"}, "")
    assert limits.usable_cpus() == 16
    assert limits.memory_left() == 61 * GIB
    assert limits.memory_words() == f"the machine has {61 * GIB:,} bytes available"
    assert limits.oom_kills() is None


def test_top_and_run_records_have_the_same_numbers(make: Make) -> None:
    root = make(PARENT | {"proc/7/cgroup": PARENT["proc/self/cgroup"], "proc/7/smaps_rollup": "Pss: 1 kB\n"})
    seen = memory.MemoryWatch(7, root).look([7])
    assert (seen.limit_bytes, seen.used_bytes) == (4 * GIB, GIB // 2)
    assert machine.cgroup_limits(root) == (2.0, 4 * GIB, "2")
    assert machine.machine_facts(root)[0]["usable_cpus"] == 2.0


def eight_ranks(monkeypatch: pytest.MonkeyPatch, launcher: str) -> None:
    variables = {
        "torchrun": {"LOCAL_RANK": "3", "LOCAL_WORLD_SIZE": "8"},
        "Open MPI": {"OMPI_COMM_WORLD_LOCAL_RANK": "3", "OMPI_COMM_WORLD_LOCAL_SIZE": "8"},
        "Slurm": {"SLURM_STEP_ID": "0", "SLURM_LOCALID": "3", "SLURM_NTASKS_PER_NODE": "8"},
    }[launcher]
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


NO_LIMITS = {"proc/self/cgroup": "0::/\n", f"{TOP}/cpuset.cpus.effective": "0-15\n"}


@pytest.mark.parametrize("launcher", ["torchrun", "Open MPI", "Slurm"])
def test_ranks_share_cpus_and_memory(make: Make, monkeypatch: pytest.MonkeyPatch, launcher: str) -> None:
    make(NO_LIMITS)
    assert limits.share_of_cpus() == 16
    eight_ranks(monkeypatch, launcher)
    assert (limits.local_rank(), limits.sharing_ranks()) == (3, 8)
    assert (limits.usable_cpus(), limits.share_of_cpus()) == (16, 2)
    assert limits.share_of_memory_left() == limits.memory_left() // 8
    assert (
        loader_facts.process_facts() | {"cpus": 16, "sharing_ranks": 8, "local_rank": 3} == loader_facts.process_facts()
    )


def test_ranks_that_the_launcher_has_bound_share_no_cpus(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    make(NO_LIMITS | {"proc/self/status": "Cpus_allowed_list:\t6-7\n"})
    eight_ranks(monkeypatch, "torchrun")
    assert (limits.sharing_ranks(), limits.share_of_cpus()) == (1, 2)


def test_the_drop_ins_workers_and_budget_are_a_ranks_share(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    import feedline
    from feedline.torch_loader.options.settings import Settings

    class Slow:
        def __len__(self) -> int:
            return 4

        def __getitem__(self, index: int) -> int:
            return index

    make(NO_LIMITS)
    alone = feedline.DataLoader(Slow(), num_workers="auto")
    assert alone.num_workers == 15
    assert Settings.of(alone).budget_bytes() == 61 * GIB // 4
    monkeypatch.setenv("LOCAL_RANK", "3")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    one_of_four = feedline.DataLoader(Slow(), num_workers="auto")
    assert one_of_four.num_workers == 3
    assert Settings.of(one_of_four).budget_bytes() == 61 * GIB // 16


def test_the_engines_memory_is_a_ranks_share(monkeypatch: pytest.MonkeyPatch) -> None:
    import feedline

    with pytest.raises(feedline.ConfigError, match="the memory budget is") as alone:
        _too_large(feedline)
    eight_ranks(monkeypatch, "torchrun")
    with pytest.raises(feedline.ConfigError, match="the memory budget is") as one_of_eight:
        _too_large(feedline)
    budgets = [int(re.findall(r"budget is (\d+)", str(error.value))[0]) for error in (alone, one_of_eight)]
    assert budgets[1] == budgets[0] // 8


def _too_large(feedline: Any) -> None:
    import numpy as np

    rows = np.broadcast_to(np.zeros(1 << 20, dtype=np.uint8), (1 << 28, 1 << 20))  # one row in memory
    feedline.arrays(x=rows).loader(1 << 28, output="numpy")


def test_tune_offers_no_more_than_a_ranks_share(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    from torch.utils.data import DataLoader

    from feedline.tune import script, service
    from feedline.tune.settings import Options

    make(NO_LIMITS)
    eight_ranks(monkeypatch, "torchrun")
    facts = service.Service(DataLoader([1, 2, 3]))._facts({})
    assert (facts["cpus"], facts["usable_cpus"], facts["memory"]) == (2, 16, 61 * GIB // 8)
    assert script.limits_of(Options(), facts).cpus == 2
    assert script.limits_of(Options(cpus=5), facts).cpus == 5, "who asks for more may have it"
    assert script.limits_of(Options(cpus=50), facts).cpus == 16


def test_the_copies_of_diagnose_try_workers_up_to_a_ranks_share(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    from torch.utils.data import DataLoader

    from feedline.diagnose.experiments import worker_sweep

    make(NO_LIMITS)
    assert max(worker_sweep._ladder(DataLoader([1, 2, 3]))) == 16
    eight_ranks(monkeypatch, "torchrun")
    assert max(worker_sweep._ladder(DataLoader([1, 2, 3]))) == 4


# Sources of CPUs and limits, which only the reader may use.
_OF_LIMITS = re.compile(
    r"sched_getaffinity|cpu_count|hardware_concurrency|_NPROCESSORS_|\bnproc\b|Cpus_allowed|process_cpu_count"
    r"|fs/cgroup|/cgroup\b|cpu\.max|cfs_quota|memory\.(max|high|current|limit_in_bytes|usage_in_bytes|oom_control)"
    r"|cpuset\.(cpus|effective)|LOCAL_WORLD_SIZE|LOCAL_SIZE|LOCALNRANKS|TASKS_PER_NODE"
)
_READER = {f"src/base/{name}" for name in ("cpus.cpp", "control_groups.cpp", "group_limits.cpp", "local_ranks.cpp")}
# These modules contain the words because a user's script, or the command that launches it, uses them.
_OF_SCRIPTS = {"python/feedline/machine/launchers.py"} | {
    f"python/feedline/doctor/script/{name}" for name in ("values.py", "command.py")
}
_ASKS_THE_READER = 'base::cgroup_limit("cpu.max")'


def test_only_the_reader_reads_limits() -> None:
    found_in = []
    for folder in ("src", "include", "python"):
        for path in sorted((ROOT / folder).rglob("*")):
            name = path.relative_to(ROOT).as_posix()
            if path.suffix not in (".cpp", ".h", ".py") or name in _READER | _OF_SCRIPTS:
                continue
            if "_test." in name or "_fixture." in name:
                continue
            for number, line in enumerate(path.read_text().splitlines(), 1):
                code = re.sub(r"\s*(//|#).*", "", line).replace(_ASKS_THE_READER, "")
                if _OF_LIMITS.search(code):
                    found_in.append(f"{name}:{number}: {line.strip()}")
    assert not found_in, "\n".join(found_in)


def test_the_search_for_other_readers_finds_the_reader() -> None:
    assert all(_OF_LIMITS.search((ROOT / name).read_text()) for name in _READER), "or it finds nobody else either"
