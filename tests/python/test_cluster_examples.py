# SPDX-License-Identifier: Apache-2.0
"""The example that packs on a cluster, with a stand-in for Slurm: the work is the real one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from running_processes import HANG_S

from feedline import packing

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_slurm_packs_what_one_process_packs(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("click", reason="the command line is not installed")
    script, output = EXAMPLES / "slurm/pack_array.sbatch", tmp_path / "slurm"
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin/feedline"
    command.write_text(f"#!{sys.executable}\nimport sys\nfrom feedline.cli import main\nsys.exit(main())\n")
    command.chmod(0o755)
    path = f"{command.parent}{os.pathsep}{os.environ['PATH']}"
    for task in (7, 6, 5):  # --array=5-7
        array = {"SLURM_ARRAY_TASK_ID": task, "SLURM_ARRAY_TASK_MIN": 5, "SLURM_ARRAY_TASK_COUNT": 3}
        environment = os.environ | {name: str(value) for name, value in array.items()} | {"PATH": path}
        ran = subprocess.run(
            ["bash", str(script), str(folder), str(output), "--samples-per-shard", "4"],
            env=environment, capture_output=True, text=True, timeout=HANG_S,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr
        assert (output / "feedline-pack.json").exists() == (task == 5)
    packing.pack(folder, tmp_path / "one", samples_per_shard=4)
    for shard in (tmp_path / "one").glob("*.tar"):
        assert (output / shard.name).read_bytes() == shard.read_bytes()


def test_slurm_starts_a_rank_for_each_gpu_of_each_node(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    says = {
        "srun": 'exec "$@"',
        "scontrol": "printf 'node7\\nnode8\\n'",
        "torchrun": 'printf "%s\\n" "$@"',
    }
    for name, body in says.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/bash\n{body}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    job = {"SLURM_JOB_NODELIST": "node[7-8]", "SLURM_NNODES": "2", "SLURM_GPUS_ON_NODE": "8", "SLURM_JOB_ID": "41"}
    variables = {"CHECKPOINTS": str(tmp_path / "kept"), "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    ran = subprocess.run(
        ["bash", str(EXAMPLES / "slurm/train.sbatch"), "/data/train set", "--precision", "fp16"],
        env=os.environ | job | variables, capture_output=True, text=True, timeout=HANG_S,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    words = ran.stdout.splitlines()
    assert words[:4] == ["--nnodes", "2", "--nproc-per-node", "8"]
    assert words[words.index("--rdzv-endpoint") + 1] == "node7:29500"
    script = words.index("examples/resnet50_amp.py")
    assert words[script + 1 : script + 3] == ["/data/train set", "--checkpoint"]
    assert words[-2:] == ["--precision", "fp16"] and (tmp_path / "kept").is_dir()


def test_the_pod_has_what_a_loader_needs() -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML, which reads the manifest, is not installed")
    job = yaml.safe_load((EXAMPLES / "kubernetes/train.yaml").read_text())
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    wanted, most = container["resources"]["requests"], container["resources"]["limits"]
    assert wanted == most and float(wanted["cpu"]).is_integer()  # else the kubelet sets a quota that is smaller
    places = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    assert places["shm"] == "/dev/shm" and volumes["shm"]["emptyDir"]["medium"] == "Memory"
    assert places.keys() == volumes.keys()
    command = container["args"][0]
    script = next(word for word in command.split() if word.endswith(".py"))
    assert (EXAMPLES.parent / script).is_file()
    options = [
        word for word in command.split() if word.startswith("--") and word not in ("--standalone", "--nproc-per-node")
    ]
    assert all(option in (EXAMPLES.parent / script).read_text() for option in options)
    assert f"--nproc-per-node {wanted['nvidia.com/gpu']}" in command
