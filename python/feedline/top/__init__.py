# SPDX-License-Identifier: Apache-2.0
"""``feedline top``: loaders, host and GPUs of running processes, seen from outside. See README.md."""
