# SPDX-License-Identifier: Apache-2.0
"""``feedline top``: monitors the loaders, host and GPUs of running processes from outside. See README.md."""
