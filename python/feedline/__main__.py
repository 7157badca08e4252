# SPDX-License-Identifier: Apache-2.0
"""``python -m feedline`` runs the command ``feedline``, for environments that are not on the path."""

import sys

from feedline.cli import main

if __name__ == "__main__":
    sys.exit(main())
