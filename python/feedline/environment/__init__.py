# SPDX-License-Identifier: Apache-2.0
"""Whether an environment is sound, what it is, and how it is rebuilt: ``feedline env``."""
