# SPDX-License-Identifier: Apache-2.0
"""The output of `verify` for valid and for damaged datasets: each kind of damage with its location."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from range_server import serving

import feedline
from feedline import packing, verifying
from feedline.record.journal import Journal
from feedline.verify import parts
from feedline.verifying import Verification


@pytest.fixture
def shards(tars: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The three tars, which tests damage; this test has its own index folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "shards"
    folder.mkdir()
    return [Path(shutil.copy(tar, folder / tar.name)) for tar in tars]


@pytest.fixture
def packed(folder: Path, tmp_path: Path) -> list[Path]:
    """The photos as written by `pack`, with a manifest."""
    packing.pack(folder, tmp_path / "packed", samples_per_shard=7)
    return sorted((tmp_path / "packed").glob("*.tar"))


def codes(verified: Verification) -> list[str]:
    return [finding.code for finding in verified.findings]


def about(verified: Verification, code: str) -> list[tuple[str, str]]:
    return [(one.about["shard"], one.about["key"]) for one in verified.findings if one.code == code]


def overwrite(path: Path, offset: int, data: bytes, *, keep_time: bool = False) -> None:
    times = path.stat()
    with open(path, "r+b") as file:
        file.seek(offset)
        file.write(data)
    if keep_time:
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def inside(path: Path, key: str, extension: str = ".jpg", offset: int = 400) -> int:
    """Returns the offset in the shard of this byte of a sample's photo."""
    import tarfile

    with tarfile.open(path) as tar:
        return tar.getmember(key + extension).offset_data + offset


def rename_members(path: Path, names: dict[str, str]) -> None:
    """Writes other keys into the headers, without changing size and time."""
    import tarfile

    with tarfile.open(path) as tar:
        members = [(member.offset, member.name) for member in tar]
    for offset, name in members:
        key, _, extension = name.partition(".")
        if key in names:
            header = bytearray(path.read_bytes()[offset : offset + 512])
            header[:100] = f"{names[key]}.{extension}".encode().ljust(100, b"\0")
            header[148:156] = b" " * 8
            header[148:156] = b"%06o\0 " % sum(header)
            overwrite(path, offset, bytes(header), keep_time=True)


def test_a_sound_dataset_is_sound_local_and_remote(folder: Path, shards: list[Path]) -> None:
    in_folder = verifying.verify(folder, decode=True)
    assert in_folder.sound and in_folder.findings == []
    assert (in_folder.format, in_folder.samples, in_folder.shards, in_folder.order_exact) == ("folder", 21, 0, True)
    assert in_folder.classes == {"apple": 7, "birch": 7, "crow": 7} and in_folder.duplicate_samples == 0
    local = verifying.verify(shards, decode=True, world_size=3)
    assert local.sound and (local.format, local.samples, local.shards, local.checksums) == ("tar", 21, 3, 0)
    with serving(shards[0].parent) as server:
        remote = verifying.verify(server.url("{000..002}.tar"), decode=True, world_size=3)
    assert remote._replace(source="") == local._replace(source="")


def test_shards_are_compared_with_what_was_packed(packed: list[Path]) -> None:
    before = verifying.verify(packed)
    assert before.sound and before.checksums == 3
    overwrite(packed[1], inside(packed[1], feedline.open(packed[1])._engine.key(3)), b"\0\1\2\3")
    verified = verifying.verify(packed)
    assert about(verified, "checksum_differs") == [(str(packed[1]), "")] and not verified.sound
    with serving(packed[0].parent) as server:
        source = server.url("{000000..000002}.tar")
        assert about(verifying.verify(source), "checksum_differs") == [(server.url("000001.tar"), "")]
    left_out = verifying.verify(packed[:1])
    assert codes(left_out) == ["shards_left_out"] and left_out.sound


