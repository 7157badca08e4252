# SPDX-License-Identifier: Apache-2.0
"""Training scripts with one mistake each, and scripts without mistakes. They are read, but never run."""

from __future__ import annotations

from dataclasses import dataclass

_TOP = """
import torch
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms
from torchvision.datasets import ImageFolder
"""
_DATASET = """
class Photos(Dataset):
    def __init__(self, root):
        self.paths = sorted(root)
{init}
    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
{item}
        return load(self.paths[i])
"""
_MAIN = """
def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    loader = DataLoader(Photos("photos"), {arguments})
    for epoch in range({epochs}):
        for images, labels in loader:
            images, labels = images.to(device{move}), labels.to(device{move})
            step(images, labels)

if __name__ == "__main__":
    main()
"""
GOOD = "batch_size=64, num_workers=4, pin_memory=True, persistent_workers=True"


def script(
    arguments: str = GOOD,
    move: str = ", non_blocking=True",
    init: str = "",
    item: str = "",
    top: str = "",
    main: str = _MAIN,
    epochs: int = 90,
) -> str:
    """Returns a typical script with changes; `init` and `item` are statements of the dataset's methods."""
    dataset = _DATASET.format(init=" " * 8 + init if init else "", item=" " * 8 + item if item else "")
    return _TOP + top + dataset + main.format(arguments=arguments, move=move, epochs=epochs)


@dataclass(frozen=True)
class Planted:
    text: str
    line: str = ""  # the text of the line that the finding must name
    words: tuple[str, ...] = ()  # arguments of its command line
    python: tuple[int, int] = (3, 11)
    launcher: tuple[str, ...] = ("python",)


_UNGUARDED = _MAIN.replace('if __name__ == "__main__":\n    main()', "main()")
_SPAWN = ', multiprocessing_context="spawn"'
_DDP = """
import torch.distributed as dist
dist.init_process_group("nccl")
"""
_SAMPLER = _MAIN.replace(
    "    loader", '    photos = Photos("photos")\n    sampler = DistributedSampler(photos)\n    loader'
)
_BODY = """            images, labels = images.to(device{move}), labels.to(device{move})
            step(images, labels)
"""
_NEXT = """
def main():
    loader = DataLoader(Photos("photos"), {arguments})
    for step in range({epochs}):
        images, labels = next(iter(loader))
        train(images.cuda(non_blocking=True), labels{move})

if __name__ == "__main__":
    main()
"""

