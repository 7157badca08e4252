# SPDX-License-Identifier: Apache-2.0
"""Facts about a training script from its syntax tree; the script is never run or imported."""
