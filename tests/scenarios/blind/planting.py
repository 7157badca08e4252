# SPDX-License-Identifier: Apache-2.0
"""What these scripts share: switches that take a planted cause away, a short form, and data that is made once.

REMOVED names causes, with commas between, that the script is to run without; proof.py compares it with the planted
one. SHORT=1 makes a few steps only, for the tests.
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
    """A folder that `write(folder)` filled, once. It stays, as a dataset does when a training ends."""
    folder = Path(tempfile.gettempdir(), f"feedline-blind-{name}{'-short' * SHORT}")
    if not folder.exists():
        unfinished = Path(tempfile.mkdtemp())
        write(unfinished)
        try:
            unfinished.rename(folder)
        except OSError:  # another rank or run was quicker
            shutil.rmtree(unfinished)
    return folder
