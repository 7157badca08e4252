# SPDX-License-Identifier: Apache-2.0
"""Run records: the schema, refusals, the machine's facts, and the stored parts of measurements."""

from __future__ import annotations

import copy
import json
import math
import random
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import made_records
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from running_processes import HANG_S

from feedline import record
from feedline.diagnose.steps import steps_of
from feedline.machine import facts as machine
from feedline.machine import storage
from feedline.profiler.probe import events
from feedline.profiler.probe.events import Event
from feedline.profiler.recordings import ProcessRecord, Recording
from feedline.record import series, validation


def subschemas(schema: Any) -> list[dict[str, Any]]:
    found = [schema]
    for name in ("properties", "$defs"):
        for inner in schema.get(name, {}).values():
            found += subschemas(inner)
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            found += subschemas(schema[name])
    return found


STRUCTURE = {"$ref", "$defs", "properties", "additionalProperties", "items"}
ANNOTATIONS = {"$schema", "$id", "title", "description"}


def test_there_is_a_sentence_for_whatever_the_schema_asks() -> None:
    for schema in subschemas(validation.schema()):
        assert schema.keys() <= validation.SENTENCES.keys() | STRUCTURE | ANNOTATIONS
    library = pytest.importorskip("jsonschema", reason="jsonschema, which knows the whole standard, is not installed")
    library.Draft202012Validator.check_schema(validation.schema())


@pytest.mark.parametrize(
    "made", [made_records.bench(), record.from_diagnosis(made_records.diagnosis(), made_records.STEPS)]
)
def test_what_the_verbs_make_is_as_the_schema_has_it(made: dict[str, Any], tmp_path: Path) -> None:
    assert record.check(made) is made
    record.write(made, tmp_path / "run.json")
    assert record.read(tmp_path / "run.json") == made
    library = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    library.validate(made, validation.schema())


RECORDS = [made_records.bench(), record.from_diagnosis(made_records.diagnosis(), made_records.STEPS[:5])]
VALUES = [None, True, 0, -1, 1.0, 2.5, "x", [], {}, [1, 2, 3, 4], ["x"], {"a": []}, {"a": 1}]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path_of_item for name, item in inner for path_of_item in [(*path, name), *places(item, (*path, name))]]


