# SPDX-License-Identifier: Apache-2.0
"""Streaming datasets of other projects with torch's loader, with their own and with Feedline's: prints the delivered
samples as JSON.

Run by the Python that has the package: ``stream_runs.py KIND FOLDER``.
"""

from __future__ import annotations

import gc
import importlib.machinery
import json
import logging
import os
import sys
import types
from pathlib import Path
from typing import Any

SAMPLES, BATCH, TAKEN = 61, 4, 3
os.environ.setdefault("HF_HUB_OFFLINE", "1")
logging.disable(logging.WARNING)


def _without_torchvision() -> None:
    """Replaces torchvision, which MosaicML's package imports for its image datasets; the installed one may require
    another torch.
    """
    try:
        import torchvision  # noqa: F401
    except Exception:
        for name in [name for name in sys.modules if name.startswith("torchvision")]:
            del sys.modules[name]
        for name in (
            "torchvision",
            "torchvision.datasets",
            "torchvision.transforms",
            "torchvision.transforms.functional",
        ):
            module = sys.modules[name] = types.ModuleType(name)
            module.__spec__ = importlib.machinery.ModuleSpec(name, None)
        sys.modules["torchvision.datasets"].VisionDataset = sys.modules["torchvision.datasets"].CIFAR10 = object
        sys.modules["torchvision.transforms.functional"].to_tensor = None


class Mosaic:
    """MDS shards written by MosaicML's package."""

    def __init__(self, folder: Path) -> None:
        _without_torchvision()
        import streaming

        self._package, self._folder = streaming, str(folder)
        with streaming.MDSWriter(out=self._folder, columns={"id": "int"}, size_limit=400) as writer:
            for i in range(SAMPLES):
                writer.write({"id": i})

    def dataset(self) -> Any:
        gc.collect()
        self._package.base.util.clean_stale_shared_memory()
        return self._package.StreamingDataset(
            local=self._folder, shuffle=True, shuffle_seed=5, batch_size=BATCH, num_canonical_nodes=2
        )

    def own(self) -> Any:
        return self._package.StreamingDataLoader

    ids = staticmethod(lambda batch: batch["id"].tolist())


class Lit:
    """Chunks written by LitData."""

    def __init__(self, folder: Path) -> None:
        import litdata
        from litdata.streaming.writer import BinaryWriter

        self._package, self._folder = litdata, str(folder)
        folder.mkdir()
        writer = BinaryWriter(self._folder, chunk_size=9)
        for i in range(SAMPLES):
            writer.add_item(i, {"id": i})
        writer.done()
        writer.merge(1)

    def dataset(self) -> Any:
        return self._package.StreamingDataset(self._folder, shuffle=True, seed=5)

    def own(self) -> Any:
        return self._package.StreamingDataLoader

    ids = staticmethod(lambda batch: batch["id"].tolist())


class HuggingFace:
    """A table of `datasets` as an iterable with shards."""

    def __init__(self, folder: Path) -> None:
        import datasets

        self._table = datasets.Dataset.from_dict({"id": list(range(SAMPLES))})

    def dataset(self) -> Any:
        return self._table.to_iterable_dataset(num_shards=6)  # a state loses the samples in a shuffle buffer

    def own(self) -> Any:
        return None

    ids = staticmethod(lambda batch: batch["id"].tolist())


class Web:
    """Tars written by webdataset."""

    def __init__(self, folder: Path) -> None:
        import webdataset

        self._package, self._folder = webdataset, folder
        folder.mkdir()
        with webdataset.ShardWriter(f"{folder}/%03d.tar", maxcount=10, verbose=0) as writer:
            for i in range(SAMPLES):
                writer.write({"__key__": f"{i:04}", "id.txt": str(i)})

    def dataset(self) -> Any:
        urls = sorted(map(str, self._folder.glob("*.tar")))
        found = self._package.WebDataset(urls, shardshuffle=3, seed=5, detshuffle=True, empty_check=False)
        return found.compose(self._package.detshuffle(7, seed=5)).decode().to_tuple("id.txt")

    def own(self) -> Any:
        return None

    ids = staticmethod(lambda batch: [int(text) for text in batch[0]])


KINDS = {"streaming": Mosaic, "litdata": Lit, "datasets": HuggingFace, "webdataset": Web}


class Run:
    """Runs one loader class over one kind of dataset."""

    def __init__(self, kind: Any, loader_class: Any, options: dict[str, Any]) -> None:
        self._kind, self._class, self._options = kind, loader_class, options

    def loader(self) -> Any:
        import torch

        torch.manual_seed(1)
        return self._class(self._kind.dataset(), batch_size=BATCH, **self._options)

    def epochs(self, loader: Any, count: int) -> list[list[list[int]]]:
        return [[self._kind.ids(batch) for batch in loader] for _ in range(count)]

    def resumed(self, epoch: int, taken: int, workers: int | None = None) -> dict[str, Any]:
        """Returns the samples after a state that was taken after this many batches of an epoch: in the same run, and in
        a run that loads the state.
        """
        loader = self.loader()
        before = self.epochs(loader, epoch)
        batches = iter(loader)
        first = [self._kind.ids(next(batches)) for _ in range(taken)]
        state = json.loads(json.dumps(loader.state_dict()))
        going_on = [[self._kind.ids(batch) for batch in batches], *self.epochs(loader, 1)]
        del batches, loader
        if workers is not None:
            self._options = {**self._options, "num_workers": workers}
        fresh = self.loader()
        fresh.load_state_dict(state)
        return {"before": before, "first": first, "going_on": going_on, "loaded": self.epochs(fresh, 2)}

    def at_an_end(self, epochs: int) -> dict[str, Any]:
        loader = self.loader()
        self.epochs(loader, epochs)
        state = json.loads(json.dumps(loader.state_dict()))
        going_on = self.epochs(loader, 2)
        del loader
        fresh = self.loader()
        fresh.load_state_dict(state)
        return {"going_on": going_on, "loaded": self.epochs(fresh, 2)}


def runs(kind: Any) -> dict[str, Any]:
    import torch

    import feedline

    found: dict[str, Any] = {}
    for options in ({"num_workers": 0}, {"num_workers": 2}, {"num_workers": 2, "persistent_workers": True}):
        entry = found["persistent" if "persistent_workers" in options else str(options["num_workers"])] = {}
        classes = {"torch": torch.utils.data.DataLoader, "own": kind.own(), "feedline": feedline.DataLoader}
        for name, loader_class in classes.items():
            if loader_class is None:
                continue
            run = Run(kind, loader_class, options)
            entry[name] = {"epochs": run.epochs(run.loader(), 3)}
            if name == "torch":
                continue
            entry[name]["within"] = run.resumed(1, TAKEN)
            if name == "feedline":
                entry[name]["first"] = run.resumed(0, TAKEN + 1)
                entry[name]["end"] = run.at_an_end(1)
                if kind.own() is not None and options["num_workers"]:
                    entry[name]["other_workers"] = Run(kind, loader_class, options).resumed(1, TAKEN, workers=1)
    return found


if __name__ == "__main__":
    print(json.dumps(runs(KINDS[sys.argv[1]](Path(sys.argv[2])))))
