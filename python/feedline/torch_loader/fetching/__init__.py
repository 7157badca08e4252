# SPDX-License-Identifier: Apache-2.0
"""Reading and collating a batch, in the training process or a worker."""
