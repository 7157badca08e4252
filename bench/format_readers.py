# SPDX-License-Identifier: Apache-2.0
"""Reads photos with a format's original reader in its own environment, and prints one line of JSON. Started by
formats.py. Each reader does random_resized_crop(224), flip, normalise, float32, batches of 64, shuffled.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent / "peers"))

BATCH = 64
Epoch = Callable[[], Iterable[int]]  # yields the rows of each batch


def tfdata(shards: list[str], threads: int) -> Epoch:
    """tf.data as in its guide: interleaved files, only the crop is decoded, no antialiasing."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
    import tensorflow as tf
    from adapters import tfdata as photos
    from work import MEAN, STD

    tf.config.threading.set_intra_op_parallelism_threads(1)
    mean, std = (tf.constant([255 * value for value in values]) for values in (MEAN, STD))
    features = {
        "image/encoded": tf.io.FixedLenFeature([], tf.string),
        "image/class/label": tf.io.FixedLenFeature([], tf.int64),
    }

    def prepared(record: Any) -> Any:
        sample = tf.io.parse_single_example(record, features)
        pixels = (photos._train(sample["image/encoded"], "fused") - mean) / std
        return tf.transpose(pixels, [2, 0, 1]), sample["image/class/label"]

    options = tf.data.Options()
    options.deterministic = False
    options.autotune.enabled = False
    options.threading.private_threadpool_size = threads
    options.threading.max_intra_op_parallelism = 1
    data = tf.data.TFRecordDataset(shards, num_parallel_reads=threads).shuffle(1000)
    data = data.map(prepared, num_parallel_calls=threads).batch(BATCH, drop_remainder=True)
    data = data.prefetch(2).with_options(options)
    return lambda: (len(labels) for _, labels in data)


def tfrecord(shards: list[str], threads: int) -> Epoch:
    """The `tfrecord` package's dataset with its indexes, Pillow's transforms, torch's loader: one file per worker."""
    import io
    import itertools

    import torch
    from adapters import pillow
    from PIL import Image
    from tfrecord.torch.dataset import TFRecordDataset
    from torch.utils.data import ChainDataset, DataLoader

    torch.set_num_threads(1)
    work: Any = SimpleNamespace(train=True, floating=True)

    def prepared(sample: dict[str, Any]) -> Any:
        image = Image.open(io.BytesIO(bytes(sample["image/encoded"]))).convert("RGB")
        return pillow.tensor(pillow.picture(image, work), work), int(sample["image/class/label"][0])

    description = {"image/encoded": "byte", "image/class/label": "int"}
    parts = [
        TFRecordDataset(
            shard, shard + ".tfindex", description, shuffle_queue_size=1000 // len(shards), transform=prepared
        )
        for shard in shards
    ]
    loader = DataLoader(ChainDataset(parts), BATCH, num_workers=threads, drop_last=True, persistent_workers=threads > 0)
    return lambda: (len(labels) for _, labels in itertools.chain(loader))


def hugging_face(shards: list[str], threads: int) -> Epoch:
    """`datasets`' saved folder, memory-mapped, Pillow's transforms, torch's loader, fully shuffled."""
    import datasets
    import torch
    from adapters import pillow
    from torch.utils.data import DataLoader

    torch.set_num_threads(1)
    work: Any = SimpleNamespace(train=True, floating=True)

    def prepared(batch: dict[str, Any]) -> dict[str, Any]:
        images = [pillow.tensor(pillow.picture(image.convert("RGB"), work), work) for image in batch["image"]]
        return {"image": images, "label": batch["label"]}

    data: Any = datasets.load_from_disk(shards[0]).with_transform(prepared)
    loader = DataLoader(data, BATCH, shuffle=True, num_workers=threads, drop_last=True, persistent_workers=threads > 0)
    return lambda: (len(batch["label"]) for batch in loader)


def mosaic(shards: list[str], threads: int) -> Epoch:
    """MosaicML's StreamingDataset over local MDS shards, Pillow's transforms, torch's loader."""
    import torch
    from adapters import pillow

    _stand_in_for_torchvision()
    from streaming import StreamingDataLoader, StreamingDataset

    torch.set_num_threads(1)
    work: Any = SimpleNamespace(train=True, floating=True)

    class Photos(StreamingDataset):  # type: ignore[misc]
        def __getitem__(self, index: Any) -> Any:
            sample = super().__getitem__(index)
            return pillow.tensor(pillow.picture(sample["image"].convert("RGB"), work), work), int(sample["label"])

    data = Photos(local=shards[0], shuffle=True, batch_size=BATCH)
    loader = StreamingDataLoader(
        data, batch_size=BATCH, num_workers=threads, drop_last=True, persistent_workers=threads > 0
    )
    return lambda: (len(labels) for _, labels in loader)


