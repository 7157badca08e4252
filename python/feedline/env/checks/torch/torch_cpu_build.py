# SPDX-License-Identifier: Apache-2.0
"""torch was built without CUDA, but the machine has a GPU."""

from ...rules import DEVICE, Analysis, Check, Problems, page, problem


def _evaluate(analysis: Analysis) -> Problems:
    torch, graphics = analysis.seen.torch, analysis.seen.graphics
    if torch is None or not torch.is_cpu or not graphics.names:
        return
    yield problem(
        "torch_cpu_build", "error",
        f"torch {torch.version} was built without CUDA, but this machine has {len(graphics.names)} x "
        f"{graphics.names[0]}",
        fix="Run pip install --force-reinstall torch --index-url https://download.pytorch.org/whl/cu130, or use "
        "the newest CUDA that the driver supports",
        version=torch.version,
    )  # fmt: skip


CHECK = Check(
    page(
        code="torch_cpu_build",
        title="torch was built without CUDA, but there is a GPU",
        means="Training runs on the CPU without an error, or `torch.cuda.is_available()` is false. pip's CUDA wheels "
        "do have cuDNN "
        "and half-precision kernels: if they seem missing, a CPU wheel is installed, or another cuDNN is "
        "found first "
        "(shadowed_library).",
        recognised="torch/version.py has neither `cuda` nor `hip`, and the driver reports a GPU.",
        to_do="Install the build for the GPU. On a machine without a GPU, such as a login node, request this build "
        "with uv's `--torch-backend` or conda's `CONDA_OVERRIDE_CUDA`.",
        example="torch 2.13.0+cpu was built without CUDA, but this machine has 8 x NVIDIA H100 80GB HBM3",
    ),
    DEVICE,
    _evaluate,
)
