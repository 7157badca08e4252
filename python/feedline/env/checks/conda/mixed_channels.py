# SPDX-License-Identifier: Apache-2.0
"""Packages from Anaconda's defaults are mixed with packages from conda-forge."""

from collections import Counter

from ...rules import ADVICE, Analysis, Check, Problems, page, problem

_DEFAULTS = ("defaults", "pkgs/main", "pkgs/free", "pkgs/r", "anaconda", "main")


def _evaluate(analysis: Analysis) -> Problems:
    channels = Counter(one.channel for one in analysis.seen.packages)
    defaults = sum(channels[name] for name in _DEFAULTS)
    if defaults and channels["conda-forge"]:
        yield problem(
            "mixed_channels", "warning",
            f"{channels['conda-forge']} packages are from conda-forge and {defaults} from Anaconda's defaults",
            fix="Recreate the environment from conda-forge only: feedline env create NAME --from environment.yml, "
                "with channels: [conda-forge, nodefaults]",
        )  # fmt: skip


CHECK = Check(
    page(
        code="mixed_channels",
        title="conda-forge and Anaconda's defaults are mixed",
        means="The channels use different compilers and pins: libraries from one channel do not always work with "
        "libraries from the other, and each update may move packages between channels.",
        recognised="conda-meta has packages from both channels.",
        to_do="Use only one channel, with strict channel priority.",
        example="120 packages are from conda-forge and 14 from Anaconda's defaults",
    ),
    ADVICE,
    _evaluate,
)
