# SPDX-License-Identifier: Apache-2.0
"""torch was built for CUDA, but without cuDNN."""

from ...rules import DEVICE, Analysis, Check, Problems, page, problem


def _evaluate(analysis: Analysis) -> Problems:
    torch = analysis.seen.torch
    if torch is None or torch.cuda is None or torch.settings.get("cudnn", True):
        return
    yield problem(
        "torch_without_cudnn", "warning", f"torch {torch.version} was built for CUDA {torch.cuda} without cuDNN",
        fix="Run pip install --force-reinstall torch, as torch's wheels have cuDNN; or build torch with USE_CUDNN=1 on "
            "a machine that has cuDNN's headers",
        version=torch.version,
    )  # fmt: skip


CHECK = Check(
    page(
        code="torch_without_cudnn",
        title="torch was built for CUDA without cuDNN",
        means="Convolutions, recurrent layers and batch normalisation use slower kernels, and "
        "`torch.backends.cudnn.is_available()` is false. PyTorch's wheels and conda-forge's builds have cuDNN; a build "
        "from source has none if cuDNN's headers were missing.",
        recognised="AT_CUDNN_ENABLED() is 0 in torch/include/ATen/cuda/CUDAConfig.h.",
        to_do="Install PyTorch's wheel, or build torch again with cuDNN.",
        abstains="torch's headers are not installed.",
        example="torch 2.9.0a0+git1234567 was built for CUDA 12.8 without cuDNN",
    ),
    DEVICE + 5,
    _evaluate,
)
