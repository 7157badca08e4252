# SPDX-License-Identifier: Apache-2.0
"""The planted scenarios: which script, and which causes a diagnosis of it must name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

TWO_RANKS = ("-m", "torch.distributed.run", "--nproc_per_node=2", "--master_port=29713")
SCRIPTS = Path(__file__).parent / "scripts"


@dataclass(frozen=True)
class Scenario:
    script: str
    causes: tuple[str, ...]  # the largest first; all must be named
    also: tuple[str, ...] = ()  # true of the script too, and no mistake to name
    fast: bool = False  # runs in tools/test
    launcher: tuple[str, ...] = ()  # arguments of Python before the script

    @property
    def path(self) -> Path:
        return SCRIPTS / f"{self.script}.py"


SCENARIOS = (
    Scenario("python_main_process", ("python_main_process",), fast=True),
    Scenario("python_stream_main_process", ("python_main_process",)),
    Scenario("cpu_decode", ("cpu_decode",), ("cpu_transform",), fast=True),
    Scenario("cpu_transform", ("cpu_transform",), fast=True),
    Scenario("storage_latency", ("storage_latency",), fast=True),
    Scenario("collate", ("collate",), fast=True),
    Scenario("worker_handover", ("worker_handover",), ("cpu_transform",), fast=True),
    Scenario("compute_bound", ("compute_bound",), fast=True),
    Scenario("compute_bound_with_workers", ("compute_bound",)),
    Scenario("too_few_workers", ("too_few_workers",), fast=True),
    Scenario("too_few_workers_spawned", ("too_few_workers",), ("worker_startup",)),
    Scenario("oversubscribed", ("oversubscribed",), ("cpu_transform", "worker_startup"), fast=True),
    Scenario("worker_startup", ("worker_startup",), ("epoch_border",), fast=True),
    Scenario("epoch_border", ("epoch_border",), fast=True),
    Scenario("straggling_sample", ("straggling_sample",), fast=True),
    Scenario("loop_synchronisation", ("loop_synchronisation",), ("compute_bound", "worker_handover"), fast=True),
    Scenario("mixed_storage_and_transform", ("storage_latency", "cpu_transform"), ("too_few_workers",)),
    Scenario("mixed_decode_and_collate", ("cpu_decode", "collate"), ("cpu_transform",)),
    Scenario("nested_pool", ("nested_pool",)),
    Scenario("drop_in_transform", ("cpu_transform",)),
    Scenario("mixed_startup_and_border", ("worker_startup", "epoch_border")),
    Scenario("mixed_straggler_and_main_process", ("straggling_sample", "python_main_process")),
    Scenario("cpu_decode_torchvision", ("cpu_decode",), ("cpu_transform",)),
    Scenario("stream_storage_latency", ("storage_latency",)),
    Scenario("own_decode", ("cpu_decode",), ("cpu_transform",)),
    Scenario("own_too_few_threads", ("too_few_workers",)),
    Scenario("own_slow_storage", ("storage_latency",)),
    Scenario("own_compute_bound", ("compute_bound",)),
    Scenario("lowered_decode", ("cpu_decode",), ("cpu_transform",)),
    Scenario("straggling_rank", ("straggling_rank",), ("storage_latency", "python_main_process"), launcher=TWO_RANKS),
)
