# SPDX-License-Identifier: Apache-2.0
"""Runs one loader in this process and prints its figures as one line of JSON. `measure.py` starts it.

Every loader here runs the same epoch: random_resized_crop(224), flip, normalise, float32, batches of 64.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from typing import Any

import processes

import feedline


def feedline_loader(source: str, options: argparse.Namespace) -> Any:
    dataset = (
        feedline.open(source)
        .random_resized_crop(options.size)
        .random_horizontal_flip()
        .normalize(feedline.IMAGENET_MEAN, feedline.IMAGENET_STD)
    )
    return dataset.loader(options.batch_size, shuffle=True, drop_last=True, num_workers=options.threads)


def stock_loader(source: str, options: argparse.Namespace) -> Any:
    import torch.utils.data as data

    from feedline.bench import stock_loader as stock

    transform, options.transforms = stock.transform_of(options.size, options.transforms)
    dataset: Any = stock.FolderDataset(source, transform)
    return data.DataLoader(
        dataset,
        batch_size=options.batch_size,
        shuffle=True,
        drop_last=True,
        num_workers=options.threads,
        persistent_workers=True,
    )


def run(options: argparse.Namespace) -> dict[str, Any]:
    # imports the modules of all loaders before the bare process's memory is measured, whichever loader runs
    import numpy  # noqa: F401
    import PIL.Image
    import torch.utils.data

    from feedline.bench import stock_loader as stock

    stock.transform_of(options.size, options.transforms)

    PIL.Image.init()
    torch.set_num_threads(1)
    bare_bytes = processes.pss_bytes([os.getpid()]).total
    print(json.dumps({"bare_bytes": bare_bytes}), flush=True)

    make = stock_loader if options.kind == "stock" else feedline_loader
    loader = make(options.source, options)
    started = time.perf_counter()
    batches = iter(loader)
    next(batches)
    first_batch_s = time.perf_counter() - started
    for _ in batches:
        pass
    del batches
    print(json.dumps({"first_batch_s": first_batch_s}), flush=True)  # warm: memory is no longer sampled
    images, epochs = 0, []
    cpu = processes.cpu_s(processes.tree(os.getpid()))
    begun = time.perf_counter()
    for _ in range(options.epochs):
        started = time.perf_counter()
        for batch in loader:
            images += len(batch[1])
        epochs.append(time.perf_counter() - started)
    wall = time.perf_counter() - begun
    cpu = processes.cpu_s(processes.tree(os.getpid())) - cpu
    return {
        "kind": options.kind,
        "transforms": options.transforms if options.kind == "stock" else "feedline",
        "images": images,
        "images_per_s": images / wall,
        "cpu_s_per_1000_images": 1000 * cpu / images,
        "first_batch_s": first_batch_s,
        "epoch_s": epochs,
        "bare_bytes": bare_bytes,
        "threads": options.threads,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=["stock", "folder", "tar"])
    parser.add_argument("source")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--epochs", type=int, default=2, help="timed epochs, after one warm-up epoch")
    parser.add_argument("--transforms", choices=["any", "pillow"], default="any", help="workers of the stock loader")
    print(json.dumps(run(parser.parse_args())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
