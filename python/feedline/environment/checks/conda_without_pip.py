# SPDX-License-Identifier: Apache-2.0
"""A conda environment with Python and without pip."""

from ..checking import ADVICE, Case, Check, Told, page, told


def _judges(case: Case) -> Told:
    seen = case.seen
    names = {one.name for one in seen.packages} | seen.first.keys()
    if seen.place.kind == "conda" and "python" in names and "pip" not in names and not seen.broken:
        yield told(
            "conda_without_pip", "note", f"there is no pip in {seen.place.prefix}",
            fix=f"conda install --prefix {seen.place.prefix} pip",
        )  # fmt: skip


CHECK = Check(
    page(
        code="conda_without_pip",
        title="a conda environment has Python, but no pip",
        means="If it is activated, `pip` is that of the machine or of another environment, and `pip install` puts "
        "packages there. `python -m pip` fails instead.",
        recognised="conda-meta has the package `python`, and neither conda nor another installer installed `pip`.",
        to_do="Install pip in it before `pip install` is run there. Without that, nothing.",
        abstains="A file of conda-meta cannot be read (broken_conda_meta).",
        example="there is no pip in /home/ann/envs/vision",
    ),
    ADVICE + 50,
    _judges,
)
