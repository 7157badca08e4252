# SPDX-License-Identifier: Apache-2.0
"""Bad fields of samples, from tars and from folders by pattern, with every on_error: an error that names dataset, key,
field and stage, or the sample is skipped and counted; caches make no difference.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from made_fields import EXTENSIONS, PATTERNS, make_folder, make_tar, npy, palette_png, sample

import feedline

COUNT = 8
BAD = 5  # index of the bad sample
FOLDER_NAMES = ("left", "right", "masks", "boxes", "about", "captions", "label")


class Case(NamedTuple):
    field: str  # by its extension in a tar
    content: bytes | None  # None: the sample lacks it
    says: str
    stage: str


CASES = {
    "lacks a text": Case("txt", None, "the sample has no (member|file) for this field", "format"),
    "lacks an image": Case("left.jpg", None, "the sample has no (member|file) for this field", "format"),
    "mask of another size": Case("mask.png", palette_png(np.zeros((4, 4))), "4 x 4 pixels .* 48 x 60", "transform"),
    "mask that is a photo": Case("mask.png", sample(1)["left.jpg"], "a mask must be", "decode"),
    "cut image": Case("right.jpg", sample(1)["right.jpg"][:600], "truncated", "decode"),
    "no image": Case("left.jpg", b"text", "not an image", "decode"),
    "empty image": Case("left.jpg", b"", "an empty file", "format"),
    "no JSON": Case("json", b'{"a": }', "invalid JSON at byte 6: expected a value", "decode"),
    "empty JSON": Case("json", b"", "an empty file", "format"),
    "JSON that is not UTF-8": Case("json", b'"\xff"', "not (JSON|UTF-8)", "decode"),
    "text that is not UTF-8": Case("txt", b"caf\xe9", "not UTF-8 text: at byte 3", "decode"),
    "no array": Case("boxes.npy", b"\x93NUMPY", "npy: ", "decode"),
    "array of another dtype": Case("boxes.npy", npy(np.zeros((2, 4))), "float64.*use one dtype for all", "decode"),
    "no number": Case("cls", b"seven", "not an integer", "format"),
}


class Made(NamedTuple):
    data: feedline.Dataset
    names: tuple[str, ...]  # the bad one of the fields, in the order of EXTENSIONS
    path: Path
    kind: str

    def name(self, extension: str) -> str:
        return self.names[EXTENSIONS.index(extension)]

    def file(self, number: int, extension: str) -> Path:
        """Returns where the field of a sample is stored."""
        if self.kind == "tar":
            return self.path
        pattern = PATTERNS[EXTENSIONS.index(extension)].rpartition("=")[2]
        return self.path / pattern.replace("{key}", f"{number:04d}")


@pytest.fixture(params=["tar", "folder"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Made]:
    """Opens several samples. One of them has the given content, or does not have the field."""

    def made(field: str = "", content: bytes | None = b"") -> Made:
        samples = [sample(number) for number in range(COUNT)]
        if field and content is None:
            del samples[BAD][field]
        elif field:
            samples[BAD][field] = content or b""
        if request.param == "tar":
            path = make_tar(tmp_path / "x.tar", samples)
            return Made(feedline.open(path, fields=EXTENSIONS), EXTENSIONS, path, "tar")
        path = make_folder(tmp_path / "x", samples)
        return Made(feedline.open(path, fields=PATTERNS), FOLDER_NAMES, path, "folder")

    return made


def chain(made: Made, cached_in: str | None = None) -> feedline.Dataset:
    data = made.data if cached_in is None else made.data.cache(cached_in)
    return data.random_crop(32).collate("list", fields=made.name("boxes.npy"))


def run(loader: feedline.Loader) -> tuple[list[int], list[feedline.Error]]:
    """Returns the samples of an epoch, by their JSON, and the errors that next() raised."""
    numbers: list[int] = []
    errors = []
    iterator = iter(loader)
    while True:
        try:
            batch = next(iterator)
        except StopIteration:
            return numbers, errors
        except feedline.Error as error:
            errors.append(error)
            assert len(errors) < 20
        else:
            numbers += [about["id"] for about in batch[4]]


@pytest.mark.parametrize("cached", [False, True], ids=["plain", "cached"])
@pytest.mark.parametrize("on_error", ["raise", "skip", "replace"])
@pytest.mark.parametrize("name", CASES)
def test_a_bad_field_is_its_samples_error(
    make: Callable[..., Made], force: Callable[..., None], name: str, on_error: str, cached: bool
) -> None:
    case = CASES[name]
    made = make(case.field, case.content)
    field = made.name(case.field)
    for ahead in ("never", "always"):
        force(read_ahead=ahead)
        data = chain(made, "memory" if cached else None)
        with data.loader(2, on_error=on_error, output="numpy") as loader:
            for _ in range(2):  # also in an epoch that reads from the cache
                numbers, errors = run(loader)
                check(made, case, field, on_error, numbers, errors)
            logged = [bad for bad in loader.errors if bad.epoch < 2]
            assert {(bad.key, bad.action) for bad in logged} == {(f"{BAD:04d}", on_error)}
            assert all(f"field '{field}': " in bad.message and bad.stage == case.stage for bad in logged)
            assert loader.stats()["bad_samples"] >= 2
    with pytest.raises(feedline.DataError, match=f"field '{field}': .*{case.says}"):
        data[BAD]


def check(made: Made, case: Case, field: str, on_error: str, numbers: list[int], errors: list[feedline.Error]) -> None:
    good = set(range(COUNT)) - {BAD}
    if on_error != "raise":
        assert errors == []
        assert set(numbers) <= good and len(numbers) == (COUNT if on_error == "replace" else COUNT - 1)
        return
    assert set(numbers) == good - {BAD - 1}, "the batch is lost, the next one follows"
    (error,) = errors
    assert isinstance(error, feedline.DataError)
    assert (error.dataset, error.key, error.record, error.stage) == (str(made.path), f"{BAD:04d}", BAD, case.stage)
    assert error.shard in (None, str(made.file(BAD, case.field)))
    if made.kind == "folder":
        assert error.shard == str(made.file(BAD, case.field)), "the file of the field, not of another one"
    for part in (f"field '{field}': ", str(made.path), f"key {BAD:04d}", f"stage {case.stage}"):
        assert part in str(error)
    import re

    assert re.search(case.says, str(error)), str(error)


# ---- changes between index and read ----


@pytest.mark.parametrize("on_error", ["raise", "skip", "replace"])
@pytest.mark.parametrize("when", ["after opening", "between two epochs"])
def test_a_tar_that_was_rewritten(tmp_path: Path, when: str, on_error: str) -> None:
    samples = [sample(number) for number in range(COUNT)]
    made = Made(
        feedline.open(
            [make_tar(tmp_path / f"{i}.tar", samples[4 * i : 4 * i + 4]) for i in range(2)], fields=EXTENSIONS
        ),
        EXTENSIONS,
        tmp_path,
        "tar",
    )
    with chain(made).loader(2, on_error=on_error, output="numpy", epochs=1) as loader:
        if when == "between two epochs":
            assert sorted(run(loader)[0]) == list(range(COUNT))
        shard = tmp_path / "1.tar"
        shard.write_bytes(shard.read_bytes() + bytes(512))
        numbers, errors = run(loader)
        logged = loader.errors
    assert set(numbers) == set(range(4))
    keys = {bad.key for bad in logged}
    if on_error == "raise":  # the first sample of each batch
        assert keys <= {f"{i:04d}" for i in range(4)} and len(logged) == 2
    else:
        assert keys == {f"{i:04d}" for i in range(4)}, "keys of the second shard"
    assert all(bad.shard == str(shard) and bad.stage == "storage" for bad in logged)
    assert all("has changed between index and read" in bad.message for bad in logged)
    if on_error == "raise":
        assert [type(error) for error in errors] == [feedline.StorageError] * 2


@pytest.mark.parametrize("on_error", ["raise", "skip", "replace"])
def test_a_file_of_a_pattern_that_is_gone_between_two_epochs(tmp_path: Path, on_error: str) -> None:
    made = Made(
        feedline.open(make_folder(tmp_path / "x", [sample(i) for i in range(COUNT)]), fields=PATTERNS),
        FOLDER_NAMES,
        tmp_path / "x",
        "folder",
    )
    with chain(made).loader(2, on_error=on_error, output="numpy", epochs=1) as loader:
        assert sorted(run(loader)[0]) == list(range(COUNT))
        made.file(BAD, "txt").unlink()
        numbers, errors = run(loader)
        (bad,) = {(one.key, one.stage, one.shard) for one in loader.errors}
    assert bad == (f"{BAD:04d}", "storage", str(made.file(BAD, "txt")))
    assert BAD not in numbers
    assert len(errors) == (on_error == "raise")
    if errors:
        assert "field 'captions': " in str(errors[0]) and isinstance(errors[0], feedline.StorageError)


def test_a_file_of_a_pattern_with_other_bytes_is_read_as_it_is(tmp_path: Path) -> None:
    """As with class folders: changed bytes inside a file do not change the dataset."""
    path = make_folder(tmp_path / "x", [sample(i) for i in range(COUNT)])
    data = feedline.open(path, fields=("captions/{key}.txt",))
    with data.loader(COUNT, output="numpy", epochs=1) as loader:
        ((before,),) = list(loader)
        (path / "captions/0003.txt").write_text("other")
        ((after,),) = list(loader)
    assert after == [*before[:3], "other", *before[4:]]


def test_a_folder_that_changed_is_listed_again(tmp_path: Path) -> None:
    path = make_folder(tmp_path / "x", [sample(i) for i in range(COUNT)])

    def opened() -> feedline.Dataset:
        for folder in (path, *path.iterdir()):
            os.utime(folder, (1_700_000_000, 1_700_000_000 + len(list(folder.iterdir()))))
        return feedline.open(path, fields=("captions/{key}.txt", "masks/{key}.png"), index=tmp_path)

    assert "listed from the stored index" not in opened().explain()
    assert "listed from the stored index" in opened().explain()
    (path / "captions/0003.txt").unlink()
    changed = opened()
    assert "listed from the stored index" not in changed.explain()
    with pytest.raises(feedline.DataError, match="field 'captions': the sample has no file for this field"):
        changed.collate("list").sample(3)


# ---- cached samples ----

LIMITED = """
import json, resource, signal, sys, feedline
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))  # as a disk that is full after 64 bytes
try:
    data = feedline.open(sys.argv[1], fields=json.loads(sys.argv[2]), index=sys.argv[3] or None)
    print(len(data), data.explain())
