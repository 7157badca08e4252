# SPDX-License-Identifier: Apache-2.0
"""The arithmetic of `tools/bench --peers`, with simulated loaders: rounds, ratios, goals, skipped loaders."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from running_processes import HANG_S, until

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench" / "peers"))

import bars
import child
import environments
import launch
import paths
import report
import rounds
import tasks
from work import Work

_PEERS = Path(__file__).resolve().parents[2] / "bench" / "peers"


def _never_told(_text):
    pass


def test_every_second_round_runs_backwards():
    keys = [("a", "x"), ("a", "y"), ("b", "x")]
    assert list(rounds.order(keys, 3)) == [
        *((0, key) for key in keys),
        *((1, key) for key in reversed(keys)),
        *((2, key) for key in keys),
    ]


def test_who_fails_is_skipped_with_its_reason_and_takes_no_one_along():
    calls = []

    def flaky():
        calls.append("flaky")
        if len(calls) > 1:
            raise launch.Skipped("out of memory")
        return {"samples_per_s": 1.0}

    messages = []
    todo = {("t", "good"): lambda: {"samples_per_s": 2.0}, ("t", "flaky"): flaky}
    measured, skipped = rounds.run(todo, 4, messages.append)
    assert rounds.values(measured["t", "good"], "samples_per_s") == [2.0] * 4
    assert measured["t", "flaky"] == [{"samples_per_s": 1.0}, None, None, None]
    assert skipped == {("t", "flaky"): "out of memory"}
    assert len(calls) == 2, "who failed is not asked again"
    assert any("out of memory" in text for text in messages)


def test_a_median_is_of_the_rounds_that_have_the_figure():
    assert rounds.median([{"x": 3.0}, None, {"x": 1.0}, {"y": 9.0}, {"x": 2.0}], "x") == 2.0
    assert rounds.median([None, {"y": 1.0}], "x") is None


def _measured(**of_loaders):
    return {("t", name): [value and {"samples_per_s": value} for value in rates] for name, rates in of_loaders.items()}


def test_ratios_are_taken_within_a_round():
    # the machine was half as fast in the second round: the ratio is 2 in both rounds, but not that of the medians
    measured = _measured(Feedline=[200.0, 100.0, 600.0], other=[100.0, 50.0, 300.0])
    record = bars.evaluate(bars.Bar("w", "t", "Feedline", "other", at_least=2), measured, [])
    assert record["measured"] == [2.0, 2.0, 2.0]
    assert report.is_met(record)


_RATES = st.floats(1.0, 1e6)


@settings(deadline=None, max_examples=50)
@given(
    rates=st.lists(st.tuples(_RATES, _RATES, _RATES), min_size=1, max_size=5),
    slow=st.lists(st.floats(0.01, 1.0), min_size=5, max_size=5),
)
def test_a_machine_that_is_slow_for_a_round_changes_no_ratio(rates, slow):
    def ratios(factors):
        columns = zip(
            *([rate * factor for rate in row] for row, factor in zip(rates, factors, strict=False)), strict=True
        )
        measured = _measured(**dict(zip(("Feedline", "a", "b"), map(list, columns), strict=True)))
        return bars.evaluate(bars.Bar("w", "t", "Feedline", at_least=1), measured, ["a", "b"])["measured"]

    assert ratios(slow) == pytest.approx(ratios([1.0] * 5))


@settings(deadline=None, max_examples=50)
@given(st.sets(st.tuples(st.sampled_from("abc"), st.sampled_from("xyz"))).map(sorted), st.integers(0, 5))
def test_every_round_asks_everybody_once(keys, count):
    asked = list(rounds.order(keys, count))
    assert sorted(asked) == sorted((i, key) for i in range(count) for key in keys)


def test_the_best_peer_is_the_best_of_each_round():
    measured = _measured(Feedline=[120.0, 120.0, 120.0], a=[60.0, 20.0, 10.0], b=[30.0, 40.0, None])
    record = bars.evaluate(bars.Bar("w", "t", "Feedline", at_least=3), measured, ["a", "b"])
    assert record["measured"] == [2.0, 3.0, 12.0]
    assert record["against"] == "a"
    assert report.is_met(record)


def test_a_round_without_one_of_the_two_has_no_ratio():
    measured = _measured(Feedline=[100.0, None, 100.0], other=[None, 50.0, 50.0])
    record = bars.evaluate(bars.Bar("w", "t", "Feedline", "other", at_least=2), measured, [])
    assert record["measured"] == [2.0]


def test_a_bar_without_figures_is_not_measured_rather_than_met_or_missed():
    record = bars.evaluate(bars.Bar("words", "t", "Feedline", "other", at_least=2), _measured(Feedline=[1.0]), [])
    assert record["measured"] == []
    assert "| words | ≥ 2 |  |  |  | not measured |" in report.bars_table([record], {})


def test_rates_are_compared_by_cpu_time_as_well():
    measured = {
        ("t", "Feedline"): [{"samples_per_s": 100.0, "cpu_s_per_1000": 0.5}] * 2,
        ("t", "other"): [{"samples_per_s": 50.0, "cpu_s_per_1000": 2.0}, {"samples_per_s": 50.0}],
    }
    record = bars.evaluate(bars.Bar("w", "t", "Feedline", at_least=3), measured, ["other"])
    assert (record["measured"], record["by_cpu"]) == ([2.0, 2.0], [4.0])
    assert "| w | ≥ 3 | 2.00 (2.00 to 2.00) | 4.00 | other | missed |" in report.bars_table([record], {})
    memory = bars.Bar("m", "t", "Feedline", "other", figure="peak_pss", at_most=1)
    assert "by_cpu" not in bars.evaluate(memory, measured, [])


def test_least_and_inverse_bars():
    measured = {
        ("t", "Feedline"): [{"peak_pss": 90.0, "gap_s": 0.01}],
        ("t", "lean"): [{"peak_pss": 100.0, "gap_s": 0.2}],
        ("t", "fat"): [{"peak_pss": 900.0, "gap_s": 0.1}],
    }
    memory = bars.Bar("m", "t", "Feedline", figure="peak_pss", at_most=1.0, least=True)
    record = bars.evaluate(memory, measured, ["lean", "fat"])
    assert (record["measured"], record["against"], report.is_met(record)) == ([0.9], "lean", True)
    gap = bars.Bar("g", "t", "Feedline", "lean", figure="gap_s", at_least=20, inverse=True)
    assert bars.evaluate(gap, measured, [])["measured"] == [pytest.approx(20)]


def test_met_or_missed_is_decided_by_the_median_at_the_bound():
    assert report.is_met({"measured": [1.0, 2.0, 9.0], "at_least": 2.0})
    assert not report.is_met({"measured": [1.0, 1.99, 9.0], "at_least": 2.0})
    assert report.is_met({"measured": [0.5, 1.0, 9.0], "at_most": 1.0})
    assert not report.is_met({"measured": [0.5, 1.01, 1.2], "at_most": 1.0})


def test_every_bar_names_a_task_and_rows_that_exist():
    known = {task.name: task for task in tasks.TASKS}
    for bar in bars.BARS:
        task = known[bar.task]
        names = [loader.name for loader in task.loaders] + list(task.limits)
        assert bar.ours in names, bar.words
        assert bar.over in ("", bars.BEST, *names), bar.words
        assert (bar.at_least is None) != (bar.at_most is None), bar.words


def test_every_loader_has_an_environment_and_an_adapter():
    known = environments.peers()
    for task in tasks.TASKS:
        assert len({loader.name for loader in task.loaders}) == len(task.loaders)
        for loader in task.loaders:
            assert loader.environment == tasks.OWN or loader.environment in known
            assert (_PEERS / "adapters" / f"{loader.adapter}.py").exists()


def test_versions_are_pinned():
    for peer in environments.peers().values():
        assert all("==" in package for package in peer.packages), peer.name


def test_only_names_keep_feedline_next_to_them():
    dali = tasks.chosen(["dali"])
    assert {"float32", "uint8", "validate", "large"} == {task.name for task in dali}
    for task in dali:
        assert any(loader.ours for loader in task.loaders)
        assert {loader.environment for loader in task.loaders} == {tasks.OWN, "dali"}
    (one,) = tasks.chosen(["uint8", "Grain threads"])
    assert [loader.name for loader in one.loaders] == ["Feedline", "Grain threads"]
    assert [task.name for task in tasks.chosen([])] == [task.name for task in tasks.TASKS]
    with pytest.raises(ValueError, match=r"unknown: turbo;.*turboloader"):
        tasks.chosen(["turbo"])


def test_a_table_goes_from_fast_to_slow_and_reports_what_is_otherwise():
    loaders = (
        tasks.Loader("slow", "x", "x", note="no antialiasing"),
        tasks.Loader("Feedline", tasks.OWN, "feedline"),
        tasks.Loader("absent", "x", "x"),
    )
    task = tasks.Task("t", "title", "images", loaders, limits=("limit",))
    figures = {"cpu_s_per_1000": 1.5, "peak_pss": 12e6}
    measured = {
        ("t", "slow"): [{"samples_per_s": 100.0, **figures}, {"samples_per_s": 300.0, **figures}],
        ("t", "Feedline"): [{"samples_per_s": 1000.0, **figures}, {"samples_per_s": 3000.0, **figures}],
        ("t", "limit"): [{"samples_per_s": 4000.0}, None],
        ("t", "absent"): [None, None],
    }
    lines = report.task_table(task, measured).splitlines()[4:]
    assert [line.split(" | ")[0] for line in lines] == ["| limit", "| Feedline", "| slow"]
    assert lines[0].startswith("| limit | 4,000 | 2.00 |")
    assert lines[2].startswith("| slow | 200 (100 to 300) | 0.10 | 1.5 |")
    assert lines[2].endswith("| 1.5 | 12 | no antialiasing |")


def test_the_skipped_are_listed_once_per_reason():
    text = report.skipped_list({("a", "x"): "not installed: no wheel", ("b", "x"): "not installed: no wheel"})
    assert text.splitlines()[2:] == ["- x (a, b): not installed: no wheel"]
    assert report.skipped_list({}).splitlines()[2:] == ["- none"]


def test_an_environment_is_made_once_per_set_of_versions(tmp_path, monkeypatch):
    installed = []
    monkeypatch.setattr(environments, "_run", lambda command, *_, **__: installed.append(command[-1]))
    one, other = (environments.Peer("made_up", (f"nothing=={i}",), ("nothing",)) for i in (1, 2))
    for peer in (one, one, other, other, one):
        assert environments.ensure(peer, tmp_path) == tmp_path / "made_up" / "venv" / "bin" / "python"
    assert [last for last in installed if last.startswith("nothing==")] == ["nothing==1", "nothing==2", "nothing==1"]


def test_what_cannot_be_installed_does_not_count_as_made(tmp_path, monkeypatch):
    tried = []

    def fails(command, *_, **__):
        tried.append(command)
        if "pip" in command:
            raise environments.NotInstalled("no wheel")

    monkeypatch.setattr(environments, "_run", fails)
    for _ in range(2):
        with pytest.raises(environments.NotInstalled, match="no wheel"):
            environments.ensure(environments.Peer("made_up", ("nothing==1",), ("nothing",)), tmp_path)
    assert len(tried) == 4, "venv and pip, each time"


def test_the_reason_is_the_tools_last_error(tmp_path):
    said = (
        "print('Collecting'); print('ERROR: No matching distribution'); print('hint: look again'); raise SystemExit(1)"
    )
    with pytest.raises(
        environments.NotInstalled, match=r"^ERROR: No matching distribution \(complete output: .*/log\)$"
    ):
        environments._run([sys.executable, "-c", said], tmp_path / "log")


def test_a_package_that_does_not_import_is_not_installed(tmp_path):
    peer = environments.Peer("made_up", (), ("a_module_that_nobody_has",))
    with pytest.raises(environments.NotInstalled, match="No module named 'a_module_that_nobody_has'"):
        environments._imports(peer, Path(sys.executable), tmp_path / "log")


def test_distribution_packages_without_root_are_a_reason(tmp_path, monkeypatch):
    monkeypatch.setattr(environments.shutil, "which", lambda _name: "dpkg-query")
    missing = environments.subprocess.CompletedProcess([], 1, stdout="")
    monkeypatch.setattr(environments.subprocess, "run", lambda *_, **__: missing)
    monkeypatch.setattr(environments.os, "geteuid", lambda: 1000)
    with pytest.raises(environments.NotInstalled, match="apt-get install libone-dev libtwo-dev"):
        environments._apt(environments.Peer("made_up", (), (), ("libone-dev", "libtwo-dev")), tmp_path / "log")


def _work(folder="folder", **changes):
    return Work("train", "float32", "v", folder, "tars", "made", **changes)


def test_a_work_survives_json():
    work = _work(epochs=3, step_s=0.5)
    assert Work.from_json(work.to_json()) == work


def test_an_epoch_that_is_too_short_or_too_long_is_reported(tmp_path):
    (tmp_path / "a").mkdir()
    for i in range(10):
        (tmp_path / "a" / f"{i}.jpg").touch()
    first = {"shape": [3, 3, 224, 224], "dtype": "float32", "blank": 0, "mean": 0.1, "min": -2.1, "max": 2.6}
    work = _work(folder=str(tmp_path), batch=3, threads=2)
    assert [bool(work.wrong(first, samples)) for samples in (3, 4, 5, 9, 10, 11)] == [
        True,
        True,
        False,
        False,
        False,
        True,
    ]
    assert work.wrong(first, 3) == "its epoch has 3 of 10 photos"


def test_a_batch_that_is_not_what_was_asked_for_is_reported(tmp_path):
    def wrong(first):
        return _work(folder=str(tmp_path)).wrong(first, 0)

    good = {"shape": [64, 3, 224, 224], "dtype": "float32", "blank": 1, "mean": 0.1, "min": -2.1, "max": 2.6}
    assert wrong(good) == ""
    assert "shape [64, 224, 224, 3], not" in wrong({**good, "shape": [64, 224, 224, 3]})
    assert "dtype float16, not float32" in wrong({**good, "dtype": "float16"})
    assert "outside of -2.2 to 2.7" in wrong({**good, "min": 0.0, "max": 255.0})
    assert wrong({**good, "blank": 30}) == "30 pictures of its first batch are blank"
    assert "from 0.0 to 0.0" in wrong({**good, "min": 0.0, "max": 0.0})


def test_an_epoch_is_timed_and_the_gap_begins_after_the_last_step(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(child.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(child.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))

    def epochs():
        now[0] += 3.0  # until the first batch
        yield np.zeros((4, 2))
        now[0] += 1.0
        yield np.zeros((2, 2))
        now[0] += 0.25  # until the loader reports its end

    figures = child.timed(epochs, _work(epochs=3, step_s=0.5))
    assert figures["samples"] == 18
    assert figures["epoch_s"] == [5.25] * 3
    assert figures["samples_per_s"] == pytest.approx(18 / 15.75)
    assert figures["gap_s"] == pytest.approx(3.25)


def test_what_peers_made_of_other_photos_is_not_taken_for_these(tmp_path):
    for name in ("photos", "large"):
        (tmp_path / name / "a").mkdir(parents=True)
        (tmp_path / name / "a" / "0.jpg").write_bytes(b"12345")
    folders = [tmp_path / "photos", tmp_path / "large"]
    marks = [paths.fingerprint(*folders)]
    (folders[1] / "a" / "0.jpg").write_bytes(b"123456")
    marks.append(paths.fingerprint(*folders))
    (folders[0] / "a" / "1.jpg").write_bytes(b"12345")
    marks.append(paths.fingerprint(*folders))
    assert len(set(marks)) == 3
    assert paths.fingerprint(*folders) == marks[-1]


def test_what_came_is_described():
    first, _, samples = child.warm_up(lambda: iter([np.full((2, 3), 7, np.uint8), np.zeros((5, 3), np.uint8)]), None)
    assert first == {"shape": [2, 3], "dtype": "uint8", "mean": 7.0, "min": 7.0, "max": 7.0, "blank": 2}
    assert samples == 7


_PROGRAM = """
import json, os, subprocess, sys, time
kind = sys.argv[1]
if kind == "refuses":
    print("{}"); print(json.dumps({"unavailable": "gives float32 alone"}), flush=True); sys.exit(0)
