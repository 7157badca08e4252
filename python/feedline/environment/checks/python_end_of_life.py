# SPDX-License-Identifier: Apache-2.0
"""A Python that gets no fixes any more."""

import re

from ..checking import ADVICE, Case, Check, Told, page, told
from ..drivers import END_OF_PYTHON


def _judges(case: Case) -> Told:
    found = re.match(r"(\d+)\.(\d+)", case.seen.place.python or "")
    end = END_OF_PYTHON.get((int(found[1]), int(found[2]))) if found else None
    if end is not None and case.today.strftime("%Y-%m") > end:
        yield told(
            "python_end_of_life", "note", f"Python {case.seen.place.python} got its last fix in {end}",
            fix="Make the next environment of a later Python: new packages are not built for this one",
        )  # fmt: skip


CHECK = Check(
    page(
        code="python_end_of_life",
        title="this Python gets no fixes any more",
        means="Packages stop building for it, so that installers take old versions without a word.",
        recognised="The interpreter's version against the dates of devguide.python.org/versions.",
        to_do="Make the next environment of a later Python. Old guides that say python=3.9 are to be read so.",
        example="Python 3.9.18 got its last fix in 2025-10",
    ),
    ADVICE + 20,
    _judges,
)
