# SPDX-License-Identifier: Apache-2.0
"""The interpreter of a virtual environment was removed."""

from ...rules import ENVIRONMENT, Analysis, Check, Problems, page, problem


def _evaluate(analysis: Analysis) -> Problems:
    place = analysis.seen.place
    if place.base_is_gone:
        yield problem(
            "interpreter_gone", "error", f"{place.prefix}/bin/python is a dangling link: its Python was {place.base}",
            fix="Install that Python again, or recreate the environment from its lock.", base=str(place.base),
        )  # fmt: skip


CHECK = Check(
    page(
        code="interpreter_gone",
        title="the Python that created the environment was removed",
        means="A virtual environment does not contain an interpreter: bin/python links to the Python that created "
        "the environment.",
        recognised="bin/python and bin/python3 are dangling links.",
        to_do="Install that Python again in the same folder, or recreate the environment (`feedline env create`).",
        example=".venv/bin/python is a dangling link: its Python was /opt/python3.11",
    ),
    ENVIRONMENT,
    _evaluate,
)
