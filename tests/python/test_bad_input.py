# SPDX-License-Identifier: Apache-2.0
"""Bad input is a clear error that says where, and nothing is lost: each good sample is counted."""

from __future__ import annotations

import contextlib
import errno
import logging
import math
import os
import re
import resource
import struct
import tarfile
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import made_data
import numpy as np
import pytest
from conftest import Options, training

import feedline

GOOD = made_data.encoded(made_data.photo(1, 90, 70), quality=90)
PNG = made_data.encoded(made_data.photo(2, 90, 70), "PNG")


def _huge_jpeg() -> bytes:
    """A sound JPEG whose frame header says 60,000 x 60,000."""
    frame = GOOD.index(b"\xff\xc0")
    return GOOD[: frame + 5] + struct.pack(">HH", 60_000, 60_000) + GOOD[frame + 9 :]


def _huge_png() -> bytes:
    header = b"IHDR" + struct.pack(">II", 60_000, 60_000) + PNG[24:29]
    return PNG[:12] + header + struct.pack(">I", zlib.crc32(header)) + PNG[33:]


# name of the case: bytes of the file, what the message says, stage
DAMAGED: dict[str, tuple[bytes, str, str]] = {
    "zero bytes": (b"", "empty", "decode|format|storage"),
    "truncated JPEG": (GOOD[: len(GOOD) // 2], "truncated|premature|missing|ends", "decode"),
    "JPEG header only": (GOOD[: GOOD.index(b"\xff\xda")], "truncated|premature|missing|ends", "decode"),
    "truncated PNG": (PNG[: len(PNG) // 2], "truncated|premature|missing|ends|damaged", "decode"),
    "text": (b"this is no image at all\n" * 20, "text", "decode"),
    "a GIF": (b"GIF89a" + bytes(300), "GIF", "decode"),
    "huge JPEG": (_huge_jpeg(), "60,?000", "decode"),
    "huge PNG": (_huge_png(), "60,?000", "decode"),
    "noise after a JPEG's magic": (b"\xff\xd8\xff\xe0" + bytes(range(256)) * 3, "", "decode"),
    "PNG with a wrong checksum": (PNG[:60] + bytes([PNG[60] ^ 1]) + PNG[61:], "", "decode"),
}


def damaged_folder(root: Path, content: bytes, keys: tuple[str, ...] = ("birch/003.jpg",)) -> feedline.Dataset:
    made_data.make_folder(root)
    for key in keys:
        (root / key).write_bytes(content)
    return feedline.open(root)


def run(loader: feedline.Loader) -> tuple[Counter[int], list[int], list[feedline.Error]]:
    """How often each sample came, the length of each batch, and the errors that next() raised."""
    samples: Counter[int] = Counter()
    lengths, errors = [], []
    iterator = iter(loader)
    while True:
        try:
            batch = next(iterator)
        except StopIteration:
            return samples, lengths, errors
        except feedline.Error as error:
            errors.append(error)
            assert len(errors) < 100
        else:
            samples.update(loader.last_samples)
            lengths.append(len(batch.label))
            assert batch.label.tolist() == [index // 7 for index in loader.last_samples]


# ---- damaged files ----


@pytest.mark.parametrize("name", DAMAGED)
def test_raise_names_the_place(tmp_path: Path, name: str) -> None:
    content, says, stage = DAMAGED[name]
    root = tmp_path / "train"
    dataset = training(damaged_folder(root, content))
    with dataset.loader(4, output="numpy") as loader:
        samples, lengths, errors = run(loader)
        logged = loader.errors
    assert len(errors) == 1
    error = errors[0]
    assert isinstance(error, feedline.DataError)
    assert error.dataset == str(root)
    assert error.shard == str(root / "birch/003.jpg")
    assert error.key == "birch/003.jpg"
    assert error.record == 10
    assert error.stage is not None
    assert re.search(says, str(error)), str(error)
    assert re.fullmatch(stage, error.stage)
    for part in (str(root), "birch/003.jpg", error.stage):
        assert part in str(error)
    # the batch is lost, the next follows
    assert lengths == [4, 4, 4, 4, 1]
    assert samples == Counter(set(range(21)) - {8, 9, 10, 11})
    assert [(bad.key, bad.record, bad.action, bad.batch, bad.epoch) for bad in logged] == [
        ("birch/003.jpg", 10, "raise", 2, 0)
    ]
    with pytest.raises(feedline.DataError, match=r"birch/003\.jpg"):
        dataset[10]


@pytest.mark.parametrize("name", DAMAGED)
@pytest.mark.parametrize("on_error", ["skip", "replace"])
def test_skip_and_replace(tmp_path: Path, name: str, on_error: str, caplog: pytest.LogCaptureFixture) -> None:
    root = tmp_path / "train"
    dataset = training(damaged_folder(root, DAMAGED[name][0]))
    with caplog.at_level(logging.WARNING, "feedline"), dataset.loader(4, output="numpy", on_error=on_error) as loader:
        samples, lengths, errors = run(loader)
        logged, stats = loader.errors, loader.stats()
    assert errors == []
    assert set(samples) == set(range(21)) - {10}
    if on_error == "skip":
        assert lengths == [4] * 5
        assert set(samples.values()) == {1}
    else:
        assert lengths == [4] * 5 + [1]
        assert sum(samples.values()) == 21
    assert stats["bad_samples"] == 1
    (bad,) = logged
    assert (bad.key, bad.record, bad.action, bad.shard) == ("birch/003.jpg", 10, on_error, str(root / "birch/003.jpg"))
    assert bad.dataset == str(root)
    assert bad.stage in bad.message
    (warning,) = caplog.records
    assert "birch/003.jpg" in warning.getMessage()


def test_everything_of_skip_under_hostile_configurations(tmp_path: Path, config: Options) -> None:
    """Five bad samples of 21: full batches, each good sample once, the same batches for every configuration."""
    bad = {0: "apple/000.jpg", 5: "apple/005.jpg", 6: "apple/006.jpg", 13: "birch/006.jpg", 20: "crow/006.jpg"}
    dataset = training(damaged_folder(tmp_path / "train", b"text", tuple(bad.values())))

    def images(on_error: str, **options: Any) -> tuple[list[bytes], list[int]]:
        with dataset.loader(4, shuffle=True, seed=3, on_error=on_error, output="numpy", **options) as loader:
            pairs = [(batch.image.tobytes(), len(batch.label)) for batch in loader]
            assert {entry.key for entry in loader.errors} == set(bad.values())
            # a substitute may be bad itself, and is logged again
            assert on_error == "replace" or len(loader.errors) == len(bad)
        return [image for image, _ in pairs], [length for _, length in pairs]

    for on_error, lengths in (("skip", [4, 4, 4, 4]), ("replace", [4] * 5 + [1])):
        ours = images(on_error, **config(dataset, 4))
        assert ours[1] == lengths
        assert ours == images(on_error, num_workers=1)
        assert ours == images(on_error, num_workers=8)
    with dataset.loader(4, shuffle=True, seed=3, on_error="skip", output="numpy", **config(dataset, 4)) as loader:
        for _ in range(3):
            samples, _, errors = run(loader)
            assert errors == []
            assert samples == Counter(set(range(21)) - set(bad))
        assert [entry.epoch for entry in loader.errors] == sorted([0] * 5 + [1] * 5 + [2] * 5)


def test_error_budget(tmp_path: Path) -> None:
    keys = tuple(f"birch/{i:03d}.jpg" for i in range(5))
    dataset = training(damaged_folder(tmp_path / "train", b"text", keys))
    budgets = {"skip": ((3, True), (4, True), (5, False), (0, False)), "replace": ((4, True), (100, False), (0, False))}
    for on_error, cases in budgets.items():
        for budget, stops in cases:
            with dataset.loader(2, on_error=on_error, error_budget=budget, output="numpy") as loader:
                iterator = iter(loader)
                if stops:
                    with pytest.raises(feedline.DataError, match="error_budget") as caught:
                        list(iterator)
                    assert str(budget) in str(caught.value)
                    assert "birch/" in str(caught.value)
                else:
                    assert sum(len(batch.label) for batch in iterator) in (16, 21)


def test_all_samples_bad(tmp_path: Path) -> None:
    keys = tuple(f"{name}/{i:03d}.jpg" for name in made_data.CLASSES for i in range(7))
    dataset = training(damaged_folder(tmp_path / "train", b"text", keys))
    with dataset.loader(4, output="numpy") as loader:
        samples, _, errors = run(loader)
        assert len(errors) == 6
        assert not samples
    with dataset.loader(4, output="numpy", on_error="replace") as loader:
        samples, _, errors = run(loader)
        assert not samples
        assert errors  # nothing is left to replace with: said, not spun on


@pytest.mark.parametrize("bad", [[20], list(range(21))], ids=["the last sample", "all samples"])
def test_skip_logs_bad_samples_of_batches_that_are_cut_off(tmp_path: Path, bad: list[int]) -> None:
    keys = [f"{name}/{i:03d}.jpg" for name in made_data.CLASSES for i in range(7)]
    dataset = training(damaged_folder(tmp_path / "train", b"text", tuple(keys[i] for i in bad)))
    with dataset.loader(4, output="numpy", on_error="skip") as loader:
        samples, lengths, errors = run(loader)
        assert errors == []
        assert samples == Counter(set(range(21)) - set(bad))
        assert lengths == [4] * (len(samples) // 4)
        assert sorted(entry.record for entry in loader.errors if entry.record is not None) == bad


def test_absurd_dimensions_allocate_nothing(tmp_path: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for content in (_huge_jpeg(), _huge_png()):
        with pytest.raises(feedline.DataError, match=r"60,?000"):
            feedline.decode_image(content)
        with pytest.raises(feedline.DataError, match=r"60,?000"):
            feedline.image_info(content)
    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown_kib < 100 * 1024  # the pixels would be 10 GiB


def test_warnings_count_only_when_pixels_are_missing() -> None:
    """Junk between a JPEG's segments and bytes after its end harm no pixel."""
    quantisation = GOOD.index(b"\xff\xdb")
    junk = GOOD[:quantisation] + b"\x00\x00\x00" + GOOD[quantisation:]
    wanted = feedline.decode_image(GOOD)
    for harmless in (junk, GOOD + b"trailing", PNG + b"trailing"):
        source = PNG if harmless.startswith(b"\x89PNG") else GOOD
        np.testing.assert_array_equal(feedline.decode_image(harmless), feedline.decode_image(source))
    np.testing.assert_array_equal(feedline.decode_image(junk), wanted)


def test_a_truncated_jpeg_is_an_error_whatever_rows_are_needed() -> None:
    """Whether a file is damaged must not depend on the crop that an epoch draws."""
    data = made_data.encoded(made_data.photo(4, 64, 512), quality=90)
    for box in (None, (0, 0, 64, 100), (0, 400, 64, 500)):
        with pytest.raises(feedline.DataError, match=r"truncated JPEG: .* of 512 rows"):
            feedline.decode_image(data[: len(data) // 2], box)


# ---- files that go or cannot be read ----


def test_unreadable_file(tmp_path: Path) -> None:
    root = made_data.make_folder(tmp_path / "train")
    dataset = training(feedline.open(root))
    path = root / "birch/003.jpg"
    path.chmod(0)
    if os.access(path, os.R_OK):  # root reads everything: a link that leads nowhere is as unreadable
        path.unlink()
        path.symlink_to(root / "gone.jpg")
    with dataset.loader(4, output="numpy") as loader:
        samples, _, errors = run(loader)
    (error,) = errors
    assert isinstance(error, feedline.StorageError)
    assert error.errno
    assert error.filename == str(path)
    assert error.key == "birch/003.jpg"
    assert error.stage == "storage"
    why = f"no such file or folder: {path} [" if error.errno == errno.ENOENT else os.strerror(error.errno)
    assert why in str(error)
    assert sum(samples.values()) == 17


@pytest.mark.parametrize("on_error", ["raise", "skip", "replace"])
def test_file_deleted_during_the_epoch(tmp_path: Path, on_error: str) -> None:
    root = made_data.make_folder(tmp_path / "train")
    dataset = training(feedline.open(root))
    seen: list[int] = []
    errors = []
    options = {"memory_budget": "60 KB", "num_workers": 1}
    with dataset.loader(4, output="numpy", on_error=on_error, **options) as loader:
        iterator = iter(loader)
        next(iterator)
        seen += loader.last_samples
        (root / "crow/005.jpg").unlink()
        while True:
            try:
                next(iterator)
                seen += loader.last_samples
            except StopIteration:
                break
            except feedline.StorageError as error:
                errors.append(error)
        logged = loader.errors
    assert [bad.key for bad in logged] == ["crow/005.jpg"]
    assert logged[0].code == "storage"
    if on_error == "raise":
        assert len(errors) == 1
        assert errors[0].key == "crow/005.jpg"
        assert len(seen) == 17
    else:
        assert errors == []
        assert set(range(21)) - set(seen) == {19}
        assert len(seen) == (20 if on_error == "skip" else 21)


def test_empty_folder(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(feedline.Error, match="empty"):
        feedline.open(tmp_path / "empty")
    with pytest.raises(feedline.StorageError, match="nowhere"):
        feedline.open(tmp_path / "nowhere")
    (tmp_path / "file.txt").write_text("text")
    with pytest.raises(feedline.ConfigError, match=r"file\.txt"):
        feedline.open(tmp_path / "file.txt")


def test_class_folder_without_images(tmp_path: Path) -> None:
    root = made_data.make_folder(tmp_path / "train")
    (root / "dodo").mkdir()
    (root / "dodo" / "notes.txt").write_text("none left")
    with pytest.raises(feedline.Error, match="dodo"):
        feedline.open(root)
    found = feedline.inspect(root)
    assert [(f.code, f.severity) for f in found.findings if "dodo" in f.text] == [("class_without_images", "error")]
    assert found.samples == 21


# ---- tars ----


def tar_bytes(tmp_path: Path, folder: Path) -> bytes:
    return made_data.make_tars(folder, tmp_path / "whole")[0].read_bytes()


def _members(path: Path) -> list[tarfile.TarInfo]:
    with tarfile.open(path) as tar:
        return tar.getmembers()


def refused(path: Path) -> feedline.Error:
    """The error that open() raises, after which a second open() says the same: no index of half a shard is kept."""
    with pytest.raises(feedline.Error) as first:
        feedline.open(path)
    with pytest.raises(feedline.Error) as second:
        feedline.open(path)
    assert str(first.value) == str(second.value)
    return first.value


def test_tar_cut_inside_a_member(tmp_path: Path, folder: Path) -> None:
    whole = made_data.make_tars(folder, tmp_path / "whole")[0]
    member = _members(whole)[8]
    cut = tmp_path / "cut.tar"
    cut.write_bytes(whole.read_bytes()[: member.offset_data + member.size // 2])
    error = refused(cut)
    assert isinstance(error, feedline.DataError)
    assert error.shard == str(cut)
    assert error.stage == "format"
    assert error.offset is not None
    assert member.offset <= error.offset <= cut.stat().st_size
    assert str(error.offset) in str(error)
    assert member.name.split(".")[0] in str(error)


def test_tar_cut_at_a_member_boundary(tmp_path: Path, folder: Path) -> None:
    """No end-of-archive blocks: an error, not a short epoch."""
    whole = made_data.make_tars(folder, tmp_path / "whole")[0]
    boundary = _members(whole)[8].offset
    cut = tmp_path / "cut.tar"
    cut.write_bytes(whole.read_bytes()[:boundary])
    error = refused(cut)
    assert isinstance(error, feedline.DataError)
    assert error.shard == str(cut)
    assert error.offset == boundary
    assert any(finding.severity == "error" for finding in feedline.inspect(cut).findings)


def test_tar_that_shrinks_after_its_index_was_made(tmp_path: Path, folder: Path) -> None:
    path = made_data.make_tars(folder, tmp_path / "whole")[0]
    assert len(feedline.open(path)) == 21
    member = _members(path)[8]
    path.write_bytes(path.read_bytes()[: member.offset])
    error = refused(path)
    assert error.offset == member.offset


def test_tar_that_shrinks_while_it_is_read(tmp_path: Path, folder: Path) -> None:
    path = made_data.make_tars(folder, tmp_path / "whole")[0]
    dataset = training(feedline.open(path))
    with dataset.loader(4, output="numpy", num_workers=1, memory_budget="60 KB") as loader:
        iterator = iter(loader)
        next(iterator)
        os.truncate(path, _members(path)[12].offset)
        with pytest.raises(feedline.Error) as caught:
            for _ in range(10):
                next(iterator)
    assert str(path) in str(caught.value)


def test_two_fields_of_one_suffix(tmp_path: Path) -> None:
    path = made_data.write_tar(tmp_path / "a.tar", [("x.jpg", GOOD), ("x.cls", b"1"), ("x.jpg", GOOD)])
    error = refused(path)
    assert isinstance(error, feedline.DataError)
    assert error.key == "x"
    assert "jpg" in str(error)
    assert any(finding.key == "x" and finding.severity == "error" for finding in feedline.inspect(path).findings)


def test_members_of_one_key_that_are_not_adjacent(tmp_path: Path) -> None:
    members = [("x.jpg", GOOD), ("x.cls", b"1"), ("y.jpg", GOOD), ("y.cls", b"2"), ("x.txt", b"more")]
    path = made_data.write_tar(tmp_path / "a.tar", members)
    findings = feedline.inspect(path).findings
    assert any(f.code == "key_not_adjacent" and f.key == "x" for f in findings), findings
    members = [("x.jpg", GOOD), ("y.jpg", GOOD), ("y.cls", b"2"), ("x.cls", b"1")]
    path = made_data.write_tar(tmp_path / "b.tar", members)
    error = refused(path)
    assert error.key == "x" or "x" in str(error)


def test_member_without_a_dot(tmp_path: Path) -> None:
    members = [("README", b"about"), ("x.jpg", GOOD), ("x.cls", b"1")]
    path = made_data.write_tar(tmp_path / "a.tar", members)
    assert len(feedline.open(path)) == 1
    findings = feedline.inspect(path).findings
    assert any(f.code == "member_without_dot" and "README" in f.text for f in findings), findings


def test_label_that_is_no_number(tmp_path: Path) -> None:
    members = [(f"{i}.{end}", data) for i in range(4) for end, data in (("jpg", GOOD), ("cls", b"%d" % i))]
    members[3] = ("1.cls", b"one")
    path = made_data.write_tar(tmp_path / "a.tar", members)
    dataset = training(feedline.open(path))
    with dataset.loader(2, output="numpy", on_error="skip") as loader:
        labels = [label for batch in loader for label in batch.label.tolist()]
        (bad,) = loader.errors
    assert sorted(labels) == [0, 2, 3]
    assert (bad.key, bad.record, bad.shard) == ("1", 1, str(path))


def test_damaged_image_in_a_tar_names_shard_key_and_offset(tmp_path: Path, folder: Path) -> None:
    path = made_data.make_tars(folder, tmp_path / "whole")[0]
    member = next(m for m in _members(path) if m.name == "birch_003.jpg")
    with path.open("r+b") as file:
        file.seek(member.offset_data)
        file.write(b"text" * 100)
    dataset = training(feedline.open(path))
    with dataset.loader(4, output="numpy") as loader:
        samples, _, (error,) = run(loader)
        (bad,) = loader.errors
    assert isinstance(error, feedline.DataError)
    assert (error.shard, error.key, error.record) == (str(path), "birch_003", 10)
    assert error.offset == bad.offset
    assert error.offset in (member.offset, member.offset_data)
    for part in (str(path), "birch_003", str(error.offset), "decode"):
        assert part in str(error)
    assert sum(samples.values()) == 17


def test_gz_tar_damaged(tmp_path: Path, folder: Path) -> None:
    import gzip

    packed = gzip.compress(tar_bytes(tmp_path, folder))
    path = tmp_path / "a.tar.gz"
    path.write_bytes(packed)
    assert len(feedline.open(path, index=tmp_path / "index")) == 21
    for damage in (packed[: len(packed) // 2], packed[:5000] + bytes(50) + packed[5050:]):
        other = tmp_path / "b.tar.gz"
        other.write_bytes(damage)
        with pytest.raises(feedline.DataError, match=r"b\.tar\.gz"):
            feedline.open(other, index=tmp_path / "index")


# ---- time ----


def test_timeout(folder: Path) -> None:
    """A batch that takes longer than the timeout raises StalledError; the loader goes on afterwards."""
    slow = feedline.open(folder).resize((1500, 1500), interpolation="bicubic").color_jitter(0.5, 0.5, 0.5, 0.5)
    with slow.loader(21, output="numpy", num_workers=1, timeout=0.05) as loader:
        iterator = iter(loader)
        with pytest.raises(feedline.StalledError, match="no batch for"):
            next(iterator)
        batch = None
        while batch is None:
            with contextlib.suppress(feedline.StalledError):
                batch = next(iterator)
        assert len(batch.label) == 21


def test_errors_come_in_the_order_of_the_batches(tmp_path: Path) -> None:
    """A bad batch is raised at its turn: earlier batches come first, whatever finished first."""
    dataset = training(damaged_folder(tmp_path / "train", b"text", ("crow/000.jpg",)))
    with dataset.loader(2, output="numpy", num_workers=8) as loader:
        iterator = iter(loader)
        for _ in range(7):
            next(iterator)
        with pytest.raises(feedline.DataError, match="crow/000"):
            next(iterator)
        next(iterator)
        assert loader.last_samples == [16, 17]


def test_endless_epochs_in_which_every_sample_is_bad_end_in_an_error(tmp_path: Path) -> None:
    """Otherwise next() would go from epoch to epoch for ever."""
    (tmp_path / "a").mkdir()
    for name in ("0.jpg", "1.jpg", "2.jpg"):
        (tmp_path / "a" / name).write_bytes(b"not an image")
    dataset = feedline.open(tmp_path).resize((8, 8))
    with dataset.loader(2, on_error="skip", epochs=math.inf, output="numpy") as loader:
        with pytest.raises(feedline.Error, match=r"no batch.*epochs=math\.inf"):
            next(iter(loader))
        assert {bad.key for bad in loader.errors} == {"a/0.jpg", "a/1.jpg", "a/2.jpg"}
    with dataset.loader(2, on_error="skip", epochs=2, output="numpy") as loader:
        assert list(loader) == []
