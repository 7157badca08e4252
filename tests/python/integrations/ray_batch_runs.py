# SPDX-License-Identifier: Apache-2.0
"""The programs of test_ray_batches.py, which all use a cluster of two nodes on this machine.

`ray_batch_runs.py cluster SCRATCH` starts the cluster, prints its address, removes its second node when it reads a
line, and ends with its input. SCRATCH contains Ray's sockets, whose paths must be short. `ray_batch_runs.py NAME ...`
runs the function with that name on the cluster of RAY_ADDRESS.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any, ClassVar

import made_tokenizers

from feedline import errors, packing, tokenizing


def die_once(marker: str) -> None:
    """Kills this process, unless it or another one did before."""
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


class DiesOnce:
    """A transcoder whose process is killed at a file in the middle of the dataset."""

    def __init__(self, marker: str, size: int) -> None:
        self._marker, self._size = marker, size

    description: ClassVar = {"dies": "once"}

    def __call__(self, extension: str, content: bytes) -> tuple[str, bytes]:
        if len(content) == self._size:
            die_once(self._marker)
        return extension, content


class Waits(DiesOnce):
    """A transcoder that waits at that file until the marker is removed."""

    description: ClassVar = {"waits": True}

    def __call__(self, extension: str, content: bytes) -> tuple[str, bytes]:
        if len(content) == self._size:
            Path(self._marker).touch()
            while Path(self._marker).exists():
                signal.sigtimedwait([], 0.05)
        return extension, content


class DyingTokenizer(made_tokenizers.Words):
    """A tokenizer whose process is killed at a document."""

    marker = ""

    def encode(self, text: str) -> list[int]:
        if text.startswith("document 70 "):
            die_once(self.marker)
        return super().encode(text)


def pack(source: str, output: str, on: str, marker: str, size: str) -> None:
    """Prints the report of packing with a process that dies once; `on` is "" for a local run."""
    transcoders = [DiesOnce(marker, int(size))]
    print(packing.pack(source, output, samples_per_shard=2, transcoders=transcoders, on=on or None))


def tokenize(source: str, output: str, on: str, marker: str) -> None:
    tokenizer = DyingTokenizer()
    tokenizer.marker = marker
    print(tokenizing.tokenize(source, output, tokenizer=tokenizer, num_workers=1, on=on or None))


def pack_waiting(source: str, output: str, on: str, marker: str, size: str) -> None:
    transcoders = [Waits(marker, int(size))]
    print(packing.pack(source, output, samples_per_shard=2, transcoders=transcoders, on=on or None))


def pack_with_path(source: str, output: str, path: str) -> None:
    """Packs with workers that import other packages; prints the error."""
    import ray

    ray.init(runtime_env={"env_vars": {"PYTHONPATH": path}}, log_to_driver=False)
    try:
        packing.pack(source, output, on="ray")
    except errors.Error as error:
        print(f"{type(error).__name__}: {error}")


def cluster(scratch: str) -> None:
    os.environ["RAY_TMPDIR"] = scratch
    Path(scratch, "ray").mkdir()
    import ray
    from ray.cluster_utils import Cluster

    memory = {"object_store_memory": 80 * 2**20}
    nodes = Cluster(True, head_node_args={"num_cpus": 2, "include_dashboard": False, **memory})
    second: Any = nodes.add_node(num_cpus=2, **memory)
    nodes.wait_for_nodes()
    print(nodes.address, flush=True)
    for _ in sys.stdin:
        nodes.remove_node(second, allow_graceful=False)
        print("removed", flush=True)
    ray.shutdown()
    nodes.shutdown()


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
