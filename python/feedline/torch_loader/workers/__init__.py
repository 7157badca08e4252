# SPDX-License-Identifier: Apache-2.0
"""Worker processes and threads, and how batches reach the loop."""
