# SPDX-License-Identifier: Apache-2.0
"""A staged dataset equals the source: the same samples in the same order, or nothing with that name."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from range_server import RangeServer, serving

import feedline
from feedline import packing, staging
from feedline.pack.manifest import NAME as MANIFEST
from feedline.stage import room
from feedline.stage.copying import UNFINISHED


def contents(source: Any) -> list[tuple[str, Any]]:
    """Returns every sample with its key, in order."""
    engine = feedline.open(source)._engine
    return [(engine.key(index), engine.files(index)) for index in range(len(engine))]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def packed(folder: Path, tmp_path: Path) -> Path:
    packing.pack(folder, tmp_path / "packed", samples_per_shard=7)
    return tmp_path / "packed"


def test_the_copy_opens_to_the_same_samples_in_the_same_order(folder: Path, tars: list[Path], tmp_path: Path) -> None:
    pattern = str(tars[0].parent / "{000..002}.tar")
    with serving(tars[0].parent) as server:
        sources = [folder, pattern, server.url("{000..002}.tar"), [tars[2], tars[0]], f"file://{tars[1]}"]
        for number, source in enumerate(sources):
            staged = staging.stage(source, tmp_path / str(number))
            assert contents(staged.opens) == contents(source), source
            assert staged.copied_bytes == staged.bytes and staged.files_found == 0
    assert staging.stage(pattern, tmp_path / "1").opens == str(tmp_path / "1" / "{000..002}.tar")


def test_a_folder_of_packed_databases(folder: Path, tmp_path: Path) -> None:
    packing.pack(folder, tmp_path / "packed", to="lmdb", samples_per_shard=7)
    staged = staging.stage(tmp_path / "packed", tmp_path / "staged")
    assert contents(staged.opens) == contents(tmp_path / "packed")
    assert staged.samples == len(feedline.open(folder))
    manifest = json.loads((tmp_path / "packed" / MANIFEST).read_text())
    manifest["shards"][0]["sha256"] = "0" * 64
    (tmp_path / "packed" / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(feedline.DataError, match=r"has .* SHA-256 .* its manifest has"):
        staging.stage(tmp_path / "packed", tmp_path / "again")


def test_a_folder_of_other_shards_is_refused(folder: Path, tmp_path: Path) -> None:
    packing.pack(folder, tmp_path / "packed", to="tfrecord")
    with pytest.raises(feedline.ConfigError, match=r"format .* is 'tfrecord': pass its shards"):
        staging.stage(tmp_path / "packed", tmp_path / "staged")


def test_shards_of_one_name_in_two_folders_stay_apart(tars: list[Path], tmp_path: Path) -> None:
    for name, tar in (("a", tars[0]), ("b", tars[1])):
        (tmp_path / name).mkdir()
        shutil.copy(tar, tmp_path / name / "0.tar")
    source = f"{tmp_path}/a/0.tar::{tmp_path}/b/0.tar"
    assert contents(staging.stage(source, tmp_path / "staged").opens) == contents(source)
    assert (tmp_path / "staged" / "b" / "0.tar").exists()


def test_a_manifest_is_copied_and_compared(packed: Path, tmp_path: Path) -> None:
    source = str(packed / "{000000..000002}.tar")
    assert staging.stage(source, tmp_path / "staged").files == 4
    with open(packed / "000001.tar", "r+b") as file:
        file.seek(2_000)
        file.write(b"\0\1\2\3")
    with pytest.raises(feedline.DataError, match=r"000001\.tar has .* SHA-256 .* its manifest has"):
        staging.stage(source, tmp_path / "again")
    assert not (tmp_path / "again" / "000001.tar").exists()
    assert not list((tmp_path / "again").glob("*" + UNFINISHED))


def test_it_continues_where_it_was_killed(tars: list[Path], tmp_path: Path, environment: dict[str, str]) -> None:
    target, source = tmp_path / "staged", str(tars[0].parent / "{000..002}.tar")
    size = [tar.stat().st_size for tar in tars]
    script = (
        "import os, signal\nfrom feedline import staging\n"
        f"def progress(done, total):\n    if done >= {size[0]}: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"staging.stage({source!r}, {str(target)!r}, num_workers=1, progress=progress)\n"
    )
    assert subprocess.run([sys.executable, "-c", script], env=environment).returncode == -signal.SIGKILL
    (target / ("001.tar" + UNFINISHED)).write_bytes(b"half")
    staged = staging.stage(source, target)
    assert staged.files_found == 1 and staged.copied_bytes == size[1] + size[2]
    assert contents(staged.opens) == contents(source) and not list(target.glob("*" + UNFINISHED))
    again = staging.stage(source, target)
    assert (again.files_found, again.copied_bytes) == (3, 0)


def test_what_has_changed_is_copied_again(tars: list[Path], tmp_path: Path) -> None:
    made = [Path(shutil.copy(tar, tmp_path / tar.name)) for tar in tars]
    staging.stage(made, tmp_path / "staged")
    shutil.copy(tars[0], made[2])
    with open(tmp_path / "staged" / "001.tar", "r+b") as file:
        file.truncate(100)
    staged = staging.stage(made, tmp_path / "staged")
    assert staged.files_found == 1 and contents(staged.opens) == contents(made)


def test_files_of_others_are_never_replaced(tars: list[Path], tmp_path: Path) -> None:
    target = tmp_path / "staged"
    target.mkdir()
    (target / "001.tar").write_text("mine")
    with pytest.raises(feedline.ConfigError, match="was not staged by this"):
        staging.stage(tars, target)
    assert (target / "001.tar").read_text() == "mine" and not (target / "000.tar").exists()
    staging.stage(tars[0], tmp_path / "one")
    with pytest.raises(feedline.ConfigError, match="source was"):
        staging.stage(tars[1:], tmp_path / "one")


def test_room_is_looked_at_before_anything_is_copied(
    tars: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed = sum(tar.stat().st_size for tar in tars)
    target = tmp_path / "staged"
    with pytest.raises(feedline.ConfigError, match=f"{needed:,} bytes .* allows {needed - 1:,}"):
        staging.stage(tars, target, limit=needed - 1)

    class Full:
        f_bavail, f_frsize = 1, 4096

    monkeypatch.setattr(room.os, "statvfs", lambda path: Full)
    with pytest.raises(feedline.StorageError, match=f"{needed:,} bytes .* has 4,096 free"):
        staging.stage(tars, target)
    monkeypatch.undo()
    monkeypatch.setattr(room, "storage_facts", lambda path: ({"kind": "memory"}, []))
    monkeypatch.setattr(room.host_limits, "memory_left", lambda: 1_000)
    assert room.memory_note(1_000, tmp_path) == ""
    assert "the copies occupy 1,001 bytes, and 1,000 are left" in room.memory_note(1_001, tmp_path)
    with pytest.raises(feedline.StorageError, match=r"which is in memory, .* 1,000 bytes left"):
        staging.stage(tars, target)
    assert not list(target.glob("*.tar*"))


def test_a_disk_that_gives_other_bytes_is_noticed(
    tars: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from feedline.stage import copying

    real = copying._written

    def damaged(source: Any, wanted: Any, beside: Path, stop: Any) -> str:
        made = real(source, wanted, beside, stop)
        with open(beside, "r+b") as file:
            file.write(b"\1")
        return made

    monkeypatch.setattr(copying, "_written", damaged)
    with pytest.raises(feedline.StorageError, match="does not contain the data written"):
        staging.stage(tars, tmp_path / "staged")
    assert not list((tmp_path / "staged").glob("*.tar*"))


def test_a_shard_that_changes_while_it_is_copied_is_an_error(
    tars: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from feedline.stage import copying

    made = Path(shutil.copy(tars[0], tmp_path / "0.tar"))
    real = copying.pieces_of

    def pieces(stored: Any) -> Any:
        yield from real(stored)
        shutil.copyfile(tars[1], made)

    monkeypatch.setattr(copying, "pieces_of", pieces)
    with pytest.raises(feedline.StorageError, match=r"0\.tar"):
        staging.stage(made, tmp_path / "staged")
    assert not list((tmp_path / "staged").glob("*.tar*"))


def test_faults_of_a_server_are_errors_or_change_nothing(tars: list[Path], tmp_path: Path) -> None:
    with serving(tars[0].parent) as server:
        faults = ["503", "", "cut", "", ""]
        server.fault = lambda number, path: faults[number % len(faults)]
        staged = staging.stage(server.url("{000..002}.tar"), tmp_path / "staged")
        assert contents(staged.opens) == contents(tars)
        _changes_later(server)
        with pytest.raises(feedline.StorageError):
            staging.stage(server.url("000.tar"), tmp_path / "again")
    assert not list((tmp_path / "again").glob("*.tar*"))


def _changes_later(server: RangeServer) -> None:
    """From the third response on, it is another version."""
    begun = len(server.requests)
    server.fault = lambda number, path: "changed" if number >= begun + 2 else ""


def test_names_that_lead_out_of_the_folder_are_refused() -> None:
    from feedline.stage.layout import _safe

    assert _safe("a/b.jpg") == "a/b.jpg"
    for name in ("../x.tar", "a/../../x", "/etc/x", "a//b", "", "."):
        with pytest.raises(feedline.ConfigError, match="not a path inside"):
            _safe(name)


def test_the_command_prints_how_to_open_it(tars: list[Path], tmp_path: Path) -> None:
    pytest.importorskip("click", reason="click, for the command line, is not installed")
    pytest.importorskip("rich", reason="rich, for the command line, is not installed")

    def run(*arguments: object) -> tuple[int, str]:
        command = [sys.executable, "-c", "import sys; from feedline.cli import main; sys.exit(main())", "stage"]
        done = subprocess.run([*command, *map(os.fspath, arguments)], capture_output=True, text=True)  # type: ignore[call-overload]
        return done.returncode, done.stdout + done.stderr

    source, target = str(tars[0].parent / "{000..002}.tar"), tmp_path / "staged"
    status, text = run(source, target)
    assert status == 0 and f'feedline.open("{target}/{{000..002}}.tar")' in text
    assert run(source, target / "other", "--limit", "10")[0] == 2
    assert run(tmp_path / "none.tar", tmp_path / "of_none")[0] == 3