if kind == "breaks":
    sys.exit("RuntimeError: pipeline is no longer valid")
print("a banner of the peer")
print(json.dumps({"bare_bytes": 1000}), flush=True)
if kind == "hangs":
    time.sleep(600)
held = bytearray(64 << 20)
orphan = subprocess.Popen(["sleep", "600"], stdout=subprocess.DEVNULL)
time.sleep(2.0)  # many looks at its memory
print("{}", flush=True)
print(json.dumps({"samples_per_s": 5.0, "orphan": orphan.pid}), flush=True)
os._exit(0)
"""


@pytest.fixture
def launched(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(_PROGRAM)

    def run(kind, timeout_s=HANG_S):
        return launch.run(sys.executable, kind, "{}", log=tmp_path / "log", timeout_s=timeout_s, program=program)

    return run


def _is_alive(pid):
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_process_is_measured_and_leaves_nothing(launched):
    figures = launched("works")
    assert figures["samples_per_s"] == 5.0
    assert figures["peak_pss"] > 64 << 20
    assert figures["peak_pss_above_bare"] == figures["peak_pss"] - 1000
    until(lambda: not _is_alive(figures["orphan"]), signal.SIGKILL)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    ("kind", "reason"),
    [("refuses", "^gives float32 alone$"), ("breaks", "failed: RuntimeError: pipeline is no longer valid")],
)
def test_a_process_that_gives_no_figures_reports_why(launched, kind, reason):
    with pytest.raises(launch.Skipped, match=reason):
        launched(kind)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_process_that_hangs_is_ended(launched):
    with pytest.raises(launch.Skipped, match="stopped after 1 s"):
        launched("hangs", timeout_s=1.0)


def test_the_record_of_a_run_is_json(tmp_path):
    record = bars.evaluate(bars.BARS[0], {("decoder", bars.BARS[0].ours): [{"ratio": 2.0}]}, [])
    assert json.loads(json.dumps(record))["measured"] == [2.0]
