# SPDX-License-Identifier: Apache-2.0
"""The scripts of CI: second tries of tests, C++ test programs, changes since tools/nightly, its record."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import changed  # noqa: E402
import cpp_tests  # noqa: E402
import flaky  # noqa: E402


@pytest.fixture(scope="module")
def nightly() -> ModuleType:
    loader = importlib.machinery.SourceFileLoader("nightly", str(ROOT / "tools" / "nightly"))
    spec = importlib.util.spec_from_loader("nightly", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def test_each_listed_flaky_test_has_a_reason() -> None:
    assert all(flaky.listed().values())


def test_a_second_try_counts_only_if_listed(tmp_path, capsys) -> None:
    path = tmp_path / "flaky.txt"
    path.write_text("# a comment\n\ntests/a.py::test_one[x]  # needs a free port\ntests/b.py::test_any  # a clock\n")
    assert flaky.report(["tests/a.py::test_one[x]", "tests/b.py::test_any[3]"], path) == []
    assert flaky.report(["tests/a.py::test_one[y]", "tests/a.py::test_two"], path) == [
        "tests/a.py::test_one[y]",
        "tests/a.py::test_two",
    ]
    assert "needs a free port" in capsys.readouterr().out


@pytest.mark.parametrize("line", ["tests/a.py::test_one", "tests/a.py::test_one  # "])
def test_a_listed_test_without_a_reason_is_an_error(line, tmp_path) -> None:
    (tmp_path / "flaky.txt").write_text(line + "\n")
    with pytest.raises(ValueError, match=r"flaky.txt:1: no reason"):
        flaky.listed(tmp_path / "flaky.txt")


# Stands for a GoogleTest program: Suite.Good passes, Suite.Bad fails, Suite.Once fails unless it is run alone.
_PROGRAM = """#!{python}
import json, os, sys
options = dict(word.lstrip("-").split("=", 1) for word in sys.argv[1:] if "=" in word)
if "--gtest_list_tests" in sys.argv:
    print("Suite.\\n  Good\\n  Bad  # GetParam() = 1\\n  Once")
    sys.exit()
flags = open(options["gtest_flagfile"]).read()
names = flags.strip().partition("=")[2].replace("Suite.", "").split(":") if flags else {default}
tests = []
for name in names:
    print(f"[ RUN      ] Suite.{{name}}", flush=True)
    if name == "Crash":
        os.abort()
    failed = name == "Bad" or (name == "Once" and len(names) > 1)
    skipped = name == "Skipped"
    tests.append({{"name": name, "status": "RUN", "result": "SKIPPED" if skipped else "COMPLETED"}})
    if failed:
        tests[-1]["failures"] = [{{"failure": "no"}}]