def test_damage_is_named_by_shard_and_sample(shards: list[Path]) -> None:
    key = feedline.open(shards[1])._engine.key(2)
    overwrite(shards[1], inside(shards[1], key), bytes(200))
    assert verifying.verify(shards).sound, "the bytes can be read"
    verified = verifying.verify(shards, decode=True)
    assert about(verified, "undecodable_sample") == [(str(shards[1]), key)]
    assert verified.samples == 21 and verified.order_exact

    with open(shards[0], "r+b") as file:
        file.truncate(inside(shards[0], feedline.open(shards[0])._engine.key(3)))
    shards[2].unlink()
    verified = verifying.verify(shards)
    assert {shard for shard, _ in about(verified, "unreadable_shard")} == {str(shards[2])}
    cut = [one for one in verified.findings if one.about["shard"] == str(shards[0]) and one.severity == "error"]
    assert cut[0].code == "truncated_member" and "byte" in cut[0].text
    assert verified.order_exact is None and verified.samples >= 7, "the sound shard is read all the same"


@pytest.mark.parametrize("folder_of_indexes", [False, True])
def test_an_index_that_is_another_shards_is_noticed(
    shards: list[Path], tmp_path: Path, folder_of_indexes: bool
) -> None:
    """A shard with the same size and time, but other samples: its index seems valid."""
    index = tmp_path / "indexes" if folder_of_indexes else None
    if index is not None:
        index.mkdir()
    assert verifying.verify(shards, index=index).sound
    rename_members(shards[0], {"apple_000": "apple_009", "apple_001": "apple_000", "apple_002": "apple_001"})
    assert about(verifying.verify(shards, index=index), "index_differs") == [(str(shards[0]), "")]


