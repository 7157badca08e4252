# SPDX-License-Identifier: Apache-2.0
"""Checks whether a package is missing from a conda environment."""

from collections.abc import Callable

from ...rules import Analysis, Check, Problems, page, problem
from ...scan import Environment

_EXAMPLE = "/home/ann/envs/vision"


def conda_lacks(
    code: str, priority: int, severity: str, text: str, fix: str, lacks: Callable[[Environment], bool], **of_page: str
) -> Check:
    """Returns the check `code`. `text` and `fix` may contain ``{prefix}``; `of_page` contains the other parts of the
    check's page.
    """

    def evaluate(analysis: Analysis) -> Problems:
        seen = analysis.seen
        if seen.place.kind == "conda" and not seen.broken and lacks(seen):
            prefix = seen.place.prefix
            yield problem(code, severity, text.format(prefix=prefix), fix=fix.format(prefix=prefix))

    abstains = "A file of conda-meta cannot be read (broken_conda_meta)."
    return Check(
        page(code=code, abstains=abstains, example=text.format(prefix=_EXAMPLE), **of_page), priority, evaluate
    )
