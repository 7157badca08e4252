# SPDX-License-Identifier: Apache-2.0
"""The files that form a dataset: folders, patterns, splits, partitions, and files next to shards."""

from __future__ import annotations

import io
import json
import re
import shutil
import struct
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import made_tfrecords
import numpy as np
import pytest

import feedline
from feedline import packing, verifying
from feedline.pack import foreign_indexes


def write_tar(path: Path, members: list[tuple[str, bytes | tarfile.TarInfo]], **options: Any) -> Path:
    with tarfile.open(path, "w", **options) as tar:
        for name, content in members:
            info = content if isinstance(content, tarfile.TarInfo) else tarfile.TarInfo(name)
            info.name = name
            if isinstance(content, bytes):
                info.size = len(content)
            tar.addfile(info, io.BytesIO(content) if isinstance(content, bytes) else None)
    return path


def texts(source: object, **options: Any) -> list[str]:
    dataset = feedline.open(source, fields=("txt",), **options)  # type: ignore[arg-type]
    return [dataset[i][0] for i in range(len(dataset))]


def tars(folder: Path, names: list[str]) -> None:
    for number, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        write_tar(folder / name, [(f"{number}.txt", str(number).encode())])


# ---- patterns


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("a-*.tar", "01"),
        ("*.tar", "012"),
        ("a-?.tar", "01"),
        ("[ab]-0.tar", "02"),
        ("[!a]-*.tar", "2"),
        ("{b,a}-*.tar", "201"),
        ("**/*.tar", "0123"),
        ("in/**", "3"),
        ("*/*/*.tar", "3"),
        ("a-{0..1}.t?r", "01"),
    ],
)
def test_patterns_of_shards(tmp_path: Path, pattern: str, found: str) -> None:
    tars(tmp_path, ["a-0.tar", "a-1.tar", "b-0.tar", "in/er/c.tar"])
    (tmp_path / ".hidden.tar").write_bytes(b"")
    assert "".join(texts(f"{tmp_path}/{pattern}")) == found
    assert "".join(texts(Path(tmp_path, pattern))) == found
    assert "".join(texts([f"{tmp_path}/{pattern}", tmp_path / "a-0.tar"])) == found + "0"


def test_a_name_with_wildcards_of_its_own_is_that_file(tmp_path: Path) -> None:
    tars(tmp_path, ["a[0].tar", "a0.tar", "b*.tar", "b1.tar"])
    assert texts(tmp_path / "a[0].tar") == ["0"]
    assert texts(tmp_path / "b*.tar") == ["2"]


@pytest.mark.parametrize("pattern", ["train-*", "train-*.tar", "*.parquet", "**/*.jsonl", "[x-z]*"])
def test_a_pattern_without_matches_names_what_the_folder_holds(tmp_path: Path, pattern: str) -> None:
    tars(tmp_path, ["a-0.tar"])
    with pytest.raises(feedline.ConfigError, match=r"no file matches '.*'; the folder '.*' contains 'a-0.tar'"):
        feedline.open(f"{tmp_path}/{pattern}")
    with pytest.raises(feedline.ConfigError, match=r"there is no folder '.*/none'"):
        feedline.open(f"{tmp_path}/none/{pattern}")


def test_patterns_in_verify_and_lists_of_shards(tmp_path: Path) -> None:
    tars(tmp_path, ["a-0.tar", "a-1.tar", "b-0.tar"])
    verified = verifying.verify(f"{tmp_path}/a-*.tar", fields=("txt",))
    assert verified.sound and verified.samples == 2 and verified.shards == 2
    written = foreign_indexes.write(f"{tmp_path}/a-?.tar", "wids", output=str(tmp_path / "index.json"))
    assert written.samples == 2
    assert texts(tmp_path / "index.json") == ["0", "1"]
    for source in (tmp_path / "c-*.tar", tmp_path / "none" / "*.tar"):
        with pytest.raises(feedline.ConfigError, match="no file matches"):
            verifying.verify(source, fields=("txt",))