def test_a_stored_index_that_cannot_be_read_is_a_fault_of_its_shard(
    shards: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(path: Path) -> bytes:
        if path.parent == shards[0].parent / parts.INDEX_FOLDER and path.name.startswith(shards[0].name):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return reads(path)

    reads = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", fails)
    (finding,) = verifying.verify(shards).findings
    assert finding.code == "unreadable_shard" and "the stored index cannot be read: Permission denied" in finding.text


def test_equal_samples_are_counted_and_named(folder: Path, tmp_path: Path) -> None:
    made = Path(shutil.copytree(folder, tmp_path / "train"))
    first = sorted((made / "apple").iterdir())[0]
    shutil.copy(first, made / "apple" / "again.jpg")
    verified = verifying.verify(made)
    assert codes(verified) == ["duplicate_samples"] and verified.sound and verified.duplicate_samples == 1
    assert [[duplicate.key for duplicate in group] for group in verified.duplicates] == [
        sorted([f"apple/{first.name}", "apple/again.jpg"])
    ]
    shutil.copy(first, made / "crow" / "wrong.jpg")
    verified = verifying.verify(made)
    assert codes(verified) == ["labels_differ", "duplicate_samples"] and not verified.sound
    assert verified.duplicate_samples == 2 and [duplicate.label for duplicate in verified.duplicates[0]][-1] == "crow"


@pytest.mark.parametrize("values", [[1, 2, 3], [1, 2, 2]])
def test_rows_of_one_integer_have_no_wrong_labels(values: list[int], tmp_path: Path) -> None:
    table = tmp_path / "numbers.csv"
    table.write_text("x\n" + "".join(f"{value}\n" for value in values))
    verified = verifying.verify(table)
    assert verified.sound and verified.duplicate_samples == 3 - len(set(values))
    assert codes(verified) == ["duplicate_samples"] * (3 - len(set(values)))


@pytest.mark.parametrize("name", ["rows.parquet", "rows.arrow"])
def test_lists_that_hold_bytes_are_read_and_compared(name: str, tmp_path: Path) -> None:
    table = _table(tmp_path / name, {"files": [[b"\xff"], [b"\xff", b"a"], [b"\xff"]]})
    verified = verifying.verify(table)
    assert verified.samples == 3 and codes(verified) == ["duplicate_samples"]


def _table(path: Path, columns: dict[str, list[Any]]) -> Path:
    if path.suffix == ".csv":
        lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
        path.write_text("\n".join(lines) + "\n")
        return path
    pa = pytest.importorskip("pyarrow")
    table = pa.table(columns)
    if path.suffix == ".parquet":
        pytest.importorskip("pyarrow.parquet").write_table(table, path)
    else:
        with pa.ipc.new_file(str(path), table.schema) as file:
            file.write_table(table)
    return path


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet", "rows.arrow"])
@pytest.mark.parametrize(
    ("labels", "fields", "classes", "found"),
    [
        ([4, 4], ("id", "text:text"), {}, ["duplicate_samples"]),
        ([4, 4], ("id", "text:text", "label"), {"4": 2}, ["duplicate_samples"]),
        ([4, 5], ("id", "text:text", "label"), {"4": 1, "5": 1}, ["labels_differ", "duplicate_samples"]),
        ([4, 5], ("text:text", "n=label"), {}, []),
        ([4, 4], ("id", "label"), {"4": 2}, []),
        (
            [4, 5],
            ("image_id=id", "text:text", "Coarse-Label=label"),
            {"4": 1, "5": 1},
            ["labels_differ", "duplicate_samples"],
        ),
    ],
)
def test_only_an_integer_with_a_label_name_is_a_label(
    labels: list[int], fields: tuple[str, ...], classes: dict[str, int], found: list[str], name: str, tmp_path: Path
) -> None:
    table = _table(tmp_path / name, {"id": [11, 12], "text": ["same", "same"], "label": labels})
    verified = verifying.verify(table, fields=fields)
    assert verified.classes == classes and codes(verified) == found


def test_equal_samples_of_different_shards_are_found(shards: list[Path]) -> None:
    shutil.copy(shards[0], shards[2])
    verified = verifying.verify(shards)
    assert verified.duplicate_samples == 7 and len(verified.duplicates) == 7
    assert [duplicate.shard for duplicate in verified.duplicates[0]] == [str(shards[0]), str(shards[2])]
    assert codes(verified) == ["duplicate_samples"]
    key = feedline.open(shards[2])._engine.key(0)
    overwrite(shards[2], inside(shards[2], key, ".cls", 0), b"7")
    verified = verifying.verify(shards)
    assert verified.duplicate_samples == 7 and about(verified, "labels_differ") == [(str(shards[0]), key)]


def test_it_continues_where_it_was_killed(shards: list[Path], tmp_path: Path, environment: dict[str, str]) -> None:
    state = tmp_path / "state"
    script = (
        "import os, signal, sys\nfrom feedline import verifying\n"
        "def progress(done, total):\n    if done == 2: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"verifying.verify({[str(shard) for shard in shards]!r}, resume={str(state)!r}, progress=progress)\n"
    )
    assert subprocess.run([sys.executable, "-c", script], env=environment).returncode == -signal.SIGKILL
    with open(state, "ab") as file:
        file.write(b'{"name": "cut')  # as left by a kill in the middle of a line
    overwrite(shards[0], shards[0].stat().st_size - 1, b"\0")  # the first shard has been replaced
    verified = verifying.verify(shards, resume=state)
    assert verified.parts_found == 1 and verified._replace(parts_found=0) == verifying.verify(shards)
    assert verifying.verify(shards, resume=state).parts_found == 3
    with pytest.raises(feedline.ConfigError, match="decode was False and is True"):
        verifying.verify(shards, resume=state, decode=True)
    state.write_text("my diary\n")
    with pytest.raises(feedline.ConfigError, match="is not a journal"):
        verifying.verify(shards, resume=state)
    assert state.read_text() == "my diary\n"


def test_a_shard_that_could_not_be_read_is_read_again(shards: list[Path], tmp_path: Path) -> None:
    state, away = tmp_path / "state", tmp_path / "away"
    shards[1].rename(away)
    shards[1].mkdir()
    assert set(codes(verifying.verify(shards, resume=state))) == {"unreadable_shard"}
    shards[1].rmdir()
    away.rename(shards[1])
    verified = verifying.verify(shards, resume=state)
    assert verified.sound and verified.parts_found == 2


def test_a_folder_of_temporary_files_that_cannot_be_written_is_not_a_fault_of_a_shard(
    shards: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "file"))
    with pytest.raises(feedline.StorageError, match=r"cannot write an index into .*file: Not a directory; set TMPDIR"):
        verifying.verify(shards, resume=tmp_path / "state")
    monkeypatch.undo()
    assert verifying.verify(shards, resume=tmp_path / "state").parts_found == 0

    def fails(work: Any, name: str, index: str | None = None) -> Any:
        if index is None:
            return opens(work, name)
        raise feedline.StorageError("cannot write", errno=errno.ENOSPC, shard=f"{index}/000.tar.feedline-index")

    opens = parts.Work.open
    monkeypatch.setattr(parts.Work, "open", fails)
    with pytest.raises(feedline.StorageError, match="No space left on device; set TMPDIR"):
        verifying.verify(shards)