# the code that must be reported first, by mistake
PLANTED: dict[str, tuple[str, Planted]] = {
    "prefetching turned off": ("refused_arguments", Planted(script(GOOD + ", prefetch_factor=0"), "loader = Data")),
    "prefetching without workers": (
        "refused_arguments",
        Planted(script("batch_size=64, prefetch_factor=2, pin_memory=True"), "loader = Data"),
    ),
    "persistent without workers": (
        "refused_arguments",
        Planted(script("batch_size=64, persistent_workers=True, pin_memory=True"), "loader = Data"),
    ),
    "shuffle beside a sampler": (
        "refused_arguments",
        Planted(script(GOOD + ", shuffle=True, sampler=s"), "loader = Data"),
    ),
    "a pool in __getitem__": (
        "nested_pool",
        Planted(script(item="Pool(4).map(decode, [i])", top="from multiprocessing import Pool\n"), "Pool(4).map"),
    ),
    "an executor in a function that __getitem__ calls": (
        "nested_pool",
        Planted(
            script(
                item="parts(i)",
                top="import concurrent.futures as futures\n"
                "\ndef parts(i):\n    with futures.ProcessPoolExecutor() as p:\n"
                "        return list(p.map(abs, range(i)))\n",
            ),
            "futures.ProcessPoolExecutor()",
        ),
    ),
    "a pool in collate_fn": (
        "nested_pool",
        Planted(
            script(
                GOOD + ", collate_fn=together",
                top="import torch.multiprocessing as mp\n"
                "\ndef together(samples):\n    return mp.Pool(2).map(abs, [])\n",
            ),
            "mp.Pool(2)",
        ),
    ),
    "a loader in a worker": (
        "nested_pool",
        Planted(script(item="list(DataLoader(self.parts, num_workers=2))"), "self.parts, num_workers"),
    ),
    "the GPU in __getitem__": ("cuda_in_worker", Planted(script(item="torch.zeros(3).cuda()"), "zeros(3).cuda")),
    "a device by name": (
        "cuda_in_worker",
        Planted(script(item="torch.zeros(3, device=DEVICE)", top='DEVICE = torch.device("cuda:0")\n'), "device=DEVICE"),
    ),
    "a lambda and spawn": ("unpicklable", Planted(script(GOOD + _SPAWN + ", collate_fn=lambda x: x"), "loader = Data")),
    "transforms.Lambda and Python 3.14": (
        "unpicklable",
        Planted(script(init="self.t = transforms.Lambda(lambda x: x * 2)"), "transforms.Lambda", python=(3, 14)),
    ),
    "a local function and spawn": (
        "unpicklable",
        Planted(
            script(
                GOOD + ", collate_fn=inner",
                main=_MAIN.replace("    loader", "    def inner(x): return x\n    loader", 1),
            )
            + '\ntorch.multiprocessing.set_start_method("spawn")\n',
            "loader = Data",
        ),
    ),
    "no guard and spawn": ("main_guard", Planted(script(GOOD + _SPAWN, main=_UNGUARDED), "main()\n")),
    "no guard and Python 3.14": ("main_guard", Planted(script(main=_UNGUARDED), "main()\n", python=(3, 14))),
    "no guard": ("main_guard", Planted(script(main=_UNGUARDED), "main()\n")),
    "a connection": (
        "connection_in_dataset",
        Planted(script(init='self.db = sqlite3.connect("x.db")', top="import sqlite3\n"), "self.db ="),
    ),
    "an HDF5 file": (
        "connection_in_dataset",
        Planted(script(init='self.file = h5py.File("x.h5")', top="import h5py\n"), "self.file ="),
    ),
    "a lock and spawn": (
        "connection_in_dataset",
        Planted(script(GOOD + _SPAWN, init="self.lock = threading.Lock()", top="import threading\n"), "self.lock ="),
    ),
    "an iterator for each batch": ("iterator_in_loop", Planted(script(main=_NEXT, move=""), "next(iter")),
    "ranks and no sampler": ("ranks_read_the_same", Planted(script(top=_DDP), "loader = Data")),
    "no set_epoch": (
        "set_epoch_missing",
        Planted(
            script(
                GOOD + ", sampler=sampler",
                top=_DDP + "from torch.utils.data.distributed import DistributedSampler\n",
                main=_SAMPLER,
            ),
            "DistributedSampler(photos)",
        ),
    ),
    "page-locked, and waited for": ("pin_without_non_blocking", Planted(script(move=""), "images.to(device)")),
    "page-locked by options": (
        "pin_without_non_blocking",
        Planted(script("**options", move="", top=f"options = dict({GOOD})\n"), "images.to(device)"),
    ),
    "not waited for, and not page-locked": (
        "non_blocking_without_pin",
        Planted(script(GOOD.replace("pin_memory=True", "pin_memory=False")), "images.to(device, non"),
    ),
    "page-locked in the loop": (
        "pinned_by_hand",
        Planted(script(main=_MAIN.replace("images.to(", "images.pin_memory().to("), epochs=3), "images.pin_memory()"),
    ),
    "a request per sample": (
        "network_in_dataset",
        Planted(script(item="requests.get(self.paths[i])", top="import requests\n"), "requests.get("),
    ),
    "old amp": (
        "deprecated_amp",
        Planted(script(top="from torch.cuda.amp import GradScaler, autocast\nscaler = GradScaler()\n"), "scaler ="),
    ),
    "workers that start 90 times": (
        "workers_not_kept",
        Planted(script("batch_size=64, num_workers=4, pin_memory=True"), "for images, labels"),
    ),
    "a cache of all samples in each worker": (
        "growing_cache",
        Planted(script(init="self.cache = {}", item="self.cache[i] = load(self.paths[i])"), "self.cache[i] ="),
    ),
    "a list of all samples in each worker": (
        "growing_cache",
        Planted(script(init="self.seen: list = []", item="self.seen.append(load(self.paths[i]))"), "self.seen.append"),
    ),
    "a cache of a dataset whose methods call it this": (
        "growing_cache",
        Planted(
            script(init="self.cache = {}", item="self.cache[i] = load(self.paths[i])").replace("self", "this"),
            "this.cache[i] =",
        ),
    ),
    "functools.cache on a method": (
        "growing_cache",
        Planted(
            script(top="import functools\n").replace(
                "    def __getitem__", "    @functools.cache\n    def __getitem__"
            ),
            "def __getitem__",
        ),
    ),
    "ranks whose last batches are small": (
        "drop_last_missing",
        Planted(
            script(
                GOOD + ", sampler=sampler",
                top=_DDP + "from torch.utils.data.distributed import DistributedSampler\n",
                main=_SAMPLER.replace("        for images", "        sampler.set_epoch(epoch)\n        for images"),
            ),
            "loader = Data",
        ),
    ),
    "more workers than CPUs, by an option": (
        "oversubscribed",
        Planted(
            script(
                GOOD.replace("num_workers=4", "num_workers=args.workers"),
                top="import argparse\np = argparse.ArgumentParser()\n"
                'p.add_argument("-j", "--workers", type=int, default=4)\n'
                "args = p.parse_args()\n",
            ),
            words=("--workers", "48"),
        ),
    ),
    "five hundred batches in advance": (
        "memory_needed",
        Planted(
            script(
                GOOD.replace("64", "1024") + ", prefetch_factor=120",
                top="train = transforms.Compose([transforms.RandomResizedCrop(224), transforms.ToTensor()])\n",
            )
        ),
    ),
    "neither page-locked nor waited for": (
        "pageable_copies",
        Planted(script("batch_size=64, num_workers=4, persistent_workers=True", move=""), "images.to(device)"),
    ),
    "page-locking is timed without a copy": (
        "pin_without_copy",
        Planted(script(main=_MAIN.replace(_BODY, "            pass\n")), "for images, labels"),
    ),
    "batches are counted without a copy": (
        "pin_without_copy",
        Planted(
            script(
                main=_MAIN.replace("images, labels in loader", "i, batch in enumerate(loader)").replace(
                    _BODY, "            print(i)\n"
                )
            ),
            "for i, batch",
        ),
    ),
    "a clock read after the step": (
        "step_timed_as_loading",
        Planted(
            script(
                top="import time\n",
                main=_MAIN.replace(
                    "step(images, labels)", "step(images, labels)\n            print(time.time() - start)"
                ),
            ),
            "print(time.time() - start)",
        ),
    ),
    "a video per sample": (
        "video_in_dataset",
        Planted(script(item="video = cv2.VideoCapture(self.paths[i])", top="import cv2\n"), "video = cv2"),
    ),
    "a video by PyAV in a function": (
        "video_in_dataset",
        Planted(
            script(
                item="frames = frames_of(self.paths[i])",
                top="import av\ndef frames_of(path):\n    return list(av.open(path).decode(video=0))\n",
            ),
            "return list(av",
        ),
    ),
    "eight ranks on one GPU": (
        "ranks_without_gpu",
        Planted(script(), launcher=("torchrun", "--nproc_per_node=8")),
    ),
    "tf.data's earlier option": (
        "renamed_option",
        Planted(script(top="options.experimental_optimization.autotune = True\n"), "options.experimental"),
    ),
    "no Python": ("script_unreadable", Planted("for x in\n", "for x in")),
}