def test_a_pattern_of_packed_shards_is_verified_by_its_manifest(folder: Path, tmp_path: Path) -> None:
    packing.pack(folder, tmp_path / "packed", samples_per_shard=10)
    assert len(feedline.open(f"{tmp_path}/packed/*.tar", verify="manifest")) == 21


def test_images_are_not_a_source(folder: Path) -> None:
    files = sorted(folder.glob("*/*.jpg"))
    for source in (files[0], f"{folder}/*/*.jpg", f"{files[0].parent}/{{{files[0].stem},{files[1].stem}}}.jpg"):
        with pytest.raises(feedline.ConfigError, match=r'is an image, not a dataset.*fields="\{key\}\.jpg"'):
            feedline.open(source)


def test_a_folder_of_annotations_among_class_folders_names_its_json(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "coco")
    (tmp_path / "coco" / "annotations").mkdir()
    (tmp_path / "coco" / "annotations" / "instances.json").write_text("{}")
    with pytest.raises(feedline.ConfigError, match=r"'annotations' contains no images.* COCO .*\.json"):
        feedline.open(tmp_path / "coco")


# ---- Feedline's own indexes


@pytest.mark.parametrize("pattern", ["train-*", "*", "*.tar*"])
def test_the_second_run_finds_the_same_files(tmp_path: Path, pattern: str) -> None:
    tars(tmp_path, ["train-0.tar", "train-1.tar"])
    for listed in (
        lambda: sorted(tmp_path.glob(pattern)),
        lambda: sorted(tmp_path.iterdir()),
        lambda: tmp_path / pattern,
    ):
        for _ in range(2):
            assert texts(listed()) == ["0", "1"]
    assert sorted(path.name for path in (tmp_path / ".feedline").iterdir()) == [
        "train-0.tar.feedline-index",
        "train-1.tar.feedline-index",
    ]


def test_an_index_of_an_earlier_version_is_read_and_never_a_shard(tmp_path: Path) -> None:
    tars(tmp_path, ["train-0.tar", "train-1.tar"])
    assert texts(tmp_path / "train-*") == ["0", "1"]
    for path in (tmp_path / ".feedline").iterdir():
        path.rename(tmp_path / path.name)
    assert texts(sorted(tmp_path.glob("train-*"))) == ["0", "1"]
    assert texts(tmp_path / "train-*") == ["0", "1"]
    assert list((tmp_path / ".feedline").iterdir()) == [], "the old ones are read"


def test_records_without_an_ending_open_twice(tmp_path: Path) -> None:
    for k in range(2):
        record = made_tfrecords.record(made_tfrecords.example({"n": k}))
        (tmp_path / f"train-{k:05d}-of-00002").write_bytes(record)
    for source in (lambda: sorted(tmp_path.glob("train-*")), lambda: tmp_path / "train-*", lambda: tmp_path):
        for _ in range(2):
            dataset = feedline.open(source(), fields=("n",))
            assert [int(dataset[i].n) for i in range(len(dataset))] == [0, 1]


# ---- folders of Parquet


def parquet(path: Path, first: int, rows: int = 10) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    path.parent.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(pa.table({"x": list(range(first, first + rows))}), path)


