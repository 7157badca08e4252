# SPDX-License-Identifier: Apache-2.0
"""The rank from each launcher's environment variables, and from the state of imported libraries."""

from __future__ import annotations

import multiprocessing.process
import os
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from running_processes import until

import feedline
from feedline.machine import launchers, parallelism, ranks

STEP = {"SLURM_STEP_ID": "0", "SLURM_PROCID": "3", "SLURM_NTASKS": "4"}


@pytest.mark.parametrize(
    ("variables", "wanted"),
    [
        ({"WORLD_SIZE": "2", "LOCAL_RANK": "1", "NODE_RANK": "0"}, (1, 2)),  # Lightning's child
        ({"WORLD_SIZE": "2", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}, (1, 2)),
        ({"WORLD_SIZE": "8", "LOCAL_RANK": "1", "NODE_RANK": "1", "LOCAL_WORLD_SIZE": "4"}, (5, 8)),
        ({"WORLD_SIZE": "1"}, (0, 1)),
        ({"LOCAL_RANK": "0"}, None),
        ({"WORLD_SIZE": "4", **STEP}, (3, 4)),
        ({"WORLD_SIZE": "4", "PMI_RANK": "1", "PMI_SIZE": "4"}, (1, 4)),
        ({"MV2_COMM_WORLD_RANK": "1", "MV2_COMM_WORLD_SIZE": "4"}, (1, 4)),
        ({"PMI_RANK": "1", "PMI_SIZE": "4", "MPI_LOCALRANKID": "1"}, (1, 4)),
        ({"HOROVOD_RANK": "1", "HOROVOD_SIZE": "4"}, (1, 4)),
        ({"JSM_NAMESPACE_RANK": "1", "JSM_NAMESPACE_SIZE": "4"}, (1, 4)),
        ({"FLUX_TASK_RANK": "1", "FLUX_JOB_SIZE": "4"}, (1, 4)),
        ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", **STEP}, (1, 2)),  # mpirun within Slurm
        (STEP, (3, 4)),
        # srun -n 1 in a job of four tasks; a batch script
        ({**STEP, "SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1"}, (0, 1)),
        ({"SLURM_STEP_ID": "0", "SLURM_PROCID": "1", "SLURM_NPROCS": "2"}, (1, 2)),  # srun without -n
        ({"SLURM_NTASKS": "4"}, None),  # salloc
        ({**STEP, "SLURM_PROCID": "0", "SLURM_STEP_ID": "4294967290"}, None),  # salloc's interactive step
        ({**STEP, "SLURM_PROCID": "0", "SLURM_STEP_ID": "4294967291"}, None),  # a batch script
        ({**STEP, "SLURM_PROCID": "0", "SLURM_JOB_NAME": "bash"}, None),
        ({**STEP, "SLURM_PROCID": "0", "SLURM_JOB_NAME": "interactive"}, None),
        ({**STEP, "SLURM_JOB_NAME": "interactive", "SLURM_TASK_PID": str(os.getpid())}, (3, 4)),
        ({**STEP, "SLURM_JOB_NAME": "interactive", "SLURM_TASK_PID": "0"}, (3, 4)),  # another process namespace
        ({**STEP, "SLURM_JOB_NAME": "bash", "SLURM_TASK_PID": "0", "SLURM_PTY_PORT": "1"}, None),
    ],
)
def test_variables(variables: dict[str, str], wanted: tuple[int, int] | None) -> None:
    found = launchers.from_environment(variables)
    assert (found and found[:2]) == wanted


