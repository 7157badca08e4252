# SPDX-License-Identifier: Apache-2.0
"""Shared code of these scripts: switches that remove a planted cause, a short form, and data that is created once.

REMOVED lists causes, separated by commas, that the script runs without; proof.py compares it with the planted form.
SHORT=1 runs only a few steps, for the tests.
"""

import os
import shutil
import tempfile
from pathlib import Path

SHORT = os.environ.get("SHORT") == "1"


def planted(cause):
    return cause not in os.environ.get("REMOVED", "").split(",")


def amount(full, short):
    return short if SHORT else full


def stored(name, write):
    """Returns a folder that `write(folder)` has filled once. It is not deleted, like a dataset after training."""
    folder = Path(tempfile.gettempdir(), f"feedline-blind-{name}{'-short' * SHORT}")
    if not folder.exists():
        unfinished = Path(tempfile.mkdtemp())
        write(unfinished)
        try:
            unfinished.rename(folder)
        except OSError:  # another rank or run was faster
            shutil.rmtree(unfinished)
    return folder