def _stand_in_for_torchvision() -> None:
    """Replaces torchvision, whose wheel cannot be loaded with torch's CPU build; streaming uses base classes from it
    that are not needed here.
    """
    from importlib.machinery import ModuleSpec
    from unittest import mock

    for name in ("", ".datasets", ".transforms", ".transforms.functional"):
        spec = ModuleSpec(f"torchvision{name}", None)
        sys.modules[spec.name] = mock.MagicMock(VisionDataset=object, CIFAR10=object, __spec__=spec)


def litdata(shards: list[str], threads: int) -> Epoch:
    """LitData's StreamingDataset over local chunks, Pillow's transforms, its own loader."""
    import torch
    from adapters import pillow
    from litdata import StreamingDataLoader, StreamingDataset
    from PIL import Image

    torch.set_num_threads(1)
    work: Any = SimpleNamespace(train=True, floating=True)

    def prepared(sample: dict[str, Any]) -> Any:
        image = sample["image"]
        if isinstance(image, torch.Tensor):
            image = Image.fromarray(image.permute(1, 2, 0).numpy())
        return pillow.tensor(pillow.picture(image.convert("RGB"), work), work), int(sample["label"])

    data: Any = StreamingDataset(shards[0], shuffle=True, transform=prepared)
    loader: Any = StreamingDataLoader(data, batch_size=BATCH, num_workers=threads, drop_last=True)
    return lambda: (len(labels) for _, labels in loader)


def lmdb(shards: list[str], threads: int) -> Epoch:
    """A torch Dataset over an LMDB of Caffe's Datums, opened in each worker, Pillow's transforms, torch's loader."""
    import io

    import lmdb as library
    import torch
    from adapters import pillow
    from PIL import Image
    from torch.utils.data import DataLoader, Dataset

    torch.set_num_threads(1)
    work: Any = SimpleNamespace(train=True, floating=True)

    def opened() -> Any:
        return library.open(shards[0], readonly=True, lock=False, readahead=False)

    with opened() as environment, environment.begin() as transaction:
        keys = [bytes(key) for key in transaction.cursor().iternext(keys=True, values=False)]

    class Photos(Dataset):  # type: ignore[type-arg]
        environment: Any = None

        def __len__(self) -> int:
            return len(keys)

        def __getitem__(self, index: int) -> Any:
            if self.environment is None:
                self.environment = opened()
            with self.environment.begin(buffers=True) as transaction:
                image, label = _datum(transaction.get(keys[index]))
                photo = Image.open(io.BytesIO(image)).convert("RGB")
            return pillow.tensor(pillow.picture(photo, work), work), label

    loader = DataLoader(
        Photos(), BATCH, shuffle=True, num_workers=threads, drop_last=True, persistent_workers=threads > 0
    )
    return lambda: (len(labels) for _, labels in loader)


def _datum(message: memoryview) -> tuple[bytes, int]:
    """Returns the image file and the label of Caffe's Datum, a protobuf message."""
    image, label, at = b"", 0, 0
    while at < len(message):
        tag, at = message[at], at + 1
        number = shift = 0
        while True:
            byte, at = message[at], at + 1
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        if tag & 7 == 2:
            image, at = bytes(message[at : at + number]), at + number
        elif tag >> 3 == 5:
            label = number
    return image, label


READERS = {
    "tfdata": tfdata,
    "tfrecord": tfrecord,
    "datasets": hugging_face,
    "streaming": mosaic,
    "litdata": litdata,
    "lmdb": lmdb,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reader", choices=READERS)
    parser.add_argument("shards", nargs="+")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=1, help="timed epochs, after one warm-up epoch")
    options = parser.parse_args()
    epoch = READERS[options.reader](options.shards, options.threads)
    sum(epoch())
    started, spent = time.perf_counter(), time.process_time()
    images = sum(sum(epoch()) for _ in range(options.epochs))
    found = {"images": images, "images_per_s": images / (time.perf_counter() - started)}
    if options.threads == 0:  # all work is in this process
        found["cpu_s_per_1000_images"] = 1000 * (time.process_time() - spent) / images
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
