# SPDX-License-Identifier: Apache-2.0
"""From indices to a batch, in whichever process."""