@settings(deadline=None)
@given(st.data())
def test_the_check_agrees_with_jsonschema(data: st.DataObject) -> None:
    library = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    made = copy.deepcopy(data.draw(st.sampled_from(RECORDS)))
    path = data.draw(st.sampled_from(places(made)))
    holder = made
    for name in path[:-1]:
        holder = holder[name]
    if data.draw(st.booleans()):
        del holder[path[-1]]
    else:
        holder[path[-1]] = data.draw(st.sampled_from(VALUES))
    valid = library.Draft202012Validator(validation.schema()).is_valid(made)
    before = copy.deepcopy(made)
    assert (validation.problem(made) is None) == valid
    assert made == before, "checking changes nothing"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON"),
        ("[1, 2]", "no JSON object"),
        ('{"a": 1}', "feedline bench SOURCE --record FILE"),
        ('{"run_record": 2}', "version 2; this version of Feedline reads versions up to 1; update Feedline"),
        ('{"run_record": true}', "has no 'run_record' key"),
        ('{"run_record": 1}', "lacks 'verb'"),
        ('{"run_record": NaN}', "NaN is not a JSON number"),
        ("[" * 100_000, "not JSON"),
        ('{"schema": "feedline.diagnosis/1"}', "the diagnosis cannot be read"),
    ],
)
def test_what_is_no_record_is_refused_by_name(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(record.RecordError, match=message):
        record.read(path)


def test_a_damaged_record_reports_where(tmp_path: Path) -> None:
    made = made_records.bench()
    made["stages"][1]["ms_per_batch"] = "long"
    with pytest.raises(record.RecordError, match=r"record.stages\[1\].ms_per_batch must be number or null, not 'long'"):
        record.write(made, tmp_path / "run.json")
    assert list(tmp_path.iterdir()) == []
    made = made_records.bench()
    made["stages"][0]["ms_per_batch"] = -1
    with pytest.raises(record.RecordError, match="must be at least 0, not -1"):
        record.check(made)
    made = made_records.bench()
    made["histograms"]["wait_ms"]["edges"].reverse()
    with pytest.raises(record.RecordError, match="ascending edges"):
        record.check(made)


def test_a_diagnosis_of_before_records_is_read(tmp_path: Path) -> None:
    path = tmp_path / "diagnosis.json"
    path.write_text(json.dumps(made_records.diagnosis()))
    found = record.read(path)
    assert found["machine"] is None and "no facts about the machine" in found["notes"][0]
    assert found["verdicts"][0]["cause"] == "storage_latency"
    assert found["figures"][0]["value"] == pytest.approx(20.0)


def test_the_record_of_a_diagnosis_still_holds_what_the_diagnosis_holds() -> None:
    document = made_records.diagnosis()
    made = record.from_diagnosis(document, made_records.STEPS)
    for name in ("verdicts", "abstained", "step_ms", "wait_ms", "overhead_share", "summary", "experiments"):
        assert made[name] == json.loads(json.dumps(document[name]))
    assert made["machine"]["cpus_allowed"] >= 1 and made["software"]["python"]
    assert made["configuration"] == {"batch_size": 32, "num_workers": 4}
    assert sum(stage["ms_per_batch"] for stage in made["stages"]) == pytest.approx(122.0)
    assert [rung["predicted"] for rung in made["ladder"]["rungs"]] == [18.0, None]
    assert sum(made["histograms"]["wait_ms"]["counts"]) == 200


def test_steps_are_those_of_the_longest_loop() -> None:
    def process(pid: int, step_ms: int) -> ProcessRecord:
        found = []
        for i in range(3):
            begin = 100_000_000 * i
            found.append(Event(events.WAIT, 1, begin, 2_000_000, 0, 1, i))
            found.append(Event(events.STEP, 1, begin + 2_000_000, step_ms * 1_000_000, 0, 1, 1))
        return ProcessRecord(pid, 1, 0, found, {})

    recording = Recording([], 0, 0, 1, [process(10, 5), process(11, 7)], [], {}, [], 1)
    assert steps_of(recording) == [(pytest.approx(0.1 * i + 0.002), 2.0, 7.0) for i in range(3)]
    recording.processes = []
    assert steps_of(recording) == []


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_the_tightest_limit_of_a_cgroup_and_its_parents_counts(tmp_path: Path) -> None:
    top = "sys/fs/cgroup"
    root = write(
        tmp_path,
        {
            "proc/self/cgroup": "0::/jobs/one\n",
            f"{top}/cgroup.controllers": "cpu memory",
            f"{top}/jobs/cpu.max": "150000 100000\n",
            f"{top}/jobs/one/cpu.max": "200000 100000\n",
            f"{top}/jobs/memory.max": "2147483648\n",
            f"{top}/jobs/one/memory.max": "1073741824\n",
        },
    )
    assert machine.cgroup_limits(root) == (1.5, 1 << 30, "2")


def test_limits_of_the_first_version_of_cgroups(tmp_path: Path) -> None:
    top = "sys/fs/cgroup"
    root = write(
        tmp_path,
        {
            "proc/self/cgroup": "4:memory:/in\n2:cpu,cpuacct:/in\n0::/\n",
            f"{top}/cpu/cpu.cfs_quota_us": "-1",
            f"{top}/cpu/cpu.cfs_period_us": "100000",
            f"{top}/cpu/in/cpu.cfs_quota_us": "50000",
            f"{top}/cpu/in/cpu.cfs_period_us": "100000",
            f"{top}/memory/memory.limit_in_bytes": "9223372036854771712",
        },
    )
    assert machine.cgroup_limits(root) == (0.5, None, "1")
    assert machine.cgroup_limits(tmp_path / "nowhere") == (None, None, None)


def test_this_machine_has_facts_without_a_gpu_or_with() -> None:
    facts, _ = machine.machine_facts()
    assert 0 < facts["usable_cpus"] <= facts["cpus_allowed"] <= facts["cpus"]
    assert facts["memory_bytes"] > facts["available_bytes"] > 0


def test_storage_is_that_of_the_nearest_mount(tmp_path: Path) -> None:
    data = tmp_path / "my data"
    data.mkdir()
    escaped = str(data).replace(" ", "\\040")
    lines = [
        "1 0 8:1 / / rw - ext4 /dev/sda1 rw",
        f"2 1 0:5 / {escaped} rw - tmpfs none rw",
        f"3 1 0:9 / {escaped} ro,noatime - nfs4 server:/data rw",  # over the one before
    ]
    root = write(tmp_path / "root", {"proc/self/mountinfo": "\n".join(lines)})
    facts, notes = storage.storage_facts(str(data / "shards" / "{000..146}.tar"), root)
    assert facts is not None and notes == []
    assert (facts["kind"], facts["device"], facts["mount_options"]) == ("network", "server:/data", "ro,noatime")
    disk = write(root, {"sys/dev/block/8:1/queue/rotational": "1\n", "sys/dev/block/8:1/queue/read_ahead_kb": "128"})
    facts, _ = storage.storage_facts(str(tmp_path), disk)
    assert facts is not None and (facts["kind"], facts["read_ahead_kb"]) == ("disk", 128)
    assert storage.storage_facts("s3://bucket/x")[0] == {"kind": "remote", "scheme": "s3"}
    assert storage.storage_facts(None)[0] is None


def test_intervals_hold_the_true_rate_about_as_often_as_they_claim() -> None:
    draw = random.Random(0)
    held = 0
    for _ in range(300):
        seconds = [draw.gauss(0.1, 0.02) for _ in range(200)]
        low, high = series.rate_interval([1.0] * 200, seconds)
        assert low is not None and high is not None
        held += low <= 10.0 <= high
    assert 0.88 <= held / 300 <= 0.99
    assert series.rate_interval([1.0, 1.0], [1.0, 1.0]) == (None, None)
    assert series.rate_interval([], []) == (None, None)
    assert series.rate_interval([5.0] * 20, [1.0] * 20) == (5.0, 5.0)


@settings(deadline=None)
@given(st.lists(st.floats(0, 1e9, allow_subnormal=False), min_size=1, max_size=300))
def test_a_histogram_counts_everything_once_and_stays_small(values: list[float]) -> None:
    made = series.histogram(values)
    assert made is not None
    edges, counts = made["edges"], made["counts"]
    assert sum(counts) == len(values) and len(counts) <= 64 and len(edges) == len(counts) + 1
    for i, count in enumerate(counts):
        inside = sum(edges[i] * (1 - 1e-9) <= max(value, 1e-3) < edges[i + 1] * (1 + 1e-9) for value in values)
        assert inside >= count
    assert series.histogram([]) is None and series.histogram([math.nan]) is None


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(0, 1e5), st.floats(0, 1e6)), max_size=800))
def test_a_timeline_keeps_the_longest_and_stays_small(steps: list[tuple[float, float]]) -> None:
    times, values = [time for time, _ in steps], [value for _, value in steps]
    made = series.points(times, values)
    assert len(made) <= series.POINTS and bool(made) == bool(steps)
    assert [time for time, _, _ in made] == sorted(time for time, _, _ in made)
    assert max((largest for *_, largest in made), default=0.0) == max(values, default=0.0)


