# SPDX-License-Identifier: Apache-2.0
"""Lowered loaders with forks, copies and exits, and clean-up."""

from __future__ import annotations

import contextlib
import copy
import gc
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import stand_in_torchvision
import torch
from loader_processes import HANG_S, until
from lowered import assert_same, plan_of
from torch.utils.data import DataLoader as TorchLoader
from torch.utils.data import TensorDataset

from feedline import DataLoader


@pytest.fixture(scope="module")
def vision():
    with stand_in_torchvision.vision() as module:
        yield module


@pytest.fixture
def photos(vision, folder):
    t = vision.transforms
    return vision.datasets.ImageFolder(folder, t.Compose([t.Resize((16, 16)), t.ToTensor()]))


@pytest.fixture(params=["images", "arrays"])
def dataset(request, photos):
    """Threads read both."""
    return photos if request.param == "images" else TensorDataset(torch.rand(21, 100_000), torch.arange(21))


def threads() -> list[str]:
    """Returns the names of threads that read: the engine's (from the kernel) and Python's, without that of `feedline
    top`.
    """
    names = [thread.name for thread in threading.enumerate() if thread.name != "feedline-publish"]
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # it has ended
            names.append((task / "comm").read_text().strip())
    return sorted(name for name in names if name.startswith("feedline-"))


def wait_for_threads(before: list[str]) -> None:
    """A joined thread may need a moment to disappear."""
    until(lambda: len(threads()) <= len(before), lambda: f"only {before}, and there are {threads()}")


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_threads_go_with_the_loader(dataset):
    list(DataLoader(dataset, 21))  # torch has its own threads from here on
    gc.collect()
    before = threads()
    loader = DataLoader(dataset, 4, num_workers=2)
    iterator = iter(loader)
    next(iterator)
    assert len(threads()) > len(before)
    del loader, iterator
    gc.collect()
    wait_for_threads(before)


def test_many_epochs_that_are_broken_off_leave_nothing(dataset):
    list(DataLoader(dataset, 21))
    gc.collect()
    seen, before = [], threads()
    loader = DataLoader(dataset, 4, num_workers=2)
    for _ in range(200):
        for batch in loader:
            assert len(batch[1]) == 4
            break
        seen.append(resident_bytes())
    del loader, batch  # which keeps its threads between epochs, and may have added some
    gc.collect()
    wait_for_threads(before)
    # The heap of each new thread keeps some; a batch of each epoch would be 300 MB.
    assert min(seen[-10:]) - min(seen[10:20]) < 120 << 20


def test_a_failed_epoch_that_is_garbage_reports_nothing(photos, monkeypatch):
    said = []
    monkeypatch.setattr(sys, "unraisablehook", said.append)
    photos.samples[5] = ("missing.jpg", 0)
    for options in ({}, {"num_workers": 1}, {"num_workers": 1, "persistent_workers": True}):
        try:
            list(DataLoader(photos, 4, **options))
        except FileNotFoundError as error:
            error.cycle = error  # and with it its traceback, and the iterator
        gc.collect()
    assert said == []


@pytest.mark.parametrize("options", [{}, {"num_workers": 1}, {"num_workers": 1, "persistent_workers": True}])
def test_a_loader_that_has_iterated_can_be_copied(dataset, options):
    loader = DataLoader(dataset, 4, **options)
    whole = list(loader)
    iterator = iter(loader)
    next(iterator)
    made = [copy.copy, copy.deepcopy]
    if hasattr(sys.modules.get("torchvision"), "__version__") or isinstance(dataset, TensorDataset):
        made.append(lambda thing: pickle.loads(pickle.dumps(thing)))
    for make in made:
        assert_same(list(make(loader)), whole)
    assert_same(list(iterator), whole[1:])


def test_a_child_of_a_running_epoch_makes_its_own_loader(dataset):
    loader = DataLoader(dataset, 4, num_workers=2)
    whole = list(loader)
    iterator = iter(loader)
    first = next(iterator)
    child = os.fork()
    if not child:
        code, said = 1, []
        sys.unraisablehook = said.append
        try:
            torch.set_num_threads(1)  # torch's own threads do not outlive a fork
            own = DataLoader(dataset, 4, num_workers=1)
            assert_same(list(own), whole)
            assert_same(list(loader), whole)  # a new epoch of the inherited loader
            del iterator
            gc.collect()
            code = len(said)
        finally:
            os._exit(code)
    rest = list(iterator)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert_same([first, *rest], whole)


EXIT = """
import os, sys
import torch, stand_in_torchvision
from torch.utils.data import TensorDataset
from feedline import DataLoader
from lowered import plan_of

vision = stand_in_torchvision.vision()
t = vision.__enter__().transforms
images = sys.modules["torchvision.datasets.folder"].ImageFolder(
    sys.argv[1], t.Compose([t.Resize((64, 64)), t.ToTensor()])
)
loaders = [
    DataLoader(dataset, 2, num_workers=workers, persistent_workers=workers == 2)
    for dataset in (images, TensorDataset(torch.rand(50, 400_000)))
    for workers in (0, 1, 2)
]
assert [plan_of(loader) for loader in loaders] == ["images"] * 3 + ["arrays"] * 3
iterators = [iter(loader) for loader in loaders]
for iterator in iterators:
    next(iterator)
if sys.argv[2] == "fork":
    child = os.fork()
    if not child:
        sys.exit(0)  # with all of an exit's work, unlike multiprocessing's children
    assert os.waitpid(child, 0)[1] == 0
if sys.argv[2] == "cycle":
    iterators.append(iterators)
print("the end")
"""


@pytest.mark.parametrize("how", ["plain", "cycle", "fork"])
def test_an_exit_in_the_middle_of_an_epoch_is_quiet(folder, environment, how):
    environment["PYTHONPATH"] += os.pathsep + str(Path(__file__).parent)
    # torch warns of more workers than there are CPUs
    command = [sys.executable, "-W", "ignore:This DataLoader will create", "-c", EXIT, str(folder), how]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=HANG_S)
    assert (ended.stdout, ended.stderr, ended.returncode) == ("the end\n", "", 0)


def test_threads_may_iterate_one_loader_at_once(photos):
    loader = DataLoader(photos, 4, num_workers=1)
    assert plan_of(loader) == "images"
    expected, found = list(TorchLoader(photos, 4)), []
    workers = [threading.Thread(target=lambda: found.append(list(loader))) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert_same(found, [expected] * 4)


def test_programs_that_look_at_the_workers_find_none_and_may_shut_them_down():
    """As in PyTorch's own tests and Lightning."""
    iterator = iter(DataLoader(torch.utils.data.TensorDataset(torch.arange(10.0)), batch_size=2, num_workers=2))
    assert next(iterator)[0].tolist() == [0, 1]
    assert iterator._workers == []
    iterator._shutdown_workers()