def xs(source: object) -> list[int]:
    dataset = feedline.open(source)  # type: ignore[arg-type]
    return [int(x) for batch in dataset.loader(7, output="numpy") for x in batch.x]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "name",
    [
        "part-{k}.parquet",
        "part-{k:05d}-0d1a9b6e-7b1b-4c1e-9a7e-1f6f1d2c3b4a-c000.snappy.parquet",
        "data_{k}.parquet",
        "part.{k}.parquet",
        "{k:03d}_00000.parquet",
        "{k:012d}.parquet",
        "{k}.parquet",
        "20240101_{k}_abcde.parquet",
        "a{k}-00000-of-00001.parquet",
        "train-{k:05d}-of-00003.parquet",
        "data/CC-MAIN-2024-10/{k:03d}_00000.parquet",
        "2024/0{k}/x.parquet",
        "train/{k}.parquet",
        "latest-{k}.parquet",
    ],
)
def test_files_of_a_folder_are_one_table(tmp_path: Path, name: str) -> None:
    for k in range(3):
        parquet(tmp_path / name.format(k=k), 10 * k)
    for other in ("_SUCCESS", "_metadata", "_common_metadata", ".x.crc", "_delta_log/0.parquet", ".hidden/0.parquet"):
        (tmp_path / other).parent.mkdir(exist_ok=True)
        (tmp_path / other).write_bytes(b"no table")
    assert xs(tmp_path) == list(range(30))
    assert feedline.inspect(tmp_path).samples == 30


@pytest.mark.parametrize(
    ("names", "splits"),
    [
        (["train-0.parquet", "train-1.parquet", "test-0.parquet"], {"train": [0, 1], "test": [2]}),
        (["train/a.parquet", "train/b.parquet", "val/a.parquet"], {"train": [0, 1], "validation": [2]}),
        (["data/train/a.parquet", "data/dev/b.parquet"], {"train": [0], "validation": [1]}),
        (["my_train.parquet", "my_eval.parquet"], {"train": [0], "test": [1]}),
        (["Train.parquet", "TEST.parquet"], {"train": [0], "test": [1]}),
        (["Train/a.parquet", "Test/a.parquet"], {"train": [0], "test": [1]}),
        (["split=train/a.parquet", "split=test/a.parquet"], {"train": [0], "test": [1]}),
        (["a/x-train-0.parquet", "b/x-train-1.parquet", "b/x-test-0.parquet"], {"train": [0, 1], "test": [2]}),
        (["data/a-00000-of-00001.parquet", "data/b-00000-of-00001.parquet"], {"a": [0], "b": [1]}),
        (["train-0.parquet", "train-1.parquet", "x.parquet", "y.parquet"], {"train": [0, 1], "": [2, 3]}),
        (["train-00000-of-00002.parquet", "train-00001-of-00002.parquet", "train-x/test-1.parquet"], None),
    ],
)
def test_splits_are_never_joined_and_each_source_that_is_offered_opens_its_own(
    tmp_path: Path, names: list[str], splits: dict[str, list[int]] | None
) -> None:
    for k, name in enumerate(names):
        parquet(tmp_path / name, 10 * k)
    with pytest.raises(feedline.ConfigError, match="several splits") as raised:
        feedline.open(tmp_path)
    offered = re.findall(r"'([^']*)'", str(raised.value).partition("open one of them: ")[2])
    if splits is not None:
        rows = [[x for k in files for x in range(10 * k, 10 * k + 10)] for _, files in sorted(splits.items())]
        assert [xs(source) for source in offered] == rows


def test_splits_are_those_of_datasets(tmp_path: Path) -> None:
    data_files = pytest.importorskip("datasets.data_files")
    names = ["train", "training", "valid", "val", "dev", "test", "testing", "eval", "evaluation", "validation"]
    for number, name in enumerate(
        [*names, "trainer", "pretrain", "latest", "devs", "part", "train0", "0train", "x.test"]
    ):
        folder = tmp_path / str(number)
        for k in range(2):
            parquet(folder / f"{name}_{k}.parquet", 10 * k)
            parquet(folder / f"b_{k}.parquet", 10 * k)
        found = data_files.get_data_patterns(str(folder))
        is_split = list(found) != ["train"] or found["train"] != ["**"]
        try:
            assert (len(xs(folder)) == 40) and not is_split, name
        except feedline.ConfigError as error:
            assert is_split and "files without a split" in str(error), name


# ---- partitions


