# SPDX-License-Identifier: Apache-2.0
"""For every format, thousands of damaged files result in an error with its location and, if there are checksums, in no
wrong value.
"""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
from damaged_formats import CASES, COUNT, DAMAGES, Case, values_of

import feedline

CORRUPTIONS, LONG_CORRUPTIONS = 200, 10_000
_MOST_BAD = 2  # number of files per turn: for each, a compressed shard is decompressed again
_SWEPT = 100  # number of turns between two deletions of decompressed copies


def assert_at_open(error: Exception, path: Path, turn: int) -> None:
    """An error of open() or of inspecting a shard must name the file."""
    named = str(error) + str(getattr(error, "shard", ""))
    folders = [folder for folder in path.parents if folder.name]
    assert any(str(one) in named for one in (path, *folders[:3])), (turn, error)


def read_all(case: Case, path: Path, whole: list[object], is_protected: bool, turn: int) -> tuple[int, int, int]:
    """Returns how often open() failed, a sample failed, and a sample was delivered."""
    try:
        dataset = case.open()
    except feedline.Error as error:
        assert isinstance(error, (feedline.DataError, feedline.ConfigError, feedline.StorageError)), turn
        assert_at_open(error, path, turn)
        return 1, 0, 0
    bad = right = 0
    for i in range(min(len(dataset), 2 * COUNT)):
        if bad == _MOST_BAD:
            break
        try:
            values = values_of(dataset, i)
        except (feedline.DataError, feedline.StorageError, feedline.ConfigError) as error:
            # a ConfigError: unsupported data, such as the encoding of a page, which the damage may have created
            assert error.record == i, (turn, error)
            assert error.shard, (turn, error)
            bad += 1
        else:
            right += 1
            assert not is_protected or values in whole, (turn, i)
    return 0, bad, right


@pytest.mark.parametrize("name", CASES)
def test_corruptions_are_errors_or_nothing(
    tmp_path: Path,
    name: str,
    long_form: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    cache = tmp_path / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    root = tmp_path / "set"
    root.mkdir()
    case = CASES[name](root)
    dataset = case.open()
    whole: list[object] = [values_of(dataset, i) for i in range(len(dataset))]
    assert len(whole) >= COUNT - 3
    originals = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    draw, damaged, counts = random.Random(name), 0, [0, 0, 0]
    for turn in range(LONG_CORRUPTIONS if long_form else CORRUPTIONS):
        path = draw.choice(case.files)
        data = bytearray(originals[path])
        DAMAGES[turn % len(DAMAGES)](data, draw)
        if data == originals[path]:
            continue
        damaged += 1
        path.write_bytes(data)
        found = read_all(case, path, whole, case.protects(originals[path], bytes(data)), turn)
        counts = [count + one for count, one in zip(counts, found, strict=True)]
        path.write_bytes(originals[path])
        for left in root.rglob("*"):
            if left.is_file() and left not in originals:
                left.unlink()  # a cached index
        if turn % _SWEPT == 0:
            shutil.rmtree(cache, ignore_errors=True)
    if long_form:
        with capsys.disabled():
            print(f"\n{name}: {damaged} damaged files, {counts[0]} refused at opening; of the others' samples", end=" ")
            print(f"{counts[1]} refused, {counts[2]} read")
    assert counts[0] + counts[1] >= (CORRUPTIONS // 10), counts
