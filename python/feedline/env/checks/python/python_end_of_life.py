# SPDX-License-Identifier: Apache-2.0
"""The Python version is no longer supported."""

import re

from ...drivers import END_OF_PYTHON
from ...rules import ADVICE, Analysis, Check, Problems, page, problem


def _evaluate(analysis: Analysis) -> Problems:
    found = re.match(r"(\d+)\.(\d+)", analysis.seen.place.python or "")
    end = END_OF_PYTHON.get((int(found[1]), int(found[2]))) if found else None
    if end is not None and analysis.today.strftime("%Y-%m") > end:
        yield problem(
            "python_end_of_life", "note", f"Python {analysis.seen.place.python} received its last fix in {end}",
            fix="Use a later Python in the next environment: new packages are not built for this one",
        )  # fmt: skip


CHECK = Check(
    page(
        code="python_end_of_life",
        title="this Python is no longer supported",
        means="New package versions are not built for it, so installers silently choose old versions.",
        recognised="The interpreter's version is compared with the dates in devguide.python.org/versions.",
        to_do="Use a later Python in the next environment, even if a guide uses python=3.9.",
        example="Python 3.9.18 received its last fix in 2025-10",
    ),
    ADVICE + 20,
    _evaluate,
)
