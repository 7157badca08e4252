# SPDX-License-Identifier: Apache-2.0
"""Every verb looks at its arguments and at the places that it will write to before it does any work."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("click", reason="the command line is not installed")
pytest.importorskip("rich", reason="the command line is not installed")

import click
import made_records
from rich.console import Console
from running_processes import HANG_S

from feedline import record
from feedline.cli import console, exit_codes, outputs, parameters, root


def read_only_folder(tmp_path: Path) -> Path:
    """One that root cannot write into either, where there is one."""
    folder = tmp_path / "read_only"
    folder.mkdir()
    folder.chmod(0o555)
    return folder if os.geteuid() else Path("/sys")


def unwritable(tmp_path: Path) -> dict[str, tuple[Path | str, str]]:
    """Places for a file that cannot be one, and what the message says of them."""
    (tmp_path / "file").write_text("mine")
    return {
        "missing folder": (tmp_path / "missing" / "run.json", f"mkdir -p {tmp_path / 'missing'}"),
        "a folder": (tmp_path, "is a folder; pass the name of a file in it"),
        "under a file": (tmp_path / "file" / "run.json", "Not a directory"),
        "read-only": (read_only_folder(tmp_path) / "run.json", "cannot write into"),
        "a URL": ("s3://bucket/run.json", "only local files can be written"),
        "a home": ("~/run.json", f"write {os.path.expanduser('~')}"),
        "a long name": (tmp_path / ("x" * 300), "File name too long"),
        "nothing": ("", "the path is empty"),
    }


PLACES = ("missing folder", "a folder", "under a file", "read-only", "a URL", "a home", "a long name", "nothing")


@pytest.mark.parametrize("case", PLACES)
def test_a_place_that_cannot_be_written_is_named_with_the_next_step(case: str, tmp_path: Path) -> None:
    path, said = unwritable(tmp_path)[case]
    found = outputs.problem_of_file(path)
    assert found is not None and said in found and (str(path) in found or case == "read-only")
    with pytest.raises(click.BadParameter):
        parameters.OUTPUT_FILE.convert(path, None, None)


def test_looking_changes_nothing_and_lets_pass_what_can_be_written(tmp_path: Path) -> None:
    existing = tmp_path / "kept.json"
    existing.write_text("kept")
    before = {path: path.stat().st_mtime_ns for path in (existing, tmp_path)}
    for path in (existing, tmp_path / "to_be.json", "/dev/stdout", "/dev/null"):
        assert outputs.problem_of_file(path) is None, path
        assert parameters.OUTPUT_FILE.convert(str(path), None, None) == Path(path)
    assert outputs.problem_of_folder(tmp_path / "a" / "b" / "c") is None
    assert [path.name for path in tmp_path.iterdir()] == ["kept.json"] and existing.read_text() == "kept"
    assert before[existing] == existing.stat().st_mtime_ns


def test_a_folder_may_be_made_but_not_in_a_file_or_a_bucket(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for path, said in (
        (tmp_path / "file", "exists and is not a folder"),
        (tmp_path / "file" / "a" / "b", "is in"),
        ("s3://bucket/shards", "only local files can be written"),
        (read_only_folder(tmp_path) / "a" / "b", "cannot write into"),
    ):
        found = outputs.problem_of_folder(path)
        assert found is not None and said in found, path


def test_two_places_that_are_one_file(tmp_path: Path) -> None:
    run = tmp_path / "run.json"
    outputs.distinct({"--settings": run, "--record": tmp_path / "other.json", "SOURCE": None})
    outputs.distinct({"--settings": "/dev/stdout", "--record": "/dev/stdout"})  # one after the other
    for other in (run, tmp_path / "." / "run.json"):
        with pytest.raises(click.UsageError, match="--settings and --record are the same file"):
            outputs.distinct({"--settings": run, "--record": other})
    run.write_text("{}")
    (tmp_path / "link").symlink_to(run)
    with pytest.raises(click.UsageError, match="SOURCE and --record are the same file"):
        outputs.distinct({"SOURCE": run, "--record": tmp_path / "link"})
    assert stat.S_ISREG(run.stat().st_mode)


def test_streams_and_links_are_written_through_and_stay(tmp_path: Path) -> None:
    stream = Path("/dev/fd") / str(os.open(tmp_path / "redirected", os.O_CREAT | os.O_RDWR))
    try:
        assert stream.is_file() and not record.is_replaced(stream) and outputs.problem_of_file(stream) is None
        record.replace(stream, b"text")
        assert (tmp_path / "redirected").read_bytes() == b"text"
    finally:
        os.close(int(stream.name))
    (tmp_path / "link").symlink_to(tmp_path / "redirected")
    record.replace(tmp_path / "link", b"more")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "redirected").read_bytes() == b"more"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "redirected"]


def called(*arguments: str | Path) -> tuple[int, str]:
    """The exit status of the command line in a process of its own, and what it said."""
    command = [
        sys.executable,
        "-c",
        "import sys; from feedline.cli import main; sys.exit(main())",
        *map(str, arguments),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANG_S)
    assert "Traceback" not in done.stderr
    return done.returncode, " ".join((done.stderr + done.stdout).replace("\u2502", " ").split())


@pytest.fixture
def run_record(tmp_path: Path) -> Path:
    path = tmp_path / "run.json"
    record.write(made_records.bench(), path)
    return path


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    return path


def test_every_verb_that_writes_looks_at_the_place_before_any_work(
    run_record: Path, script: Path, folder: Path, tmp_path: Path
) -> None:
    """One call per verb and option; a verb with an output that is not in here fails below."""
    missing = tmp_path / "missing" / "deeper" / "x"
    calls: dict[tuple[str, str], tuple[str | Path, ...]] = {
        ("bench", "--record"): ("bench", folder, "--seconds", "600", "--record", missing),
        ("bench", "--output"): ("bench", folder, "--seconds", "600", "--output", missing),
        ("index", "--output"): ("index", folder, "--as", "wids", "--output", missing),
        ("report", "--page"): ("report", run_record, "--page", missing),
        ("report", "--output"): ("report", run_record, "-o", missing),
        ("trace", "--json-file"): ("trace", run_record, "--json-file", missing),
        ("trace", "--output"): ("trace", run_record, "--output", missing),
        ("trace", "--merge"): ("trace", run_record, "--merge", run_record, missing),
        ("diagnose", "--record"): ("diagnose", "--record", missing, "--", sys.executable, script),
        ("diagnose", "--output"): ("diagnose", "--output", missing, "--", sys.executable, script),
        ("tune", "--settings"): ("tune", "--settings", missing, "--", sys.executable, script),
        ("tune", "--output"): ("tune", "--output", missing, "--", sys.executable, script),
        ("tune", "--record"): ("tune", "--record", missing, "--", sys.executable, script),
        ("inspect", "--show"): ("inspect", folder, "--show", missing),
        ("pack", "output"): ("pack", folder, missing),
        ("tokenize", "output"): ("tokenize", folder, missing, "--tokenizer", script),
    }
    for call in calls.values():
        status, said = called(*call)
        assert status == exit_codes.USAGE, (call, said)
        assert str(missing.parent.parent) in said.replace(" ", "") or "missing" in said, (call, said)
    assert not (tmp_path / "ran").exists() and not missing.parent.parent.exists()
    writing = ("--output", "--record", "--settings", "--page", "--json-file", "--merge", "--show", "output")
    from feedline.cli.root import root

    found = {(name, option) for name, verb in root.commands.items() for parameter in verb.params
             for option in (*parameter.opts, *parameter.secondary_opts) if option in writing}  # fmt: skip
    assert found == calls.keys()


def test_an_option_that_is_mistyped_is_a_usage_error_with_the_right_one(
    script: Path, folder: Path, tmp_path: Path
) -> None:
    for call, meant in (
        (("diagnose", "--bugdet", "5", "--", sys.executable, script), "--budget"),
        (("tune", "--bugdet", "5", "--", sys.executable, script), "--budget"),
        (("bench", folder, "--secnds", "5"), "--seconds"),
        (("pack", folder, tmp_path / "shards", "--shard-sise", "5G"), "--shard-size"),
        (("inspect", folder, "--shw", "x.png"), "--show"),
    ):
        status, said = called(*call)
        assert status == exit_codes.USAGE and meant in said, (call, said)
    assert not (tmp_path / "ran").exists() and not (tmp_path / "shards").exists()


def test_braces_that_a_shell_has_expanded_are_reported(capsys: pytest.CaptureFixture[str]) -> None:
    for others, says in (
        (["http://host/000.tar", "http://host/001.tar"], True),
        (["shards/a.tar", "shards/b.tar"], False),
        (["shards/1.tar"], False),
    ):
        assert root.run(["bench", "source", *others]) == exit_codes.USAGE
        assert ("quote a source" in capsys.readouterr().err) is says, others


def test_records_of_two_kinds_are_not_compared(run_record: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    record.write(record.from_diagnosis(made_records.diagnosis()), other)
    status, said = called("diff", run_record, other)
    assert status == exit_codes.USAGE
    assert "A is a record of `feedline bench`, B is a record of `feedline diagnose`" in said
    assert called("diff", run_record, run_record)[0] == exit_codes.FINE


@pytest.mark.parametrize("verb", ["inspect", "bench", "pack", "trace", "report", "diff"])
def test_a_source_that_is_missing_is_reported_by_its_name(verb: str, tmp_path: Path) -> None:
    missing = tmp_path / "no_such_thing"
    more = {"pack": (tmp_path / "out",), "diff": (missing,)}.get(verb, ())
    status, said = called(verb, missing, *more)
    assert status == exit_codes.FAILED and "no_such_thing" in said.replace(" ", "")
    assert "Errno" not in said
    assert not (tmp_path / "out").exists()


def test_a_number_that_is_none_never_starts_a_clock(folder: Path) -> None:
    for call in (("bench", folder, "--seconds"), ("top", "--once", "--interval")):
        for value in ("nan", "inf"):
            status, said = called(*call, value)
            assert status == exit_codes.USAGE and call[-1] in said, said


def test_an_option_that_would_be_ignored_is_reported(folder: Path, tmp_path: Path) -> None:
    for call, said_of in (
        (("bench", folder, "--samples", "1000"), "--samples requires --shuffle-quality"),
        (("bench", folder, "--seed", "3"), "--seed requires --shuffle-quality"),
        (("bench", folder, "--shuffle-quality", "--batch-size", "8"), "--batch-size cannot be combined with"),
        (("bench", folder, "--shuffle-quality", "--against", "torch"), "--against cannot be combined with"),
    ):
        status, said = called(*call)
        assert status == exit_codes.USAGE and said_of in said, said


def test_what_a_comparison_lacks_is_reported_before_the_run(tars: list[Path]) -> None:
    status, said = called("bench", tars[0], "--seconds", "600", "--against", "torch")
    assert status == exit_codes.USAGE and "--against torch: SOURCE must be a folder of class folders" in said


ALIASES = {
    ("bench", "--output"): "--record",
    ("bench", "--threads"): "--num-workers",
    ("diagnose", "--output"): "--record",
    ("doctor", "--workers"): "--num-workers",
    ("pack", "--jobs"): "--num-workers",
    ("report", "--output"): "--page",
    ("trace", "--output"): "--json-file",
    ("tune", "--output"): "--settings",
}


def test_a_thing_has_one_name_over_all_verbs_and_others_are_aliases() -> None:
    """An alias is the same option, is not listed, and is not what a usage error calls it."""
    from feedline.cli.root import root

    for (verb, alias), name in ALIASES.items():
        command = root.commands[verb]
        context = click.Context(command, info_name=verb)
        (found,) = [one for one in command.params if alias in one.opts]
        assert name in found.opts
        assert name in command.get_help(context) and f"{alias} " not in command.get_help(context), (verb, alias)
        assert alias not in found.get_error_hint(context) and name in found.get_error_hint(context)
        assert alias in found.opts, "telling the name leaves the option as it is"
    taken = {(name, option) for name, verb in root.commands.items() for one in verb.params for option in one.opts}
    assert not {option for _, option in taken - set(ALIASES)} & {"--workers", "--processes", "--n-jobs"}


@pytest.mark.parametrize(
    ("kind", "given", "taken"),
    [
        (parameters.Duration(), "60", 60.0),
        (parameters.Duration(), "1.5s", 1.5),
        (parameters.Duration(), "2m", 120.0),
        (parameters.ByteSize(), "2GiB", 2 << 30),
        (parameters.ByteSize(), "2000", 2000),
        (parameters.BatchSizes(), "32:256", (32, 256)),
        (parameters.NUM_WORKERS, "auto", "auto"),
        (parameters.NUM_WORKERS, "3", 3),
        (parameters.RESTART_INTERVAL, "65535", 65535),
    ],
)
def test_values_are_taken_in_their_units(kind: click.ParamType, given: str, taken: object) -> None:
    assert kind.convert(given, None, None) == taken
    assert kind.convert(taken, None, None) == taken, "a default may be given as it is"


@pytest.mark.parametrize(
    ("kind", "given", "said"),
    [
        (parameters.Duration(), "soon", "a time such as 60s or 2m"),
        (parameters.Duration(), "-1s", "a time such as 60s or 2m"),
        (parameters.Duration(1.0), "0.5s", "at least 1s"),
        (parameters.ByteSize(), "much", "512 MB"),
        (parameters.ByteSize(), "-1", "512 MB"),
        (parameters.BatchSizes(), "256:32", "a range such as 32:256"),
        (parameters.BatchSizes(), "0:32", "a range such as 32:256"),
        (parameters.NUM_WORKERS, "many", "a number from 1 nor 'auto'"),
        (parameters.NUM_WORKERS, "0", "x>=1"),
        (parameters.RESTART_INTERVAL, "65536", "1<=x<=65535"),
        (parameters.RESTART_INTERVAL, "0.5", "a number from 1 to 65535 nor 'auto'"),
    ],
)
def test_a_value_that_is_none_is_reported_with_one_that_is(kind: click.ParamType, given: str, said: str) -> None:
    with pytest.raises(click.BadParameter, match=re.escape(said)):
        kind.convert(given, None, None)


def test_json_that_is_no_terminals_has_no_colours(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Notebooks set FORCE_COLOR for every `!feedline ... > file`."""
    monkeypatch.setattr(console, "OUT", Console(force_terminal=True, color_system="truecolor"))
    console.print_json({"a": [1, None]})
    assert json.loads(capsys.readouterr().out) == {"a": [1, None]}