except feedline.StorageError as error:
    print("refused:", error)
"""


def without_room(made: Made, index: str, environment: dict[str, str]) -> str:
    import json

    fields = json.dumps(EXTENSIONS if made.kind == "tar" else PATTERNS)
    command = [sys.executable, "-c", LIMITED, str(made.path), fields, index]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


def age(path: Path) -> None:
    """Pretends that the folders last changed long ago, because no index of recently changed folders is stored."""
    for folder in (path, *path.iterdir()) if path.is_dir() else ():
        os.utime(folder, (1_700_000_000, 1_700_000_000))


def test_a_full_disk_stops_only_who_chose_the_folder(make: Callable[..., Made], tmp_path: Path) -> None:
    made = make()
    age(made.path)
    for index in tmp_path.glob("*-index"):
        index.unlink()
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    chosen = tmp_path / "chosen"
    chosen.mkdir()
    refused = without_room(made, str(chosen), environment)
    assert refused.startswith("refused: cannot write"), refused
    assert str(made.path) in refused
    assert not list(chosen.iterdir())
    assert without_room(made, "", environment).startswith(f"{COUNT} ")


def test_an_index_of_another_version_is_rebuilt(make: Callable[..., Made], tmp_path: Path) -> None:
    made = make()
    age(made.path)
    fields = EXTENSIONS if made.kind == "tar" else PATTERNS
    indexes = tmp_path / "kept"
    indexes.mkdir()

    def opened() -> str:
        return feedline.open(made.path, fields=fields, index=indexes).explain()

    opened()
    (index,) = indexes.iterdir()
    ours = index.read_bytes()
    index.write_bytes(ours[:8] + struct.pack("<Q", 999) + ours[16:])
    assert "another version of Feedline" in opened()
    assert index.read_bytes() == ours
    assert "another version" not in opened()


def test_a_collate_function_that_raises_is_reported_as_it_is(make: Callable[..., Made]) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    made = make()

    def refuse(rows: list[Any]) -> Any:
        if any(row[4]["id"] == BAD for row in rows):
            raise KeyError("no such caption")
        return [row[4]["id"] for row in rows]

    for workers in (0, 2):
        loader = feedline.DataLoader(chain(made), 2, collate_fn=refuse, num_workers=workers)
        seen = []
        with pytest.raises(KeyError, match="no such caption"):
            for batch in loader:
                seen += batch
        assert seen == [0, 1, 2, 3]


def test_a_cache_next_to_a_tar_that_is_gone(tmp_path: Path) -> None:
    """Cached samples are still delivered; others raise an error with their location."""
    samples = [sample(number) for number in range(COUNT)]
    path = make_tar(tmp_path / "x.tar", samples)
    made = Made(feedline.open(path, fields=EXTENSIONS), EXTENSIONS, path, "tar")
    data = chain(made, str(tmp_path / "kept.pixels"))
    data[0], data[1]
    shutil.move(path, tmp_path / "away.tar")
    again = chain(Made(made.data, EXTENSIONS, path, "tar"), str(tmp_path / "kept.pixels"))
    assert data[1][4]["id"] == again[1][4]["id"] == 1
