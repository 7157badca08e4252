# SPDX-License-Identifier: Apache-2.0
"""The arithmetic of `tools/bench --remote`: requests of clients, ratios within a round, and wrong results."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.extend(str(Path(__file__).resolve().parents[2] / "bench" / name) for name in ("remote", "peers", ""))

import merge
import processes
import reading
import tables
import training
from launch import Skipped
from work import Work

_WORK = Work(transform="train", dtype="uint8", variant="stored", folder="", tars="", made="", batch=64, threads=1)


def _epoch(samples=6000, rate=100.0, first=0.1, **more):
    described = {"shape": [64, 3, 224, 224]}
    return {"samples": samples, "samples_per_s": rate, "cpu_s_per_1000": 1.0, "first_batch_s": first,
            "first_batch": described, "later": [], **more}  # fmt: skip


def _program(tmp_path, text):
    path = tmp_path / "program.py"
    path.write_text(text)
    return [sys.executable, path]


def test_reads_are_a_line_each():
    assert reading.lines([("large.bin", 0, 9), "a.jpg"], "http://h") == "http://h/large.bin 0 9\nhttp://h/a.jpg\n"


def test_what_a_client_prints_becomes_cpu_time_per_gb(tmp_path):
    figures = {"bytes": 500_000_000, "seconds": 2.0, "user_s": 0.5, "system_s": 0.25}
    command = _program(tmp_path, f"import sys; sys.stdin.read(); print('noise'); print('''{json.dumps(figures)}''')")
    found = reading.read(command, 8, "", {})
    assert (found["cpu_s_per_gb"], found["mb_per_s"]) == (1.5, 250)


def test_a_client_that_fails_is_skipped_with_its_last_words(tmp_path):
    with pytest.raises(Skipped, match="no bucket"):
        reading.read(_program(tmp_path, "raise SystemExit('no bucket')"), 8, "", {})


def test_bars_compare_within_a_round_and_leave_out_rounds_that_lack_one():
    kind = reading.KINDS[0].name
    measured = {
        (f"{kind}, http", reading.OURS): [{"cpu_s_per_gb": 1.2}, None, {"cpu_s_per_gb": 3.0}],
        (f"{kind}, http", reading.LIMIT): [{"cpu_s_per_gb": 1.0}, {"cpu_s_per_gb": 9.0}, {"cpu_s_per_gb": 2.0}],
        ("epoch, local", training.STORED): [_epoch(rate=200, first=0.05, later=[_epoch(rate=100)])] * 2,
        ("epoch, 50 ms", training.STORED): [
            _epoch(rate=150, first=0.15),
            _epoch(rate=190, first=0.20, later=[_epoch(rate=97)]),
        ],
    }
    found = {bar["goal"]: bar["measured"] for bar in tables.bars(measured, [0, 50])}
    assert found[f"CPU per GB, {kind}, http: times libcurl's"] == [1.2, 1.5]
    assert found["epoch as stored at 50 ms: share of the local rate"] == [0.75, 0.95]
    assert found["the same once reading ahead (second epoch) at 50 ms"] == [0.97]
    assert found["first batch at 50 ms, index present: round trips"] == pytest.approx([2, 3])
    assert found["epoch as stored at 0 ms: share of the local rate"] == []


def test_epoch_two_is_the_median_of_the_later_epochs():
    name = training.CACHED
    later = [_epoch(rate=rate) for rate in (90, 97, 200)]
    measured = {
        ("epoch, local", name): [_epoch(later=[_epoch(rate=100)])],
        ("epoch, 50 ms", name): [_epoch(rate=1, later=later)],
    }
    found = {bar["goal"]: bar["measured"] for bar in tables.bars(measured, [50])}
    assert found["epoch two with cache=: share of the local rate"] == [0.97]


def test_the_tables_list_everyone_and_report_who_was_skipped():
    task = f"{reading.KINDS[1].name}, s3"
    measured = {
        (task, reading.OURS): [{"cpu_s_per_gb": 1.0, "mb_per_s": 1234.0}],
        ("epoch, local", training.STORED): [_epoch()],
        ("epoch, 50 ms", "LitData"): [_epoch(rate=77)],
    }
    text = tables.text(measured, {(task, "boto3"): "not installed"}, tables.bars(measured, [50]))
    for words in ("1,234", "| LitData | 77 |", "boto3 (photos of 110 KB, s3): not installed", "not measured"):
        assert words in text


@pytest.mark.parametrize(
    ("samples", "shape", "words"),
    [
        (6000, [64, 3, 224, 224], ""),
        (5936, [64, 3, 224, 224], ""),
        (5000, [64, 3, 224, 224], "5000 of 6000 photos"),
        (6000, [64, 224, 224, 3], "its batches are"),
    ],
)
def test_an_epoch_without_all_its_photos_does_not_count(samples, shape, words):
    later = _epoch(samples=samples) | {"first_batch": {"shape": shape}}
    assert words in training.wrong(_epoch(later=[later]), 6000, _WORK)
    assert bool(training.wrong(_epoch(later=[later]), 6000, _WORK)) == bool(words)


def test_the_cpu_time_of_children_that_ended_is_counted_where_asked(tmp_path):
    import subprocess

    computes = "import time\nwhile time.process_time() < 0.3: pass"
    command = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {computes!r}]); " \
              "print(flush=True); input()"  # fmt: skip
    process = subprocess.Popen([sys.executable, "-c", command], stdout=subprocess.PIPE, stdin=subprocess.PIPE)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        alone, whole = processes.cpu_s([process.pid]), processes.cpu_s([process.pid], reaped=True)
    finally:
        process.communicate(b"\n")
    assert whole > alone + 0.2


def test_rounds_of_several_records_follow_each_other_and_ratios_stay_within_one():
    ranges = f"{reading.KINDS[0].name}, http"
    first = {"rounds": 1, "results": {f"{ranges}, {reading.OURS}": [{"cpu_s_per_gb": 1.0}],
                                      f"{ranges}, {reading.LIMIT}": [{"cpu_s_per_gb": 0.5}]},
             "skipped": {f"{ranges}, obstore": "aborted", "epoch, 0 ms, LitData": "no"}}  # fmt: skip
    second = {"rounds": 2, "results": {f"{ranges}, {reading.OURS}": [{"cpu_s_per_gb": 9.0}, None],
                                       f"{ranges}, obstore": [{"cpu_s_per_gb": 2.0}, None]}, "skipped": {}}  # fmt: skip
    measured, skipped = merge.merged([first, second])
    assert tables.bars(measured, [])[0]["measured"] == [2.0], "and not of 9.0, which had no limit in its round"
    assert [bool(entry) for entry in measured[ranges, "obstore"]] == [False, True, False]
    assert skipped == {("epoch, 0 ms", "LitData"): "no"}
    with pytest.raises(ValueError, match="does not end with a known name"):
        merge.key_of(f"{ranges}, nobody")


def test_a_reader_of_others_that_fails_is_left_out_of_all_rounds_and_named():
    from formats import environments, measure

    calls = []

    def fails_in_round_two():
        calls.append("fails")
        if len(calls) > 1:
            raise environments.NotInstalled("killed")
        return {"images_per_s": 1.0}

    results, failed = measure({"ours": lambda: {"images_per_s": 2.0}, "theirs": fails_in_round_two}, 3)
    assert results == {"ours": [{"images_per_s": 2.0}] * 3}
    assert failed == {"theirs": "killed"} and calls == ["fails"] * 2
