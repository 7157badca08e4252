# SPDX-License-Identifier: Apache-2.0
"""Former names of `rules`, so that cause files that use them can still be imported."""

import sys
from types import ModuleType

from ..version import deprecated
from .rules import analysis, cause, certainty, contradictions, copies, fixes, gains, reading, shares, signals

sys.modules |= {
    f"{__name__}.{module.__name__.rpartition('.')[2]}": module
    for module in (cause, certainty, contradictions, copies, fixes, gains, reading, shares, signals)
}
case = sys.modules[f"{__name__}.case"] = ModuleType(f"{__name__}.case", "The former name of `rules.analysis`.")
vars(case).update(vars(analysis) | {"Case": analysis.Analysis})

deprecated("feedline.diagnose.judging", "feedline.diagnose.rules", since="0.3", depth=3)