_MNIST = """
import argparse, torch
from torchvision import datasets, transforms

def train(args, model, device, train_loader, optimizer, epoch):
    for batch_idx, (data, target) in enumerate(train_loader):
        data, target = data.to(device), target.to(device)

def test(model, device, test_loader):
    for data, target in test_loader:
        data, target = data.to(device), target.to(device)

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=64)
    args = parser.parse_args()
    device = torch.device("cuda")
    train_kwargs = {"batch_size": args.batch_size}
    cuda_kwargs = {"num_workers": 1, "persistent_workers": True, "pin_memory": False, "shuffle": True}
    train_kwargs.update(cuda_kwargs)
    train_loader = torch.utils.data.DataLoader(datasets.MNIST("data"), **train_kwargs)
    test_loader = torch.utils.data.DataLoader(datasets.MNIST("data"), **cuda_kwargs)
    for epoch in range(1, 4):
        train(args, None, device, train_loader, None, epoch)
        test(None, device, test_loader)

if __name__ == "__main__":
    main()
"""
_FEEDLINE = """
import feedline
if __name__ == "__main__":
    loader = feedline.DataLoader(feedline.open("photos"), batch_size=64, num_workers="auto", device="cuda")
    for images, labels in loader:
        step(images, labels)
"""
_LIGHTNING = script(top=_DDP + "import lightning\n")
_STREAM = _MAIN.replace('DataLoader(Photos("photos"), ', 'DataLoader(Stream("photos"), ')

