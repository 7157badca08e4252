# SPDX-License-Identifier: Apache-2.0
"""Worker processes and threads, and the transport of batches to the training loop."""
