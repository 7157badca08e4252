# SPDX-License-Identifier: Apache-2.0
"""Environment variables that the profiler uses to configure a command's processes."""

from __future__ import annotations

SESSION = "FEEDLINE_DIAGNOSE_SESSION"  # the folder that the probe records into
# A module of the Feedline command, which the probe loads. Its install(module, recorder) is called with each module that
# has a loader or a loader's iterator, after the probe's hooks were installed.
EXTENSION = "FEEDLINE_EXTENSION"
APPLY = "FEEDLINE_APPLY"  # the file of settings to apply: apply.py