@pytest.mark.parametrize(("arguments", "is_shell"), [(["-l"], True), ([], True), (["-c", "read line; true"], False)])
def test_a_shell_that_srun_has_started_is_known_by_its_command_line(arguments: list[str], is_shell: bool) -> None:
    with subprocess.Popen(["bash", *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as shell:
        assert shell.stdin is not None and shell.stdout is not None
        if not arguments or arguments == ["-l"]:
            shell.stdin.write("echo ready\n")
            shell.stdin.flush()
            assert "ready" in shell.stdout.readline()
        else:
            command = Path(f"/proc/{shell.pid}/cmdline")
            until(lambda: b"read line" in command.read_bytes())
        found = launchers.from_environment({**STEP, "SLURM_TASK_PID": str(shell.pid)})
        shell.stdin.close()
    assert (found is None) == is_shell


@pytest.mark.parametrize(
    "variables",
    [
        {"WORLD_SIZE": "2"},
        {"WORLD_SIZE": "2", "LOCAL_RANK": "1"},
        {"WORLD_SIZE": "4", "LOCAL_RANK": "1", "NODE_RANK": "1"},
    ],
)
def test_a_world_size_without_a_rank_is_an_error_of_the_first_use(
    variables: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    loader = feedline.arrays(x=np.arange(8)).loader(2, output="numpy")
    for use in (len, iter, lambda it: it.state_dict(), lambda it: it.explain(), lambda it: it.load_state_dict({})):
        with pytest.raises(feedline.ConfigError, match=r"no RANK.*init_process_group.*rank= and world_size="):
            use(loader)
    assert "feedline.Loader" in repr(loader)
    assert len(feedline.arrays(x=np.arange(8)).loader(2, rank=1, world_size=2, output="numpy")) == 2


RANK_VARIABLES = (
    "RANK",
    "LOCAL_RANK",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "MV2_COMM_WORLD_RANK",
    "PMI_RANK",
    "PMIX_RANK",
    "PALS_RANKID",
    "ALPS_APP_PE",
    "HOROVOD_RANK",
    "JSM_NAMESPACE_RANK",
    "FLUX_TASK_RANK",
    "SLURM_PROCID",
)


@pytest.mark.parametrize("name", RANK_VARIABLES)
def test_a_rank_without_a_world_size_is_an_error_of_the_first_use(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "1")
    loader = feedline.arrays(x=np.arange(8)).loader(2, output="numpy")
    for use in (len, iter, lambda it: it.state_dict()):
        with pytest.raises(feedline.ConfigError, match=rf"{name}=1 but no valid world size.*rank= and world_size="):
            use(loader)
    assert len(feedline.arrays(x=np.arange(8)).loader(2, rank=1, world_size=2, output="numpy")) == 2
    monkeypatch.setenv(name, "0")
    assert launchers.from_environment(os.environ) is None, "rank 0 may be a single process"
    monkeypatch.setenv(name, "first")
    assert launchers.from_environment(os.environ) is None, "no launcher sets a name"


@pytest.mark.parametrize(
    ("variables", "name"),
    [
        ({"SLURM_STEP_ID": "0", "SLURM_PROCID": "1"}, "SLURM_PROCID"),
        ({"SLURM_NTASKS": "2", "SLURM_PROCID": "1"}, "SLURM_PROCID"),  # a container without SLURM_STEP_ID
        ({"RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}, "RANK"),  # the size from another launcher
    ],
)
def test_a_rank_with_half_of_its_variables_is_an_error(variables: dict[str, str], name: str) -> None:
    with pytest.raises(feedline.ConfigError, match=f"{name}=1 but no valid world size"):
        launchers.from_environment(variables)


def test_a_rank_with_the_variables_of_another_launcher() -> None:
    assert launchers.from_environment({"PMIX_RANK": "3", **STEP}) == (3, 4, "SLURM_PROCID and SLURM_NTASKS")
    assert launchers.from_environment({"PMIX_RANK": "0", "SLURM_PROCID": "0", "SLURM_STEP_ID": "4294967291"}) is None


def module(monkeypatch: pytest.MonkeyPatch, name: str, **members: Any) -> None:
    made = types.ModuleType(name)
    made.__dict__.update(members)
    monkeypatch.setitem(sys.modules, name, made)


def distributed(monkeypatch: pytest.MonkeyPatch, rank: int, size: int) -> None:
    yes = lambda: True  # noqa: E731
    numbers = {"get_rank": lambda: rank, "get_world_size": lambda: size}
    module(monkeypatch, "torch.distributed", is_available=yes, is_initialized=yes, **numbers)


def test_ray_train(monkeypatch: pytest.MonkeyPatch) -> None:
    context = types.SimpleNamespace(get_world_rank=lambda: 1, get_world_size=lambda: 3)
    module(monkeypatch, "ray.train", get_context=lambda: context)
    assert ranks.resolve(None, None) == (1, 3)

    def fails() -> None:
        raise RuntimeError("not in a worker")

    module(monkeypatch, "ray.train", get_context=fails)
    assert ranks.resolve(None, None) == (0, 1)


def test_variables_of_a_parent_do_not_contradict_the_group(monkeypatch: pytest.MonkeyPatch) -> None:
    distributed(monkeypatch, 5, 8)
    for name, value in STEP.items():
        monkeypatch.setenv(name, value)
    assert ranks.resolve(None, None) == (5, 8), "mp.spawn in a task of srun"
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(feedline.ConfigError, match="rank 5 of 8, but the launcher's variables have rank 0 of 2"):
        ranks.resolve(None, None)
    monkeypatch.setattr(multiprocessing.process, "parent_process", lambda: object())
    assert ranks.resolve(None, None) == (5, 8), "mp.spawn in a pod whose RANK counts pods"


def parallel_state(size: int) -> dict[str, Any]:
    return {"is_initialized": lambda: True, "get_data_parallel_world_size": lambda: size}


def refused() -> str:
    with pytest.raises(feedline.ConfigError, match="need the same rows") as error:
        iter(feedline.arrays(x=np.arange(8)).loader(2, output="numpy"))
    return str(error.value)


def test_megatron(monkeypatch: pytest.MonkeyPatch) -> None:
    distributed(monkeypatch, 1, 4)
    module(monkeypatch, "megatron.core.parallel_state", **parallel_state(2))
    assert "rank=parallel_state.get_data_parallel_rank(), world_size=parallel_state.get_data_parallel_wo" in refused()
    module(monkeypatch, "megatron.core.parallel_state", **parallel_state(4))
    assert ranks.resolve(None, None) == (1, 4)


def test_accelerate(monkeypatch: pytest.MonkeyPatch) -> None:
    distributed(monkeypatch, 1, 4)
    mesh = types.SimpleNamespace(mesh_dim_names=("dp_shard", "tp"))
    config = types.SimpleNamespace(non_data_parallel_size=2, tp_size=2, cp_size=1, sp_size=1)
    state = types.SimpleNamespace(_shared_state={"parallelism_config": config, "device_mesh": mesh})
    module(monkeypatch, "accelerate.state", AcceleratorState=state)
    assert "mesh=accelerator.torch_device_mesh, dp=('dp_shard',)" in refused()
    config.non_data_parallel_size = 1
    assert ranks.resolve(None, None) == (1, 4)


def test_deepspeed(monkeypatch: pytest.MonkeyPatch) -> None:
    distributed(monkeypatch, 1, 4)
    sizes = {"data_parallel": 2, "sequence_parallel": 2}
    mesh = types.SimpleNamespace(
        mesh_dim_names=tuple(sizes), size=lambda i=None: 4 if i is None else tuple(sizes.values())[i]
    )
    module(monkeypatch, "deepspeed.utils.groups", mesh_device=mesh, mpu=None)
    assert 'mesh=deepspeed.utils.groups.mesh_device, dp="data_parallel"' in refused()
    mpu = types.SimpleNamespace(get_data_parallel_world_size=lambda: 2)
    module(monkeypatch, "deepspeed.utils.groups", mesh_device=None, mpu=mpu)
    assert "rank=deepspeed.utils.groups.mpu.get_data_parallel_rank()" in refused()
    tensor = {"_TENSOR_MODEL_PARALLEL_GROUP": 1, "get_tensor_model_parallel_world_size": lambda: 2}
    module(monkeypatch, "deepspeed.utils.groups", mesh_device=None, mpu=None, **tensor)
    assert "rank=deepspeed.utils.groups.get_data_parallel_rank()" in refused()
    module(monkeypatch, "deepspeed.utils.groups", mesh_device=None, mpu=None)
    assert parallelism.unstated() is None