@pytest.mark.parametrize("end", ["parquet", "arrow"])
def test_columns_in_the_names_of_folders(tmp_path: Path, end: str) -> None:
    pa = pytest.importorskip("pyarrow")
    written = pytest.importorskip("pyarrow.dataset")

    rows = {
        "x": list(range(8)),
        "year": [2023, 2024] * 4,
        "city": ["a b", "c/d", "é=%", None] * 2,
        "label": ["cat", "dog", "dog", "cat"] * 2,
    }
    part = written.partitioning(
        pa.schema([("year", pa.int32()), ("city", pa.string()), ("label", pa.string())]), flavor="hive"
    )
    written.write_dataset(pa.table(rows), tmp_path, format=end, partitioning=part)
    dataset = feedline.open(tmp_path, fields=("x", "year", "city", "label"), missing="none").collate("list")
    assert dataset.classes == ["cat", "dog"]
    samples = sorted((dataset[i] for i in range(len(dataset))), key=lambda sample: int(sample.x))
    assert [int(s.x) for s in samples] == rows["x"]
    assert [int(s.year) for s in samples] == rows["year"]
    assert [s.city for s in samples] == rows["city"]
    assert [dataset.classes[int(s.label)] for s in samples] == rows["label"]
    # by a pattern too
    files = feedline.open(f"{tmp_path}/**/*.{end}", fields=("x", "label"))
    assert len(files) == 8 and files.classes == ["cat", "dog"]


def test_files_in_other_partitions_are_refused_by_name(tmp_path: Path) -> None:
    parquet(tmp_path / "a=1" / "x.parquet", 0)
    parquet(tmp_path / "b=1" / "x.parquet", 0)
    with pytest.raises(feedline.ConfigError, match="has different partitions from"):
        feedline.open(tmp_path)


# ---- folders of shards


def test_img2dataset(tmp_path: Path) -> None:
    for shard in range(2):
        tars(tmp_path, [f"{shard:05d}.tar"])
        parquet(tmp_path / f"{shard:05d}.parquet", 0)
        (tmp_path / f"{shard:05d}_stats.json").write_text("{}")
    assert len(texts(tmp_path)) == 2


def test_folders_of_tars(tmp_path: Path) -> None:
    tars(tmp_path, ["train-0.tar", "train-1.tar"])
    assert texts(tmp_path) == ["0", "1"]
    with pytest.raises(feedline.ConfigError, match=r"train-0\.tar"):
        feedline.open(tmp_path)
    tars(tmp_path, ["test-0.tar"])
    with pytest.raises(feedline.ConfigError, match=r"several splits \(test, train\); open one of them: .*/test-0.tar'"):
        texts(tmp_path)


@pytest.mark.parametrize("content", [None, b"", b"[]", b"{}", b"\x00\x01"])
@pytest.mark.parametrize("shard", ["shard.00000.mds", "shard.00000.mds.zstd", "chunk-0-0.bin"])
@pytest.mark.parametrize("fields", [None, ("image", "label")])
def test_shards_without_a_sound_index_are_answered_with_that(
    tmp_path: Path, content: bytes | None, shard: str, fields: tuple[str, ...] | None
) -> None:
    (tmp_path / shard).write_bytes(bytes(64))
    if content is not None:
        (tmp_path / "index.json").write_bytes(content)
    with pytest.raises(feedline.Error, match=r"index\.json"):
        feedline.open(tmp_path, **({"fields": fields} if fields else {}))


def feedline_command(*words: object) -> subprocess.CompletedProcess[str]:
    run = [sys.executable, "-c", "import sys; from feedline.cli import main; sys.exit(main())", *map(str, words)]
    return subprocess.run(run, capture_output=True, text=True, timeout=120, check=False)


