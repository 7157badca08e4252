# SPDX-License-Identifier: Apache-2.0
"""``Dataset.cache`` changes nothing but the speed; and what happens when it is full, damaged, killed or shared."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import made_data
import numpy as np
import pytest
from conftest import training
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from running_processes import HANG_S

import feedline

Batches = list[tuple[np.ndarray, ...]]


def epochs(dataset: feedline.Dataset, count: int = 2, **options: Any) -> Batches:
    """All batches of some epochs, copied."""
    options = {"batch_size": 4, "shuffle": True, "seed": 5, "output": "numpy", **options}
    with dataset.loader(**options) as loader:
        return [tuple(np.array(field) for field in batch) for _ in range(count) for batch in loader]


def assert_same(one: Batches, other: Batches) -> None:
    assert len(one) == len(other) > 0
    for a, b in zip(one, other, strict=True):
        for x, y in zip(a, b, strict=True):
            np.testing.assert_array_equal(x, y)


def copied(folder: Path, to: Path) -> Path:
    for file in sorted(folder.glob("*/*.jpg")):
        (to / file.parent.name).mkdir(parents=True, exist_ok=True)
        (to / file.parent.name / file.name).write_bytes(file.read_bytes())
    return to


@pytest.fixture(params=["memory", "file"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return "memory" if request.param == "memory" else str(tmp_path / "kept.pixels")


# ---- the same batches ----


@pytest.mark.parametrize("before", [(), ("decode",), ("resize",), ("resize", "center_crop"), ("grayscale",), ("pad",)])
def test_epochs_are_those_without_a_cache(folder: Path, where: str, before: tuple[str, ...]) -> None:
    arguments = {"decode": "RGB", "resize": 40, "center_crop": 36, "grayscale": 3, "pad": 3}
    prepared = feedline.open(folder)
    for name in before:
        prepared = getattr(prepared, name)(arguments[name])
    expected = epochs(training(prepared), 3)
    cached = training(prepared.cache(where))
    assert_same(epochs(cached, 3), expected)
    assert_same(epochs(cached, 3), expected)  # from the first sample on, this time


def test_what_resize_gives_is_what_is_kept(folder: Path, tmp_path: Path) -> None:
    """The operations behind the cache see just the uint8 pixels of those before it."""
    from PIL import Image

    small = tmp_path / "small"
    for index in range(len(feedline.open(folder))):
        key = feedline.open(folder).key(index)
        with Image.open(folder / key) as image:
            width, height = image.size
            scale = 40 / min(width, height)
            size = (40, int(40 * height / width)) if width < height else (int(40 * width / height), 40)
            assert scale < 1
            target = (small / key).with_suffix(".png")
            target.parent.mkdir(parents=True, exist_ok=True)
            image.convert("RGB").resize(size, Image.Resampling.BILINEAR).save(target)
    # the draws of operation 1 of a chain: a resize that does nothing stands for the first one
    expected = epochs(training(feedline.open(small).resize(40)))
    assert_same(epochs(training(feedline.open(folder).resize(40).cache())), expected)


def test_every_way_to_a_sample_gives_the_same(folder: Path, where: str) -> None:
    plain = training(feedline.open(folder).resize(40))
    cached = training(feedline.open(folder).resize(40).cache(where))
    for index in (3, 3, 0):
        np.testing.assert_array_equal(cached.sample(index, seed=2, epoch=1)[0], plain.sample(index, seed=2, epoch=1)[0])
        assert cached.draw(index, seed=2, epoch=1) == plain.draw(index, seed=2, epoch=1)
    assert cached.schema == plain.schema
    assert cached.fingerprint == plain.fingerprint


def test_hostile_loaders_give_the_same(folder: Path, where: str, config: Any) -> None:
    plain = training(feedline.open(folder))
    cached = training(feedline.open(folder).cache(where))
    options = config(plain, 4)
    assert_same(epochs(cached, 3, **options), epochs(plain, 3))


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(data=st.data())
def test_any_budget_changes_only_how_much_is_kept(folder: Path, data: st.DataObject) -> None:
    plain = training(feedline.open(folder).resize(24))
    budget = data.draw(st.integers(1, 400_000))
    cached = training(feedline.open(folder).resize(24).cache(budget=budget))
    with cached.loader(4, output="numpy", num_workers=data.draw(st.integers(1, 3))) as loader:
        for _ in range(2):
            for batch, expected in zip(loader, epochs(plain, 1, shuffle=False, seed=0), strict=False):
                assert len(batch[0]) == len(expected[0])
        stats = loader.stats()["cache"]
    assert stats["bytes"] <= budget
    assert stats["full"] == (stats["present"] < len(plain))
    assert_same(epochs(cached), epochs(plain))


def test_states_go_back_and_forth(folder: Path, where: str) -> None:
    plain, cached = training(feedline.open(folder)), training(feedline.open(folder).cache(where))
    options: dict[str, Any] = {"batch_size": 4, "shuffle": True, "output": "numpy"}
    whole = epochs(plain, 1, seed=0)
    for first, second in ((plain, cached), (cached, plain)):
        with first.loader(**options) as loader:
            iterator = iter(loader)
            start = [tuple(np.array(field) for field in next(iterator)) for _ in range(2)]
            state = loader.state_dict()
        with second.loader(**options) as loader:
            loader.load_state_dict(state)
            rest = [tuple(np.array(field) for field in batch) for batch in loader]
        assert_same(start + rest, whole)


# ---- what it says ----


def test_reports_what_it_keeps(folder: Path, where: str) -> None:
    cached = training(feedline.open(folder).resize(40).cache(where, budget="8 MiB"))
    assert "cache(" in repr(cached)
    with cached.loader(4, output="numpy") as loader:
        assert f"0 of {len(cached)} samples cached" in loader.explain()
        list(loader)
        stats = loader.stats()["cache"]
        assert stats["present"] == stats["samples"] == len(cached)
        assert not stats["full"]
        lines = loader.explain().splitlines()
        list(loader)
        # of two threads that come for a sample at once, at the border of epochs, both decode it
        assert len(cached) <= loader.stats()["stages"]["decode"]["items"] < 1.5 * len(cached)
    order = [
        next(i for i, line in enumerate(lines) if text in line) for text in ("resize(40)", "cache in", "resized_cr")
    ]
    assert order == sorted(order)
    assert epochs(training(feedline.open(folder)), 1)
    with training(feedline.open(folder)).loader(4, output="numpy") as loader:
        assert loader.stats()["cache"] is None


def test_reports_when_it_is_full(folder: Path) -> None:
    cached = training(feedline.open(folder).cache(budget=250_000))
    with cached.loader(4, output="numpy") as loader:
        list(loader)
        assert 0 < loader.stats()["cache"]["present"] < len(cached)
        assert "it is full" in loader.explain()


MISTAKES = {
    "random_resized_crop after cache": lambda d: d.random_resized_crop(8).cache(),
    "random_horizontal_flip after cache": lambda d: d.random_horizontal_flip().cache(),
    "normalize after cache": lambda d: d.normalize([0.5] * 3, [0.5] * 3).cache(),
    "to_dtype after cache": lambda d: d.to_dtype("float32").cache(),
    "this dataset already has a cache": lambda d: d.cache().resize(9).cache(),
    "decode: must be the first": lambda d: d.cache().decode("L"),
    'must be "memory", "device" or': lambda d: d.cache(3),
    "budget must be": lambda d: d.cache(budget=0),
    "a cache; cache the mixture": lambda d: feedline.mix([d.cache(), d.cache()]),
}


@pytest.mark.parametrize("message", MISTAKES)
def test_mistakes_are_named_at_once(folder: Path, message: str) -> None:
    with pytest.raises(feedline.ConfigError, match=re.escape(message)):
        MISTAKES[message](feedline.open(folder))


def test_arrays_and_tokens_are_in_memory_already(tmp_path: Path) -> None:
    np.arange(100, dtype=np.uint16).tofile(tmp_path / "t.bin")
    tokens = feedline.tokens(tmp_path / "t.bin", window=8, dtype="uint16")
    for dataset in (feedline.arrays(x=np.zeros((4, 3))), tokens):
        with pytest.raises(feedline.ConfigError, match="in memory or mapped already"):
            dataset.cache()


# ---- files ----


def test_a_finished_file_needs_no_photos(folder: Path, tmp_path: Path) -> None:
    photos, path = copied(folder, tmp_path / "photos"), tmp_path / "kept.pixels"
    expected = epochs(training(feedline.open(photos).cache(path)))
    assert path.exists()
    for file in photos.glob("*/*.jpg"):
        file.write_bytes(b"")  # still listed
    assert_same(epochs(training(feedline.open(photos).cache(path))), expected)


def test_a_file_is_a_dataset(folder: Path, tmp_path: Path) -> None:
    photos = feedline.open(folder)
    reported: list[int] = []
    (tmp_path / "sub").mkdir()
    packed = feedline.pack_pixels(photos.resize(40), tmp_path / "sub" / "small.pixels", progress=reported.append)
    assert reported[-1] == len(photos)
    assert (len(packed), packed.format, packed.classes) == (len(photos), "pixels", photos.classes)
    assert [packed.key(i) for i in range(len(packed))] == [photos.key(i) for i in range(len(photos))]
    assert packed.fingerprint != photos.fingerprint
    # operation 0 there is operation 1 here: nothing random, so nothing else differs
    assert_same(epochs(packed.center_crop(32)), epochs(photos.resize(40).center_crop(32)))
    grey = feedline.pack_pixels(photos.decode("L"), tmp_path / "grey.pixels")
    assert_same(epochs(grey.decode("L").center_crop(32)), epochs(photos.decode("L").center_crop(32)))
    assert_same(epochs(grey.center_crop(32)), epochs(photos.grayscale(3).center_crop(32)))
    assert_same(epochs(packed.decode("L").center_crop(32)), epochs(photos.resize(40).grayscale().center_crop(32)))
    found = feedline.inspect(tmp_path / "sub" / "small.pixels")
    assert (found.format, found.samples, len(found.findings)) == ("pixels", len(photos), 0)
    with pytest.raises(feedline.ConfigError, match="stored as pixels"):
        packed.encoded(0)
    again: list[int] = []
    feedline.pack_pixels(photos.resize(40), tmp_path / "sub" / "small.pixels", progress=again.append)
    assert again == []  # it is there


def test_other_pixels_are_not_taken_for_these(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "kept.pixels"
    photos = copied(folder, tmp_path / "photos")
    epochs(training(feedline.open(photos).resize(40).cache(path)), 1)
    with pytest.raises(feedline.ConfigError, match=r"resize\(40\).*resize\(41\).*delete it"):
        epochs(training(feedline.open(photos).resize(41).cache(path)), 1)
    (photos / "apple" / "new.jpg").write_bytes(made_data.encoded(made_data.photo(99, 60, 50)))
    with pytest.raises(feedline.ConfigError, match="samples have changed"):
        epochs(training(feedline.open(photos).resize(40).cache(path)), 1)


def test_pixels_in_memory_are_not_taken_for_others(folder: Path, tmp_path: Path) -> None:
    photos = copied(folder, tmp_path / "photos")
    first = training(feedline.open(photos).resize(40).cache())
    epochs(first, 1)
    assert_same(
        epochs(training(feedline.open(photos).resize(41).cache())), epochs(training(feedline.open(photos).resize(41)))
    )
    (photos / "apple" / "new.jpg").write_bytes(made_data.encoded(made_data.photo(99, 60, 50)))
    changed = training(feedline.open(photos).resize(40))
    assert_same(epochs(training(feedline.open(photos).resize(40).cache())), epochs(changed))
    del first


def test_another_folder_with_the_same_names_is_another_dataset(
    folder: Path, tmp_path: Path, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = copied(folder, tmp_path / "other")
    for seed, file in enumerate(sorted(other.glob("*/*.jpg"))):
        file.write_bytes(made_data.encoded(made_data.photo(500 + seed, 60, 50)))
    filled = training(feedline.open(folder).cache(where))
    expected = epochs(filled, 1)
    assert feedline.open(other).fingerprint == feedline.open(folder).fingerprint  # which is of the names
    changed = training(feedline.open(other).cache(where))
    if where == "memory":
        assert_same(epochs(changed, 1), epochs(training(feedline.open(other)), 1))
    else:
        with pytest.raises(feedline.ConfigError, match=r"would be from .*other"):
            epochs(changed, 1)
    monkeypatch.chdir(folder.parent)  # the same folder, written otherwise
    again = training(feedline.open(f"./{folder.name}/").cache(where))
    with again.loader(4, output="numpy") as loader:
        assert loader.stats()["cache"]["present"] == len(filled)
    assert_same(epochs(again, 1), expected)


def test_a_damaged_byte_is_reported_like_damaged_data(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "kept.pixels"
    epochs(training(feedline.open(folder).cache(path)), 1)
    offset = len(path.read_bytes()) - 5000  # in the pixels of the last record
    with path.open("r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 1]))
    cached = training(feedline.open(folder).cache(path))
    with pytest.raises(feedline.DataError, match="checksum of a record") as raised:
        epochs(cached, 1)
    assert raised.value.shard == str(path)
    assert raised.value.offset is not None and raised.value.offset <= offset
    with cached.loader(4, output="numpy", on_error="skip") as loader:
        assert sum(len(batch[0]) for batch in loader) == len(cached) - 1
        assert [bad.key for bad in loader.errors] == [raised.value.key]
    assert [finding.code for finding in feedline.inspect(path).findings] == ["damaged_record"]


@pytest.mark.parametrize("on_error", ["skip", "replace"])
def test_a_damaged_photo_is_what_it_is_without_a_cache(folder: Path, tmp_path: Path, where: str, on_error: str) -> None:
    photos = copied(folder, tmp_path / "photos")
    (photos / "birch" / "003.jpg").write_bytes(b"\xff\xd8\xff nothing")
    plain = training(feedline.open(photos))
    cached = training(feedline.open(photos).cache(where))
    expected = epochs(plain, 2, on_error=on_error)
    assert_same(epochs(cached, 2, on_error=on_error), expected)
    with pytest.raises(feedline.DataError) as raised:
        epochs(cached, 1)
    assert raised.value.key == "birch/003.jpg"
    if where != "memory":
        assert not Path(where).exists()
        assert Path(where + ".filling").exists()
        with pytest.raises(feedline.ConfigError, match="not finished"):
            feedline.open(where + ".filling")


FILL = """
    import sys, feedline
    source, path = sys.argv[1:]
    dataset = feedline.open(source).cache(path).random_resized_crop(32)
    print("begun", flush=True)
    with dataset.loader(1, output="numpy", shuffle=True) as loader:
        for batch in loader:
            print(loader.stats()["cache"]["present"], flush=True)
