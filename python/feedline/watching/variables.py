# SPDX-License-Identifier: Apache-2.0
"""The environment variables by which the watching side tells a command's processes what to do."""

from __future__ import annotations

SESSION = "FEEDLINE_DIAGNOSE_SESSION"  # the folder that the probe records into
# A module of the verb that has the command watched, which the probe loads: its install(module, recorder) is called with
# each module that has a loader or an iterator of one, as they are when the probe's hooks are in them.
EXTENSION = "FEEDLINE_EXTENSION"
APPLY = "FEEDLINE_APPLY"  # the file of what is to be applied: apply.py