def test_a_packed_folder_opens_by_its_name(folder: Path, tmp_path: Path) -> None:
    packed = tmp_path / "packed"
    assert feedline_command("pack", folder, packed, "--samples-per-shard", "10").returncode == 0
    dataset, stored = feedline.open(packed), feedline.open(folder)
    assert [dataset.encoded(i)[0] for i in range(21)] == [stored.encoded(i)[0] for i in range(21)]
    assert dataset.classes == stored.classes
    assert feedline.inspect(packed).samples == 21
    for verb in ("inspect", "verify"):
        done = feedline_command(verb, packed)
        assert done.returncode == 0 and "21" in done.stdout, done.stderr
    assert feedline_command("index", packed, "--as", "wids").returncode == 0
    assert len(feedline.open(packed)) == 21 and len(feedline.open([packed, packed / "index.json"])) == 42
    # one that was not finished, and ranges that were not merged
    manifest = packed / "feedline-pack.json"
    said = json.loads(manifest.read_text())
    manifest.write_text(json.dumps(said | {"complete": False}))
    with pytest.raises(feedline.ConfigError, match="did not finish"):
        feedline.open(packed)
    manifest.write_text("{")
    with pytest.raises(feedline.DataError, match="is damaged"):
        feedline.open(packed)
    manifest.rename(packed / "feedline-pack.000000-000001.json")
    with pytest.raises(feedline.ConfigError, match="merge-index"):
        feedline.open(packed)


# ---- tars


def link(target: str, kind: bytes = tarfile.LNKTYPE) -> tarfile.TarInfo:
    info = tarfile.TarInfo()
    info.type, info.linkname = kind, target
    return info


LONG = "d" * 90 + "/" + "e" * 90


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_hard_links_have_the_bytes_of_their_member(tmp_path: Path, form: int) -> None:
    long = "a/b" if form == tarfile.USTAR_FORMAT else LONG
    path = write_tar(
        tmp_path / "x.tar",
        [
            ("0.txt", b"zero"),
            ("0.json", link(f"{long}.json")),  # a later member
            (f"{long}.json", b"[1]"),
            (f"{long}.txt", link("0.txt")),
            ("2.txt", link(f"{long}.txt")),  # a link to a link
            ("2.json", b"[2]"),
        ],
        format=form,
    )
    for missing in ("error", "skip"):
        dataset = feedline.open(path, fields=("txt", "json"), missing=missing)
        assert [tuple(dataset[i]) for i in range(len(dataset))] == [("zero", [1]), ("zero", [1]), ("zero", [2])]
        assert [batch.txt for batch in dataset.collate("list").loader(3)] == [["zero"] * 3]  # type: ignore[attr-defined]
    assert feedline.inspect(path, fields=("txt", "json")).findings == []


@pytest.mark.parametrize("target", ["9.txt", "0.txt", "1.txt"])
def test_links_to_nothing_are_damage_that_names_both(tmp_path: Path, target: str) -> None:
    path = write_tar(tmp_path / "x.tar", [("0.txt", link("1.txt")), ("1.txt", link(target))])
    with pytest.raises(feedline.DataError, match=r"member '[01].txt' is a hard link to '[019].txt'.*x\.tar"):
        texts(path)
    assert {finding.code for finding in feedline.inspect(path, fields=("txt",)).findings} == {"link_without_target"}