SOUND: dict[str, Planted] = {
    "the usual one": Planted(script()),
    "with Python 3.14": Planted(script(), python=(3, 14)),
    "few epochs": Planted(script("batch_size=64, num_workers=4, pin_memory=True", epochs=3)),
    "torch's example of MNIST": Planted(_MNIST),
    "feedline's loader": Planted(_FEEDLINE),
    "a pool of threads in __getitem__": Planted(
        script(item="ThreadPool(4).map(decode, [i])", top="from multiprocessing.pool import ThreadPool\n")
    ),
    "a pool beside the dataset": Planted(
        script(
            top="from multiprocessing import Pool\n"
            "\ndef prepare():\n    with Pool(4) as pool:\n        pool.map(abs, [1])\n"
        )
    ),
    "a lambda and fork": Planted(script(GOOD + ", collate_fn=lambda x: x")),
    "a connection that is opened later": Planted(
        script(init="self.db = None", item='self.db = self.db or sqlite3.connect("x.db")', top="import sqlite3\n")
    ),
    "a lock that is left out of the pickle": Planted(
        script(init="self.lock = Lock()", top="from threading import Lock\n").replace(
            "    def __len__", "    def __getstate__(self):\n        return {}\n\n    def __len__"
        )
    ),
    "a cache that is limited": Planted(
        script(
            init="self.cache = {}",
            item="self.cache[i] = 1; self.cache.pop(next(iter(self.cache))) if len(self.cache) > 9 else None",
        )
    ),
    "a cache with a limited size": Planted(
        script(top="import functools\n").replace(
            "    def __getitem__", "    @functools.lru_cache(maxsize=16)\n    def __getitem__"
        )
    ),
    "a dict that is filled once": Planted(script(init="self.labels = {}; self.labels[0] = 1")),
    "ranks with a sampler": Planted(
        script(
            GOOD + ", sampler=sampler, drop_last=True",
            top=_DDP + "from torch.utils.data.distributed import DistributedSampler\n",
            main=_SAMPLER.replace("        for images", "        sampler.set_epoch(epoch)\n        for images"),
        )
    ),
    "a framework that shares samples out": Planted(_LIGHTNING),
    "a framework that calls set_epoch": Planted(
        script(
            GOOD + ", sampler=sampler",
            top="import lightning\nfrom torch.utils.data.distributed import DistributedSampler\n",
            main=_SAMPLER,
        )
    ),
    "options that get more keys later": Planted(
        script(
            "prefetch_factor=2, pin_memory=True, **options",
            top='options = {"num_workers": 0, "persistent_workers": True}\noptions.update(num_workers=4)\n',
        )
    ),
    "a number of workers that is set twice": Planted(
        script(GOOD.replace("=4", "=WORKERS"), top="WORKERS = 0\nif torch.cuda.is_available():\n    WORKERS = 4\n")
    ),
    "a stream that shares samples out": Planted(
        script(top=_DDP + "\nclass Stream(torch.utils.data.IterableDataset):\n    pass\n", main=_STREAM)
    ),
    "torch.amp": Planted(script(top='scaler = torch.amp.GradScaler("cuda")\n')),
    "options that cannot be told": Planted(
        script("batch_size=64, num_workers=WORKERS, pin_memory=PIN, **more", move="")
    ),
    "a number of workers of a file": Planted(script(GOOD.replace("workers=4", "workers=int(open('workers').read())"))),
    "an iterator of its own": Planted(
        script(
            main=_NEXT.replace("    for step", "    batches = iter(loader)\n    for step").replace(
                "iter(loader))\n        t", "batches)\n        t"
            )
        )
    ),
    "types that change, and no device": Planted(
        script(
            "batch_size=64, num_workers=4, persistent_workers=True",
            main=_MAIN.replace("to(device{move})", "to(torch.float32)"),
        )
    ),
    "a script without a loader": Planted("print(1)\n"),
    "an empty one": Planted(""),
    "the wait for data is timed": Planted(
        script(
            top="import time\n",
            main=_MAIN.replace(
                "            images, labels = images",
                "            waited = time.time() - end\n            images, labels = images",
            ).replace("step(images, labels)", "step(images, labels)\n            end = time.time()"),
        )
    ),
    "as many ranks as GPUs": Planted(script(), launcher=("torchrun", "--nproc_per_node=1")),
    "ranks by the GPUs": Planted(script(), launcher=("torchrun", "--nproc_per_node=gpu")),
    "a video outside the dataset": Planted(script(top="import cv2\ndef show():\n    cv2.VideoCapture(0)\n")),
    "a batch that is a dict": Planted(
        script(
            main=_MAIN.replace("for images, labels in", "for batch in")
            .replace(
                "images, labels = images.to(device{move}), labels.to(device{move})",
                "batch = {{name: value.to(device{move}) for name, value in batch.items()}}",
            )
            .replace("step(images, labels)", "step(batch)")
        )
    ),
}