def test_progress_that_cannot_be_written_is_reported(tmp_path: Path, environment: dict[str, str]) -> None:
    script = (
        "import resource\nfrom pathlib import Path\nfrom feedline.record.journal import Journal\n"
        f"with Journal(Path({str(tmp_path / 'state')!r}), {{'head': 1}}, 'verify') as journal:\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (20, 20))\n"
        "    journal.append({'line': 'x' * 100})\n"
    )
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
    assert f"StorageError: verify: {tmp_path / 'state'} cannot be written: File too large" in done.stderr
    assert "During handling" not in done.stderr
    with Journal(tmp_path / "state", {"head": 1}, "verify") as journal:
        assert journal.lines == []
    with pytest.raises(feedline.ConfigError, match="is not a journal"):
        Journal(Path("/dev/zero"), {"head": 1}, "verify")


def test_orders_of_ranks_are_those_of_loaders(train: feedline.Dataset) -> None:
    from feedline import _engine
    from feedline.verify import orders

    for rank in range(2):
        order = _engine.rank_order(
            samples=21,
            shard_ends=[],
            shuffle=True,
            shard_window=0,
            seed=5,
            epoch=0,
            batch_size=4,
            rank=rank,
            world_size=2,
        )
        options: dict[str, Any] = {"uneven": "exact", "output": "numpy", "epochs": 1}
        with train.loader(4, shuffle=True, seed=5, rank=rank, world_size=2, **options) as loader:
            seen = [index for _ in loader for index in loader._engine.last_samples]
        assert seen == order.tolist()
    assert orders.is_exact(1_000, [300, 301, 1_000], 7)


def test_orders_that_lose_or_repeat_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    from feedline import _engine
    from feedline.verify import orders

    real = _engine.rank_order
    monkeypatch.setattr(_engine, "rank_order", lambda **query: real(**query)[1:])
    assert not orders.is_exact(100, [100], 3)
    monkeypatch.setattr(_engine, "rank_order", lambda **query: real(**{**query, "rank": 0}))
    assert not orders.is_exact(100, [100], 3)


def test_the_command_ends_as_documented_and_its_json_is_by_the_schema(shards: list[Path]) -> None:
    pytest.importorskip("click", reason="click, for the command line, is not installed")
    pytest.importorskip("rich", reason="rich, for the command line, is not installed")
    import fastjsonschema

    schema = json.loads((resources.files("feedline.verify") / "verification.schema.json").read_text())
    validate = fastjsonschema.compile(schema)

    def run(*arguments: str) -> tuple[int, str]:
        command = [sys.executable, "-c", "import sys; from feedline.cli import main; sys.exit(main())", "verify"]
        done = subprocess.run([*command, *arguments], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    source = str(shards[0].parent / "{000..002}.tar")
    status, text = run(source, "--json")
    assert status == 0 and json.loads(text)["sound"] is True
    validate(json.loads(text))
    shutil.copy(shards[0], shards[2])
    overwrite(shards[1], 0, b"no tar")
    status, text = run(source, "--json")
    assert status == 1
    validate(json.loads(text))
    with pytest.raises(fastjsonschema.JsonSchemaException):
        validate({**json.loads(text), "samples": "many"})
    assert run(str(shards[0].parent / "none.tar"))[0] == 3
    assert run(source, "--world", "0")[0] == 2
