# SPDX-License-Identifier: Apache-2.0
"""Tables of compatible versions of the driver, CUDA, cuDNN and torch, with their date."""

AS_OF = "2026-06"

# NVIDIA, "CUDA Compatibility": minor-version compatibility.
LEAST_OF_MAJOR = {11: 450, 12: 525, 13: 580}
# NVIDIA, release notes of each toolkit: the driver version shipped with it.
OF_TOOLKIT = {
    "11.7": 515, "11.8": 520, "12.0": 525, "12.1": 530, "12.2": 535, "12.3": 545, "12.4": 550, "12.5": 555,
    "12.6": 560, "12.8": 570, "12.9": 575, "13.0": 580,
}  # fmt: skip
# PyTorch's own wheels, by minor version of torch 2 (pytorch/pytorch RELEASE.md, "Release Compatibility Matrix").
CUDA_OF_TORCH = {
    0: ("11.7", "11.8"), 1: ("11.8", "12.1"), 2: ("11.8", "12.1"), 3: ("11.8", "12.1"), 4: ("11.8", "12.1", "12.4"),
    5: ("11.8", "12.1", "12.4"), 6: ("11.8", "12.4", "12.6"), 7: ("11.8", "12.6", "12.8"), 8: ("12.6", "12.8", "12.9"),
    9: ("12.6", "12.8", "13.0"), 10: ("12.6", "12.8", "13.0"),
}  # fmt: skip
FIRST_WITH_CUDNN_9 = 4  # torch 2.4
# devguide.python.org/versions: the month of each version's last fix.
END_OF_PYTHON = {
    (3, 7): "2023-06", (3, 8): "2024-10", (3, 9): "2025-10", (3, 10): "2026-10", (3, 11): "2027-10", (3, 12): "2028-10",
    (3, 13): "2029-10", (3, 14): "2030-10",
}  # fmt: skip