def test_symbolic_links_are_named_with_their_target(tmp_path: Path) -> None:
    path = write_tar(tmp_path / "x.tar", [("0.txt", b"zero"), ("1.txt", link("0.txt", tarfile.SYMTYPE))])
    (finding,) = feedline.inspect(path, fields=("txt",)).findings
    assert finding.code == "not_regular" and "a symbolic link to '0.txt'" in finding.text


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--format=pax", "--sparse-version=1.0"],
        ["--format=pax", "--sparse-version=0.1"],
        ["--format=pax", "--sparse-version=0.0"],
    ],
)
def test_sparse_members_are_refused_by_name(tmp_path: Path, options: list[str]) -> None:
    with open(tmp_path / "0.bin", "wb") as file:
        file.truncate(1 << 20)
        file.seek(1 << 19)
        file.write(b"x")
    made = subprocess.run(
        ["tar", "--sparse", "--hole-detection=raw", *(options or ["--format=gnu"]), "-cf", "x.tar", "0.bin"],
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    if made.returncode != 0:
        pytest.skip("this tar has no --sparse")
    with pytest.raises(feedline.DataError, match=r"member '0.bin' is stored as a sparse file"):
        feedline.open(tmp_path / "x.tar", fields=("bin",))


def test_energons_index_counts_members_after_the_last_sample(tmp_path: Path) -> None:
    path, starts = tmp_path / "x.tar", []
    with tarfile.open(path, "w") as tar:
        for name in ("0.txt", "1.txt", "README"):
            starts.append(tar.offset)
            info = tarfile.TarInfo(name)
            info.size = 1
            tar.addfile(info, io.BytesIO(b"x"))
        end = tar.offset
    for numbers, is_foreign in (
        ((*starts[:2], end), False),
        ((*starts[:2], starts[2]), False),
        ((*starts[:2], end - 512), True),
        ((starts[0], starts[1] + 512, end), True),
    ):
        Path(f"{path}.idx").write_bytes(struct.pack("<3Q", *numbers))
        codes = [finding.code for finding in feedline.inspect(path).findings]
        assert ("foreign_index" in codes) == is_foreign, numbers


def test_a_database_of_lmdb_1_0_is_refused_by_name(tmp_path: Path) -> None:
    page = bytearray(4096)
    struct.pack_into("<H", page, 18, 8)
    struct.pack_into("<II", page, 24, 0xBEEFC0DE, 3)
    struct.pack_into("<I", page, 48, 4096)
    (tmp_path / "data.mdb").write_bytes(bytes(page) * 4)
    with pytest.raises(feedline.DataError, match=r"data version 3, of LMDB 1\.0"):
        feedline.open(tmp_path, fields="{key}.txt")


# ---- tables in parts, and metadata


def test_tables_in_parts(tmp_path: Path) -> None:
    for k in range(3):
        rows = [{"text": f"t{k}{i}", "id": 3 * k + i} for i in range(3)]
        (tmp_path / "jsonl").mkdir(exist_ok=True)
        (tmp_path / "csv").mkdir(exist_ok=True)
        (tmp_path / "jsonl" / f"{k:05d}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        names = ("text", "id") if k != 1 else ("id", "text")  # the order of columns does not matter
        lines = [",".join(names), *(",".join(str(row[name]) for name in names) for row in rows)]
        (tmp_path / "csv" / f"{k:05d}.csv").write_text("\n".join(lines))
    for end in ("jsonl", "csv"):
        root = tmp_path / end
        names = [f"{root}/{k:05d}.{end}" for k in range(3)]
        for source in (names, f"{root}/{{00000..00002}}.{end}", f"{root}/*.{end}", root, "::".join(names)):
            dataset = feedline.open(source, fields=("text", "id"))
            assert [(s.text, int(s.id)) for s in dataset] == [(f"t{i // 3}{i % 3}", i) for i in range(9)]  # type: ignore[attr-defined]
        assert feedline.inspect(root, fields=("text", "id")).samples == 9


def test_a_bad_row_of_a_part_names_its_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "0.jsonl").write_text('{"text": "a"}\n')
    (tmp_path / "1.jsonl").write_text('{"text": "b"}\n{"text": \n')
    with pytest.raises(feedline.DataError, match=r"line 2 .*1\.jsonl"):
        feedline.open(tmp_path, fields=("text",))
    (tmp_path / "1.jsonl").write_text('{"text": "b"}\n{"other": 1}\n')
    dataset = feedline.open(tmp_path, fields=("text",))
    with pytest.raises(feedline.DataError, match=r"line 2 of '.*1\.jsonl'"):
        dataset[2]
    (tmp_path / "csv").mkdir()
    (tmp_path / "csv" / "0.csv").write_text("a,b\n1,2\n")
    (tmp_path / "csv" / "1.csv").write_text("a,c\n1,2\n")
    with pytest.raises(feedline.DataError, match=r"has the columns a, c, but '.*0\.csv' has a, b"):
        feedline.open(tmp_path / "csv", fields=("a",))


def test_partitions_of_tables_in_text(tmp_path: Path) -> None:
    for name in ("cat", "dog"):
        (tmp_path / f"label={name}" / "year=2024").mkdir(parents=True)
        (tmp_path / f"label={name}" / "year=2024" / "0.jsonl").write_text(f'{{"x": "{name}!"}}\n')
    dataset = feedline.open(tmp_path, fields=("x", "label", "year"))
    assert dataset.classes == ["cat", "dog"]
    assert [(s.x, int(s.label), int(s.year)) for s in dataset] == [("cat!", 0, 2024), ("dog!", 1, 2024)]  # type: ignore[attr-defined]


def test_a_list_of_labels_next_to_class_folders_stays_what_it_is(tmp_path: Path) -> None:
    for name in ("a", "b"):
        png(tmp_path / name / "0.png", 50)
    (tmp_path / "labels.csv").write_text("a,b\n1,2\n")
    assert feedline.open(tmp_path).format == "folder"


def png(path: Path, value: int) -> None:
    image = pytest.importorskip("PIL.Image")
    path.parent.mkdir(parents=True, exist_ok=True)
    image.fromarray(np.full((8, 8, 3), value, np.uint8)).save(path)


def write_metadata(path: Path, rows: list[dict[str, Any]]) -> None:
    if path.suffix == ".parquet":
        pa = pytest.importorskip("pyarrow")
        import pyarrow.parquet

        pyarrow.parquet.write_table(pa.Table.from_pylist(rows), path)
    elif path.suffix == ".csv":
        lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
        path.write_text("\n".join(lines) + "\n")
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.parametrize("end", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("where", ["root", "classes"])
def test_metadata_next_to_images(tmp_path: Path, end: str, where: str) -> None:
    for part in range(2):
        folder = tmp_path if where == "root" else tmp_path / ("cats", "dogs")[part]
        numbers = range(4) if where == "root" else range(2 * part, 2 * part + 2)
        for k in numbers:
            png(folder / f"{k}.png", 50 * k)
        rows = [{"file_name": f"{k}.png", "caption": f"caption {k}", "score": k / 4, "n": -k} for k in numbers]
        write_metadata(folder / f"metadata.{end}", rows)
    dataset = feedline.open(tmp_path)
    batch: Any = next(iter(dataset.resize((8, 8)).loader(4, output="numpy")))
    assert [int(image.max()) for image in batch.image] == [0, 50, 100, 150]
    assert list(batch.caption) == [f"caption {k}" for k in range(4)]
    assert [float(x) for x in batch.score] == [0, 0.25, 0.5, 0.75] and list(batch.n) == [0, -1, -2, -3]
    if where == "classes":
        assert dataset.classes == ["cats", "dogs"] and list(batch.label) == [0, 0, 1, 1]
    assert feedline.inspect(tmp_path).samples == 4


@pytest.mark.parametrize("end", ["bmp", "tif", "gif", "ppm"])
def test_metadata_of_images_that_pillow_decodes(tmp_path: Path, end: str) -> None:
    for k, one in enumerate(("png", end)):
        png(tmp_path / f"{k}.{one}", 50 * k)
    rows = [{"file_name": f"{k}.{one}", "n": k} for k, one in enumerate(("png", end))]
    write_metadata(tmp_path / "metadata.csv", rows)
    assert [int(sample.image.max()) for sample in feedline.open(tmp_path)] == [0, 50]
    table = tmp_path / "table.csv"
    table.write_text(f"image,n\n1.{end},1\n")
    assert int(feedline.open(table)[0].image.max()) == 50
    assert int(feedline.open(tmp_path, fields=(f"{{key}}.{end}",))[0][0].max()) == 50


def test_lists_in_metadata_parquet(tmp_path: Path) -> None:
    png(tmp_path / "0.png", 0)
    write_metadata(tmp_path / "metadata.parquet", [{"file_name": "0.png", "box": [1.5, 2.0, 0.1], "is_new": True}])
    dataset: Any = feedline.open(tmp_path).resize((8, 8))
    assert dataset[0].box == [1.5, 2.0, 0.1] and dataset[0].is_new is True


def test_columns_of_metadata_parquet_that_cannot_be_read_are_listed(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    moments = pa.array([0, 1], pa.timestamp("ms"))
    for folder in ("cats", "dogs"):
        for k in range(2):
            png(tmp_path / folder / f"{k}.png", 50 * k)
        columns: dict[str, Any] = {
            "file_name": ["0.png", "1.png"],
            "caption": ["one", "two"],
            "raw": [b"\xff\x00", b"\xfe"],
            "taken": moments,
            "price": pa.array(["1.5", "2.5"]).cast(pa.decimal128(5, 2)),
            "tags": pa.array([[(1, 1)], []], pa.map_(pa.int32(), pa.int64())),
            "empty": pa.array([None, None], pa.null()),
        }
        if folder == "dogs":  # read there
            columns["price"] = [7, 8]
        pyarrow.parquet.write_table(pa.table(columns), tmp_path / folder / "metadata.parquet")
    dataset: Any = feedline.open(tmp_path / "cats").resize((8, 8))
    sample = dataset[0]
    assert sample._fields == ("image", "caption", "raw", "taken") and sample.raw == b"\xff\x00"
    assert dataset.schema["taken"].unit == "ms"
    left = {one.name.partition(".")[0]: (one.reason, one.spec) for one in dataset.unopened}
    other = ("this version does not read this type", "")
    assert left == {"price": other, "tags": other, "empty": ("no row has a value", "")}
    assert all(one.holds for one in dataset.unopened)
    with pytest.raises(AttributeError, match=r"price.*does not read this type"):
        sample.price  # noqa: B018
    for text in (repr(dataset), dataset.explain()):
        assert all(name in text for name in left)
    assert {"price", "tags", "empty"} <= {
        word for finding in feedline.inspect(tmp_path / "cats").findings for word in re.findall(r"\w+", finding.text)
    }
    few = feedline.open(tmp_path / "cats", fields=("image=file_name:image",))
    specs = {one.name.partition(".")[0]: one.spec for one in few.unopened}
    assert specs["raw"] == "raw:bytes" and specs["caption"] == "caption:text" and specs["tags"] == ""
    with pytest.raises(feedline.ConfigError, match="names no files"):
        feedline.open(tmp_path / "cats", fields=("raw:image",))
    both = feedline.open(tmp_path, missing="skip")  # of both files
    assert {one.name.partition(".")[0] for one in both.unopened} == {"tags", "empty"} and len(both) == 2


@pytest.mark.parametrize("end", ["csv", "jsonl"])
def test_columns_of_metadata_without_a_value_are_listed(tmp_path: Path, end: str) -> None:
    png(tmp_path / "0.png", 0)
    rows = [{"file_name": "0.png", "caption": "x", "empty": "" if end == "csv" else None}]
    write_metadata(tmp_path / f"metadata.{end}", rows)
    dataset = feedline.open(tmp_path)
    assert [(one.name, one.reason) for one in dataset.unopened] == [("empty", "no row has a value")]
    few = feedline.open(tmp_path, fields=("file_name:image",))
    assert {(one.name, one.spec) for one in few.unopened} == {("empty", ""), ("caption", "caption:text")}


def test_a_class_folder_without_the_metadata_of_the_others_is_named(tmp_path: Path) -> None:
    png(tmp_path / "cats" / "0.png", 0)
    png(tmp_path / "dogs" / "1.png", 0)
    write_metadata(tmp_path / "cats" / "metadata.csv", [{"file_name": "0.png", "caption": "x"}])
    with pytest.raises(feedline.ConfigError, match="dogs' contains images but no metadata file"):
        feedline.open(tmp_path)
    assert len(feedline.open(tmp_path, format="folder")) == 2