path = options["gtest_output"].removeprefix("json:")
json.dump({{"testsuites": [{{"name": "Suite", "testsuite": tests}}]}}, open(path, "w"))
sys.exit(any("failures" in test for test in tests))
"""


@pytest.fixture
def run_cpp_tests(tmp_path, monkeypatch, capsys):
    def run(default: list[str], *arguments: str, allowed: str = "") -> tuple[int, str]:
        program = tmp_path / "tree" / "feedline_some_tests"
        program.parent.mkdir(exist_ok=True)
        program.write_text(_PROGRAM.format(python=sys.executable, default=default))
        program.chmod(0o755)
        (tmp_path / "flaky.txt").write_text(allowed)
        monkeypatch.setattr(flaky.report, "__defaults__", (tmp_path / "flaky.txt",))
        monkeypatch.setattr(sys, "argv", ["cpp_tests.py", str(program.parent), *arguments])
        return cpp_tests.main(), capsys.readouterr().out

    return run


def test_cpp_tests_are_counted(run_cpp_tests) -> None:
    status, output = run_cpp_tests(["Good", "Skipped", "Good"])
    assert (status, output.splitlines()[-1]) == (0, "2 passed, 0 failed, 1 skipped")


def test_a_failed_cpp_test_is_named(run_cpp_tests) -> None:
    status, output = run_cpp_tests(["Good", "Bad"])
    assert status == 1
    assert "FAILED feedline_some_tests Suite.Bad" in output
    assert output.splitlines()[-1] == "1 passed, 1 failed, 0 skipped"


def test_a_cpp_test_that_passes_on_the_second_try_fails_unless_listed(run_cpp_tests) -> None:
    status, output = run_cpp_tests(["Good", "Once"])
    assert (status, output.splitlines()[-1]) == (1, "2 passed, 1 failed, 0 skipped")
    assert "passed on the second try: feedline_some_tests Suite.Once: not listed" in output
    status, output = run_cpp_tests(["Good", "Once"], allowed="feedline_some_tests Suite.Once  # two clocks\n")
    assert (status, output.splitlines()[-1]) == (0, "2 passed, 0 failed, 0 skipped")


def test_a_program_that_crashes_fails_and_the_test_is_named(run_cpp_tests) -> None:
    status, output = run_cpp_tests(["Good", "Crash", "Good"])
    assert status == 1
    assert "FAILED feedline_some_tests: exit status -6 in Suite.Crash" in output


def test_cpp_tests_by_expression_and_folder(run_cpp_tests) -> None:
    assert run_cpp_tests([], "--filter", "^Suite.G")[1].splitlines()[-1] == "1 passed, 0 failed, 0 skipped"
    status, output = run_cpp_tests(["Good"], "--only", "other")
    assert status == 1
    assert "no test ran" in output


@pytest.fixture
def checkout(tmp_path):
    """A repository with a record of its first commit, and the files that differ from it."""

    def git(*arguments: str) -> str:
        identity = ["-c", "user.name=test", "-c", "user.email=test@example.org"]
        return subprocess.run(
            ["git", *identity, *arguments], cwd=tmp_path, check=True, capture_output=True, text=True
        ).stdout.strip()

    for name in ("src/storage/a.cpp", "src/storage/a.h", "src/plan/b.cpp"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("one\n")
    git("init", "-q")
    git("add", ".")
    git("commit", "-q", "-m", "first")
    record = tmp_path / "record.json"
    first = git("rev-parse", "HEAD")
    results = {"tsan": "passed", "docs": "failed"}
    record.write_text(json.dumps({part: {"result": result, "commit": first} for part, result in results.items()}))
    git("add", ".")
    git("commit", "-q", "-m", "record")
    return tmp_path, record


def test_changes_since_nightly(checkout) -> None:
    root, record = checkout
    assert changed.changed_files("tsan", root, record) == ["record.json"]
    (root / "src/storage/a.h").write_text("two\n")
    (root / "src/plan/new.cpp").write_text("one\n")
    files = changed.changed_files("tsan", root, record)
    assert files == ["record.json", "src/storage/a.h", "src/plan/new.cpp"]
    assert changed.lines("threads", files, ["cache", "plan", "storage"]) == ["plan", "storage"]
    assert changed.lines("headers", files, []) == ["src/storage/a.h"]
    assert changed.lines("integrations", files, []) == []
    assert changed.lines("integrations", ["python/feedline/torch_loader/state.py"], []) == ["changed"]


@pytest.mark.parametrize("part", ["docs", "gate"])
def test_changes_are_unknown_unless_nightly_passed_the_part(part, checkout) -> None:
    root, record = checkout
    assert changed.changed_files(part, root, record) is None


def test_changes_are_unknown_if_the_commit_is_missing(checkout) -> None:
    root, record = checkout
    record.write_text(json.dumps({"tsan": {"result": "passed", "commit": "0" * 40}}))
    assert changed.changed_files("tsan", root, record) is None
    assert changed.lines("threads", None, ["plan"]) == ["all"]
    assert changed.lines("integrations", None, []) == ["changed"]


def test_folders_with_threads_are_those_that_tsan_compiles() -> None:
    folders = changed.threaded_folders()
    assert {"pipeline", "storage", "cache"} <= set(folders)
    assert {"decode", "transform"}.isdisjoint(folders)


def test_nightly_runs_all_parts_and_records_each(nightly, tmp_path, monkeypatch, capsys) -> None:
    commands = {
        "good": ["true"],
        "bad": ["sh", "-c", "echo why; exit 3"],
        "missing": ["/no/such/program"],
        "last": ["true"],
    }
    commands["left_out"] = ["echo", "gate: SKIPPED, no valgrind"]
    for name, value in {
        "PARTS": commands,
        "LOGS": tmp_path / "log",
        "ROOT": tmp_path,
        "RECORD": tmp_path / "r.json",
    }.items():
        monkeypatch.setattr(nightly, name, value)
    monkeypatch.setattr(nightly, "commit", lambda: "abc")
    assert nightly.main([]) == 1
    output = capsys.readouterr().out
    assert "why" in output
    assert "2 of 5 parts passed; failed: bad, missing; skipped: left_out" in output
    record = json.loads((tmp_path / "r.json").read_text())
    assert {found["commit"] for found in record.values()} == {"abc"}
    assert {part: found["result"] for part, found in record.items()} == {
        "good": "passed",
        "bad": "failed",
        "missing": "failed",
        "last": "passed",
        "left_out": "skipped",
    }


def test_nightly_records_some_parts_and_nothing_of_uncommitted_files(nightly, tmp_path, monkeypatch) -> None:
    record = tmp_path / "r.json"
    for name, value in {
        "PARTS": {"first": ["true"], "second": ["true"]},
        "LOGS": tmp_path,
        "ROOT": tmp_path,
        "RECORD": record,
    }.items():
        monkeypatch.setattr(nightly, name, value)
    monkeypatch.setattr(nightly, "commit", lambda: None)
    assert nightly.main([]) == 0
    assert not record.exists()
    for part, at in (("second", "abc"), ("first", "def"), ("second", "fed")):
        monkeypatch.setattr(nightly, "commit", lambda at=at: at)
        assert nightly.main([part]) == 0
    assert {part: found["commit"] for part, found in json.loads(record.read_text()).items()} == {
        "first": "def",
        "second": "fed",
    }
    assert nightly.main(["other"]) == 1


def test_tests_that_ci_omits_are_run_by_nightly(nightly) -> None:
    assert "--nightly" in nightly.PARTS["python"]
    assert "measures" in nightly.PARTS


def test_the_record_covers_parts_that_ci_asks_for(nightly) -> None:
    assert set(changed.PARTS.values()) <= set(nightly.PARTS)
    record = json.loads(nightly.RECORD.read_text())
    assert set(record) <= set(nightly.PARTS)
    assert all(set(found) == {"result", "seconds", "commit", "date"} for found in record.values())
