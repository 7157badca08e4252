# SPDX-License-Identifier: Apache-2.0
"""Clips of remote videos are the same as those of local ones, and their bytes are fetched ahead."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import made_videos
import numpy
import pytest
from range_server import RangeServer, serving

import feedline
from feedline import DataError

VIDEOS = 6
WORKERS = 2


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made_videos.skip_without_ffmpeg()
    root = tmp_path_factory.mktemp("videos")
    for i in range(VIDEOS):
        made_videos.make(root / f"{i}.mp4", frames=120, rate=10 + i)
    return root


@pytest.fixture
def server(folder: Path) -> Iterator[RangeServer]:
    with serving(folder) as server:
        yield server


def clips(
    sources: list[str], epochs: int = 2, stop_after: int | None = None, explained: list[str] | None = None
) -> list[list[Any]]:
    dataset = feedline.open(sources).clip(frames=8, every=4).center_crop(32)
    with dataset.loader(2, shuffle=True, seed=5, num_workers=WORKERS, output="numpy") as loader:
        if stop_after is not None:
            for _, _ in zip(range(stop_after), loader, strict=False):
                pass
        found = [[batch.video.copy() for batch in loader] for _ in range(epochs)]
        if explained is not None:
            explained.append(loader.explain())
        return found


def same(found: list[list[Any]], expected: list[list[Any]]) -> bool:
    batches = [[batch for epoch in epochs for batch in epoch] for epochs in (found, expected)]
    return all(numpy.array_equal(*pair) for pair in zip(*batches, strict=True))


def most_at_once(server: RangeServer) -> list[int]:
    """Delays each response, and counts the requests that are answered at the same time."""
    active, most, lock = [0], [0], threading.Lock()

    def delay(number: int, path: str) -> str:
        with lock:
            active[0] += 1
            most[0] = max(most[0], active[0])
        time.sleep(0.02)
        with lock:
            active[0] -= 1
        return ""

    server.fault = delay
    return most


@pytest.mark.parametrize("mode", ["auto", "never"])
def test_clips_equal_local_ones_and_are_fetched_ahead(folder: Path, server: RangeServer, force: Any, mode: str) -> None:
    names = [f"{i}.mp4" for i in range(VIDEOS)] * 3
    expected = clips([str(folder / name) for name in names])
    force(read_ahead=mode)
    most = most_at_once(server)
    explained: list[str] = []
    assert same(clips([server.url(name) for name in names], explained=explained), expected)
    assert most[0] > 3 * WORKERS if mode == "auto" else most[0] <= 2 * WORKERS
    assert ("fetched ahead" in explained[0]) == (mode == "auto")


def test_only_the_bytes_of_clips_are_fetched(folder: Path, server: RangeServer) -> None:
    dataset = feedline.open([server.url(f"{i}.mp4") for i in range(VIDEOS)] * 4).clip(frames=8, every=4)
    dataset = dataset.center_crop(32)

    def used() -> int:
        with dataset.loader(2, num_workers=WORKERS, epochs=1, output="numpy") as loader:
            assert len(list(loader)) == VIDEOS * 2
            return int(loader.stats()["video"]["bytes_used"])

    used()  # reads the indexes
    server.requests.clear()
    by_clips = used()
    ranges = [given.removeprefix("bytes=").split("-") for _, given in server.requests if given]
    opening = [one for one in ranges if one == ["0", "4095"]]  # has the object's size and version
    assert len(opening) <= VIDEOS * 4
    fetched = sum(int(last) + 1 - int(first) for first, last in ranges) - len(opening) * 4096
    assert 0 < fetched <= 1.1 * by_clips


def test_a_restarted_epoch_has_the_same_clips(folder: Path, server: RangeServer) -> None:
    names = [f"{i}.mp4" for i in range(VIDEOS)] * 2
    expected = clips([str(folder / name) for name in names], 1, stop_after=2)
    assert same(clips([server.url(name) for name in names], 1, stop_after=2), expected)


def test_damage_that_was_fetched_ahead_is_named(folder: Path, server: RangeServer) -> None:
    (folder / "damaged.mp4").write_bytes(b"not a video" * 1000)
    sources = [server.url(name) for name in ("0.mp4", "1.mp4", "damaged.mp4", "2.mp4")]
    dataset = feedline.open(sources).clip(frames=8, every=4).center_crop(32)
    with pytest.raises(DataError, match=r"damaged\.mp4"), dataset.loader(1, output="numpy") as loader:
        for _ in loader:
            pass
    with dataset.loader(1, on_error="skip", output="numpy") as loader:
        assert len(list(loader)) == 3
    (folder / "damaged.mp4").unlink()


def test_sound_of_clips_is_fetched_ahead(tmp_path: Path) -> None:
    made_videos.skip_without_ffmpeg()
    for i in range(3):
        made_videos.run(
            *("-f", "lavfi", "-i", f"testsrc2=size=160x120:rate=25:duration={8 + i}"),
            *("-f", "lavfi", "-i", f"aevalsrc='0.4*sin(2*PI*(300+90*t)*t)':s=44100:d={8 + i}"),
            *("-c:v", "libx264", "-g", "12", "-pix_fmt", "yuv420p", "-c:a", "aac", str(tmp_path / f"{i}.mp4")),
        )

    def open_clips(sources: list[str]) -> Any:
        return feedline.open(sources * 6).clip(frames=16, every=2, audio=True).center_crop(32)

    def batches(dataset: Any) -> list[Any]:
        with dataset.loader(2, shuffle=True, seed=5, num_workers=WORKERS, epochs=1, output="numpy") as loader:
            return [(batch.video.copy(), batch.audio.copy()) for batch in loader]

    expected = batches(open_clips([str(tmp_path / f"{i}.mp4") for i in range(3)]))
    with serving(tmp_path) as server:
        dataset = open_clips([server.url(f"{i}.mp4") for i in range(3)])
        batches(dataset)  # reads the indexes
        server.requests.clear()
        most = most_at_once(server)
        found = batches(dataset)
        assert most[0] > 3 * WORKERS
        # frames and sound are read together: one range for each of the 18 clips, and over four for those that the
        # decoding threads read before the others are ahead
        ranges = [given for _, given in server.requests if given and given != "bytes=0-4095"]
        assert len(ranges) <= 18 * 3
    for one, other in zip(found, expected, strict=True):
        numpy.testing.assert_array_equal(one[0], other[0])
        numpy.testing.assert_array_equal(one[1], other[1])
