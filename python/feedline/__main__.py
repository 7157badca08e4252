# SPDX-License-Identifier: Apache-2.0
"""Runs the ``feedline`` command as ``python -m feedline``, for environments whose scripts are not on PATH."""

import sys

from feedline.cli import main

if __name__ == "__main__":
    sys.exit(main())
