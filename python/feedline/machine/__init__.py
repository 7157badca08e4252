# SPDX-License-Identifier: Apache-2.0
"""What this machine is, and lets a process use: read here and nowhere else."""
