# SPDX-License-Identifier: Apache-2.0
"""Packages are from a discontinued channel."""

from ...rules import ADVICE, Analysis, Check, Problems, names, page, problem


def _evaluate(analysis: Analysis) -> Problems:
    found = [f"{one.name} {one.version}" for one in analysis.seen.packages if one.channel == "pytorch"]
    if found:
        yield problem(
            "ended_channel", "warning", f"from the channel pytorch, which ended with torch 2.5: {names(found)}",
            fix="Install pytorch from conda-forge, or torch with pip", channel="pytorch",
        )  # fmt: skip


CHECK = Check(
    page(
        code="ended_channel",
        title="packages are from a discontinued channel",
        means="`conda install pytorch -c pytorch` installs torch 2.5 from 2024 at most: PyTorch publishes wheels, "
        "and conda-forge builds its own (pytorch/pytorch#138506).",
        recognised="conda-meta names the channel pytorch.",
        to_do="Install `pytorch` from conda-forge, or torch with pip into the environment.",
        example="from the channel pytorch, which ended with torch 2.5: pytorch 2.5.1, torchvision 0.20.1",
    ),
    ADVICE + 10,
    _evaluate,
)
