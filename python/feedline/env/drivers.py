# SPDX-License-Identifier: Apache-2.0
"""Tables of compatible driver, CUDA, cuDNN and torch versions, and the date of these tables."""

AS_OF = "2026-11"

# NVIDIA, "CUDA Compatibility": minor-version compatibility.
LEAST_OF_MAJOR = {11: 450, 12: 525, 13: 580}
# NVIDIA, release notes of each toolkit: the driver version shipped with it.
OF_TOOLKIT = {
    "11.7": 515, "11.8": 520, "12.0": 525, "12.1": 530, "12.2": 535, "12.3": 545, "12.4": 550, "12.5": 555,
    "12.6": 560, "12.8": 570, "12.9": 575, "13.0": 580, "13.1": 590, "13.2": 595, "13.3": 610,
}  # fmt: skip
# PyTorch's own wheels, by minor version of torch 2 (pytorch/pytorch RELEASE.md, "Release Compatibility Matrix"; 2.14
# and 2.15: pytorch/pytorch#194367 and #190385, and the requirements of the wheels on PyPI). The index cu129 has further
# wheels, of which those of 2.10, 2.11 and 2.13 are known.
CUDA_OF_TORCH = {
    0: ("11.7", "11.8"), 1: ("11.8", "12.1"), 2: ("11.8", "12.1"), 3: ("11.8", "12.1"), 4: ("11.8", "12.1", "12.4"),
    5: ("11.8", "12.1", "12.4"), 6: ("11.8", "12.4", "12.6"), 7: ("11.8", "12.6", "12.8"), 8: ("12.6", "12.8", "12.9"),
    9: ("12.6", "12.8", "13.0"), 10: ("12.6", "12.8", "12.9", "13.0"), 11: ("12.6", "12.8", "12.9", "13.0"),
    12: ("12.6", "13.0", "13.2"), 13: ("12.6", "12.9", "13.0", "13.2"), 14: ("12.6", "13.0", "13.2"),
    15: ("13.0", "13.2"),
}  # fmt: skip
# Builds that may or may not have been published.
CUDA_UNKNOWN = {9: ("12.9",), 12: ("12.9",), 14: ("12.9",), 15: ("12.9",)}
FIRST_WITH_CUDNN_9 = 4  # torch 2.4; all later versions in the table have cuDNN 9, too
# devguide.python.org/versions: the month of each version's last fix.
END_OF_PYTHON = {
    (3, 7): "2023-06", (3, 8): "2024-10", (3, 9): "2025-10", (3, 10): "2026-10", (3, 11): "2027-10", (3, 12): "2028-10",
    (3, 13): "2029-10", (3, 14): "2030-10",
}  # fmt: skip
