# SPDX-License-Identifier: Apache-2.0
"""Fixtures that the Python tests share: generated datasets, and hostile configurations with which the same tests run
again.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

pytest.importorskip("feedline", reason="the package is not installed")
pytest.importorskip("PIL", reason="Pillow, which makes the images, is not installed")

import made_cuda
import made_data
import PIL

import feedline
import feedline.testing

# pixels are compared with those of the installed Pillow, whatever its version
feedline.follow_pillow(min(13, int(PIL.__version__.split(".")[0])))

# A shell's background job ignores Ctrl-C, and all programs that the tests start would inherit this.
signal.signal(signal.SIGINT, signal.default_int_handler)

LAUNCHERS = ("RANK", "WORLD_SIZE", "SLURM_PROCID", "SLURM_NTASKS", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")


@pytest.fixture(autouse=True)
def no_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the tests run under a launcher, they must not receive only a share of the samples."""
    for name in (*LAUNCHERS, "PMI_RANK", "PMI_SIZE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """21 photos in 3 classes."""
    return made_data.make_folder(tmp_path_factory.mktemp("photos") / "train")


@pytest.fixture(scope="session")
def tars(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The same photos in three tars, in the same order."""
    return made_data.make_tars(folder, tmp_path_factory.mktemp("tars"), shards=3)


@pytest.fixture(scope="session")
def cuda_driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The simulated CUDA driver: a library that takes seconds to compile."""
    return made_cuda.build(tmp_path_factory.mktemp("cuda"))


@pytest.fixture
def gpu(cuda_driver: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[made_cuda.Gpu]:
    """GPUs of the simulated driver, which at the end must have kept all rules and have no memory left."""
    monkeypatch.setenv("FEEDLINE_CUDA_DRIVER", str(cuda_driver))
    monkeypatch.setenv("FEEDLINE_NVJPEG", str(cuda_driver))
    fake = made_cuda.Gpu(cuda_driver)
    yield fake
    gc.collect()
    fake.hold(False)
    assert fake.broken_rules == ""
    for what in ("memory", "contexts", "streams", "events", "pinned", "jpegs"):
        assert fake.count(what) == 0 or fake.was_lost, what  # the memory of a lost GPU cannot be freed


@pytest.fixture
def force() -> Iterator[Callable[..., None]]:
    """Calls `feedline.testing.force`, and undoes it after the test."""
    yield feedline.testing.force
    feedline.testing.force()


@pytest.fixture
def train(folder: Path) -> feedline.Dataset:
    """Returns the usual training operations over `folder`."""
    return training(feedline.open(folder))


def training(dataset: feedline.Dataset, size: int = 32) -> feedline.Dataset:
    return (
        dataset.random_resized_crop(size)
        .random_horizontal_flip()
        .normalize(feedline.IMAGENET_MEAN, feedline.IMAGENET_STD)
    )


Options = Callable[[feedline.Dataset, int], dict[str, Any]]


def _batch_bytes(dataset: feedline.Dataset, batch_size: int) -> int:
    """Returns the maximum size of a batch: its fields, each rounded up to the alignment of 64 bytes."""
    import numpy as np

    sizes = [np.dtype(f.dtype).itemsize * int(np.prod(f.shape)) * batch_size for f in dataset.schema.values()]
    return sum(-(-size // 64) * 64 for size in sizes)


CONFIGS: dict[str, Options] = {
    "usual": lambda dataset, batch_size: {},
    "one_thread": lambda dataset, batch_size: {"num_workers": 1},
    "tiny_queue": lambda dataset, batch_size: {"memory_budget": _batch_bytes(dataset, batch_size), "num_workers": 3},
    "two_batches": lambda dataset, batch_size: {"memory_budget": 2 * _batch_bytes(dataset, batch_size)},
}


@pytest.fixture(params=list(CONFIGS))
def config(request: pytest.FixtureRequest) -> Options:
    """Options of loader() under which everything must work: unfavourable for threads, or for memory."""
    return CONFIGS[request.param]


@pytest.fixture(scope="session")
def long_form() -> bool:
    """At least ten times as many cases: this takes minutes, which is too long for every change, but right before a
    release.
    """
    return os.environ.get("FEEDLINE_PROOFS") == "long"


@pytest.fixture
def environment() -> dict[str, str]:
    """Returns the environment for subprocesses: this environment, with the package under test."""
    paths = [str(Path(feedline.__file__).parents[1]), str(Path(__file__).parent)]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONFAULTHANDLER": "1"}


@pytest.fixture
def best_variant() -> Iterator[None]:
    """Selects the best variant again after a test that forces another one."""
    yield
    feedline.testing.force_simd_variant("")
