# SPDX-License-Identifier: Apache-2.0
"""A run on two nodes that loses one and continues with the other delivers the samples of an undisturbed run."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import made_data
import pytest
from made_nodes import Node, cluster

RANKS_PER_NODE, HANG_S = 2, 300
SERVE = "import sys; from pathlib import Path; from range_server import RangeServer; "
SERVE += "RangeServer(Path(sys.argv[1]), (sys.argv[2], int(sys.argv[3]))).serve_forever()"
PORT = 8080

Place = tuple[int, int]  # epoch, and position in the epoch after the batch
Step = list[tuple[int, str]]  # indices of a global batch's samples, and digests of their data, sorted


def namespaces() -> bool:
    if os.geteuid() != 0:
        return False
    try:
        return subprocess.run(["unshare", "--net", "ip", "link"], capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


def torchrun(nodes: list[Node], folder: Path, urls: list[str], environment: dict[str, str]) -> list[Any]:
    import two_nodes_run

    runs = []
    for index, node in enumerate(nodes):
        words = [f"--nnodes={len(nodes)}", f"--nproc_per_node={RANKS_PER_NODE}", f"--node_rank={index}"]
        words += [f"--master_addr={nodes[0].address}", "--master_port=29500", two_nodes_run.__file__, str(folder)]
        command = [sys.executable, "-m", "torch.distributed.run", *words, *urls]
        variables = {**environment, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "net0"}
        runs.append(node.start(*command, log=str(folder / f"torchrun.{index}.log"), environment=variables))
    return runs


def steps_of(folder: Path, run: int) -> dict[Place, Step]:
    """Returns what a run's ranks logged; a step whose line was cut off has fewer samples."""
    together: dict[Place, Step] = {}
    for path in folder.glob(f"samples.{run}.*.jsonl"):
        text = path.read_text()
        for line in map(json.loads, text[: text.rfind("\n") + 1].splitlines()):
            position = (line["state"]["epoch"], line["state"]["position"])
            samples = list(zip(line["samples"], line["digests"], strict=True))
            together[position] = sorted(together.get(position, []) + samples)
    return together


def undisturbed(urls: list[str]) -> dict[Place, Step]:
    """Returns the plan, read only by this process."""
    import two_nodes_run

    steps: dict[Place, Step] = {}
    loader = two_nodes_run.photos(urls).loader(
        two_nodes_run.GLOBAL_BATCH, shuffle=True, seed=two_nodes_run.SEED, output="numpy", rank=0, world_size=1
    )
    with loader:
        while loader.epoch < two_nodes_run.EPOCHS:
            for batch in loader:
                state = loader.state_dict()
                samples = list(zip(loader.last_samples, two_nodes_run.digests(batch), strict=True))
                steps[state["epoch"], state["position"]] = sorted(samples)
    return steps


def lose_in_the_middle(nodes: list[Node], folder: Path, runs: list[Any], steps: int) -> None:
    """The second node is lost when its first rank reaches this step; the first node notices this, and exits by
    itself.
    """
    log, deadline = folder / f"samples.0.{RANKS_PER_NODE}.jsonl", time.monotonic() + HANG_S
    while not log.exists() or log.read_bytes().count(b"\n") < steps:
        assert time.monotonic() < deadline and runs[1].poll() is None, (folder / "torchrun.1.log").read_text()[-4000:]
        time.sleep(0.005)
    nodes[1].lose()
    assert runs[1].wait(HANG_S) != 0
    assert runs[0].wait(HANG_S) != 0, "the first node did not notice"


@pytest.mark.skipif(not namespaces(), reason="making network namespaces takes root and iproute2")
def test_one_node_continues_where_two_were(tmp_path: Path, environment: dict[str, str], long_form: bool) -> None:
    pytest.importorskip("torch", reason="torchrun starts the ranks")
    if not long_form:
        pytest.skip("a minute of ranks that wait for each other: tools/test --proofs")
    import two_nodes_run

    shards = made_data.make_tars(
        made_data.make_folder(tmp_path / "photos", two_nodes_run.PHOTOS // 3), tmp_path / "shards", shards=8
    )
    folder = tmp_path / "run"
    folder.mkdir()
    with cluster(3) as (store, *nodes):
        urls = [f"http://{store.address}:{PORT}/{path.name}" for path in shards]
        serve = [sys.executable, "-c", SERVE, str(tmp_path / "shards"), store.address, str(PORT)]
        store.start(*serve, log=str(tmp_path / "store.log"), environment=environment)
        runs = torchrun(nodes, folder, urls, environment)
        lose_in_the_middle(nodes, folder, runs, random.Random(os.getpid()).randrange(10, 80))
        (alone,) = torchrun(nodes[:1], folder, urls, environment)
        assert alone.wait(HANG_S) == 0, (folder / "torchrun.0.log").read_text()[-4000:]
    before, after = steps_of(folder, 0), steps_of(folder, 1)
    assert len(list(folder.glob("samples.0.*"))) == 4 and len(list(folder.glob("samples.1.*"))) == 2
    again = before.keys() & after.keys()
    assert len(again) <= 1, f"{len(again)} steps done again: the state was not gone on from"
    assert min(after) > min(before)
    for position in again:
        assert set(before[position]) <= set(after[position]), (
            f"epoch, position {position}: not the samples of the first time"
        )
    expected = undisturbed([str(path) for path in shards])
    assert len(expected) == two_nodes_run.EPOCHS * two_nodes_run.PHOTOS // two_nodes_run.GLOBAL_BATCH
    assert before | after == expected
