# SPDX-License-Identifier: Apache-2.0
"""The script sets an option of tf.data under its earlier name."""

from __future__ import annotations

from collections.abc import Iterator

from ...rules import SCRIPT, Analysis, Cause, Found, page


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    for place in analysis.script.renamed if analysis.script is not None else ():
        yield Found("warning", (f"{place.at}: {place.what}",), about=place.about)


CAUSE = Cause(
    page(
        "renamed_option",
        "the script sets an option of tf.data under its earlier name",
        means="`experimental_optimization.autotune` is now `options.autotune`, an object with `enabled`, `cpu_budget` "
        "and `ram_budget`. Setting the earlier name has no effect or raises AttributeError.",
        recognised="The script names experimental_optimization.autotune.",
        to_do="options.autotune.enabled = True. For torch, use feedline tune.",
        example="line 9: experimental_optimization.autotune.",
    ),
    priority=SCRIPT + 180,
    evaluate=_evaluate,
)
