# SPDX-License-Identifier: Apache-2.0
"""A virtual environment whose Python was removed."""

from ..checking import ENVIRONMENT, Case, Check, Told, page, told


def _judges(case: Case) -> Told:
    place = case.seen.place
    if place.base_is_gone:
        yield told(
            "interpreter_gone", "error", f"{place.prefix}/bin/python leads to nothing: it was made of {place.base}",
            fix="Install that Python again, or make the environment anew from its lock.", base=str(place.base),
        )  # fmt: skip


CHECK = Check(
    page(
        code="interpreter_gone",
        title="the Python that the environment was made of is gone",
        means="A virtual environment has no interpreter of its own: bin/python is a link to the one that made it.",
        recognised="bin/python and bin/python3 lead to no file.",
        to_do="Install that Python again at its place, or make the environment anew (`feedline env create`).",
        example=".venv/bin/python leads to nothing: it was made of /opt/python3.11",
    ),
    ENVIRONMENT,
    _judges,
)