"""


def start(environment: dict[str, str], program: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)]
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("samples", [1, 9])
def test_killed_while_filling(folder: Path, tmp_path: Path, environment: dict[str, str], samples: int) -> None:
    path = tmp_path / "kept.pixels"
    with start(environment, FILL, folder, path) as child:
        assert child.stdout is not None
        for line in child.stdout:
            if line.strip().isdigit() and int(line) >= samples:
                child.send_signal(signal.SIGKILL)
                break
    dataset = feedline.open(folder).cache(path).random_resized_crop(32)
    with dataset.loader(4, output="numpy") as loader:
        assert loader.stats()["cache"]["present"] >= samples
    assert_same(epochs(dataset), epochs(feedline.open(folder).random_resized_crop(32)))
    assert path.exists()
    assert os.listdir(tmp_path) == ["kept.pixels"]


def test_a_full_disk_ends_the_run_whatever_is_done_about_bad_samples(
    folder: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    program = """
        import resource, signal, sys, feedline
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a limit of the process stands for the end of the disk
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
        dataset = feedline.open(sys.argv[1]).cache(sys.argv[2]).random_resized_crop(32)
        try:
            with dataset.loader(4, output="numpy", on_error="skip") as loader:
                list(loader)
        except feedline.StorageError as error:
            print(error)
    """
    with start(environment, program, folder, tmp_path / "kept.pixels") as child:
        said, _ = child.communicate(timeout=HANG_S)
    assert "the cache cannot store more pixels" in said
    assert "kept.pixels.filling" in said


# ---- one copy ----


def pixel_memory(pid: int) -> dict[int, int]:
    """Inode to bytes of the pixel memory that a process has open; the bytes are counted once per inode."""
    found = {}
    for link in Path(f"/proc/{pid}/fd").iterdir():
        try:
            if "memfd:feedline-pixels" in os.readlink(link):
                status = link.stat()
                found[status.st_ino] = status.st_blocks * 512
        except FileNotFoundError:
            continue
    return found


def test_a_limit_of_address_space_is_named(folder: Path, tmp_path: Path, environment: dict[str, str]) -> None:
    program = """
        import resource, sys, feedline
        resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
        train = feedline.open(sys.argv[1]).resize((8, 8))
        try:
            train.cache(sys.argv[2], budget=1 << 40).loader(1, num_workers=1, output="numpy")
        except feedline.StorageError as error:
            print(error)
        with train.cache(sys.argv[2], budget=1 << 20).loader(1, num_workers=1, output="numpy") as loader:
            print(sum(1 for _ in loader))
    """
    command = [sys.executable, "-c", textwrap.dedent(program), str(folder), str(tmp_path / "pixels")]
    environment |= {"OPENBLAS_NUM_THREADS": "1"}  # each thread reserves address space
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=HANG_S, check=False)
    assert "(ulimit -v), or pass a smaller budget: Cannot allocate memory" in done.stdout, done.stderr
    assert done.stdout.splitlines()[-1] == "21", done.stderr


def test_a_smaller_budget_under_a_limit_of_address_space_removes_no_record(
    folder: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    program = """
        import resource, sys, feedline
        if sys.argv[3] != "0":
            resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
        train = feedline.open(sys.argv[1]).resize((64, 64)).cache(sys.argv[2], budget=int(sys.argv[3]) or None)
        with train.loader(1, num_workers=1, output="numpy", rank=0, world_size=2) as loader:
            assert sum(1 for _ in loader) == 11
    """
    environment |= {"OPENBLAS_NUM_THREADS": "1"}  # each thread reserves address space

    def run(budget: int) -> bytes:
        command = [sys.executable, "-c", textwrap.dedent(program), str(folder), str(tmp_path / "pixels"), str(budget)]
        subprocess.run(command, env=environment, timeout=HANG_S, check=True)
        (made,) = (path for path in tmp_path.glob("pixels*") if path.stat().st_size > 0)
        return made.read_bytes()

    whole = run(0)
    for cut in (1000, 20_000, 60_000):  # within the records of 64 x 64 pixels
        assert run(len(whole) - cut) == whole


def test_ranks_share_one_copy_and_it_goes_with_them(folder: Path, tmp_path: Path, environment: dict[str, str]) -> None:
    program = """
        import sys, feedline
        dataset = feedline.open(sys.argv[1]).cache("memory").random_resized_crop(32)
        with dataset.loader(1, output="numpy", rank=int(sys.argv[2]), world_size=2, uneven="exact") as loader:
            for _ in range(2):
                print(sum(batch[0].sum(dtype="int64") for batch in loader), flush=True)
                sys.stdin.readline()
            print(loader.stats()["cache"]["present"], loader.stats()["stages"]["decode"]["items"], flush=True)
            sys.stdin.readline()
    """
    photos = copied(folder, tmp_path / "photos")  # of this test alone: nobody else shares them
    ranks = [start(environment, program, photos, rank) for rank in range(2)]

    def ask() -> list[str]:
        return [rank.stdout.readline().strip() for rank in ranks if rank.stdout is not None]

    def go_on() -> None:
        for rank in ranks:
            assert rank.stdin is not None
            rank.stdin.write("\n")
            rank.stdin.flush()

    ask()
    go_on()
    ask()
    go_on()
    counts = [tuple(map(int, line.split())) for line in ask()]
    total = len(feedline.open(photos))
    assert [present for present, _ in counts] == [total, total]  # what both have kept
    assert sum(decoded for _, decoded in counts) <= total + 1  # each sample by one of them, but for those both began
    held = [pixel_memory(rank.pid) for rank in ranks]
    assert held[0] == held[1]
    assert len(held[0]) == 1
    pixels = sum(made_data.photo(s, 60 + 7 * (s % 5), 50 + 5 * (s % 7)).nbytes for s in range(total))
    (bytes_held,) = held[0].values()
    assert pixels <= bytes_held <= pixels + (512 << 10)  # one copy, and the head and index
    ranks[0].kill()
    ranks[0].wait()
    go_on_alone = ranks[1]
    assert pixel_memory(go_on_alone.pid) == held[1]
    go_on_alone.kill()
    go_on_alone.wait()
    for rank in ranks:
        rank.__exit__(None, None, None)
    with feedline.open(photos).cache().random_resized_crop(32).loader(1, output="numpy") as loader:
        assert loader.stats()["cache"]["present"] == 0  # nothing is left of it


def test_memory_is_freed_with_the_last_that_uses_it(folder: Path, tmp_path: Path) -> None:
    photos = copied(folder, tmp_path / "photos")
    before = pixel_memory(os.getpid()).keys()  # of other tests, as long as nobody has collected it
    base = feedline.open(photos).cache()
    first = base.random_resized_crop(32)
    epochs(first, 1)
    with base.center_crop(32).loader(4, output="numpy") as loader:  # made from the same cache
        assert loader.stats()["cache"]["present"] == len(base)
    made = pixel_memory(os.getpid()).keys() - before
    assert len(made) == 1
    del base, first, loader
    deadline = time.monotonic() + HANG_S
    while made & pixel_memory(os.getpid()).keys() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not made & pixel_memory(os.getpid()).keys()