def test_bench_writes_one_that_holds_what_it_printed_before(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("click", reason="the command line is not installed")
    command = [
        sys.executable,
        "-c",
        "import sys; from feedline.cli import main; sys.exit(main())",
        "bench",
        str(folder),
    ]
    output = tmp_path / "run.json"
    options = ["--seconds", "0.3", "--batch-size", "4", "--num-workers", "2", "--record", str(output), "--json"]
    printed = subprocess.run([*command, *options], capture_output=True, text=True, timeout=HANG_S, check=True).stdout
    found = record.read(output)
    assert json.loads(printed) == found
    assert found["figures"][0]["value"] == found["feedline"]["images_per_s"]
    # a changed root, such as a container's, may be on a mount that is not listed
    assert found["storage"] is None or found["storage"]["file_system"]
    assert found["subject"] == str(folder)
    waits = found["histograms"]["wait_ms"]
    assert sum(waits["counts"]) * 4 >= found["feedline"]["images"] > 0
    assert {stage["name"] for stage in found["stages"]} >= {"storage", "decode", "transform", "batch"}
    assert stat.S_IMODE(output.stat().st_mode) & 0o600 == 0o600
    options[options.index(str(output))] = str(tmp_path / "missing" / "run.json")
    failed = subprocess.run([*command, *options], capture_output=True, text=True, timeout=HANG_S)
    assert failed.returncode == 2 and "missing" in failed.stderr and not failed.stdout, "before the run"
    options[options.index(str(tmp_path / "missing" / "run.json"))] = "/dev/full"
    failed = subprocess.run([*command, *options], capture_output=True, text=True, timeout=HANG_S)
    assert failed.returncode == 3 and "No space left" in failed.stderr
    assert json.loads(failed.stdout)["figures"], "a full disk does not take them along"
    refused = subprocess.run([*command, "--shuffle-quality", "--record", str(output)], capture_output=True, text=True)
    assert refused.returncode == 2 and "has no run record" in refused.stderr


def test_a_diagnosis_is_a_record_that_report_and_diff_read(tmp_path):
    pytest.importorskip("torch", reason="the script that is diagnosed uses torch's loader")
    script = tmp_path / "train.py"
    script.write_text(
        "import torch\nfor batch in torch.utils.data.DataLoader(range(640), 8, num_workers=1):\n    pass\n"
    )
    found, page = tmp_path / "run.json", tmp_path / "run.html"
    for command in (
        ["diagnose", "--quick", "--record", str(found), "--", sys.executable, str(script)],
        ["report", str(found), "--page", str(page)],
        ["diff", str(found), str(found)],
    ):
        verb = [sys.executable, "-c", "import sys; from feedline.cli import main; sys.exit(main())", *command]
        done = subprocess.run(verb, capture_output=True, text=True, timeout=HANG_S)
        assert done.returncode == 0, done.stderr
    whole = record.read(found)
    assert whole["machine"] and whole["timeline"] and whole["waits"]
    assert "<svg" in page.read_text()
