# SPDX-License-Identifier: Apache-2.0
"""The former name of `rules`, so that cause files written for it can still be imported."""

import sys

from .rules import analysis, cause, certainty, contradictions, copies, fixes, gains, reading, shares, signals

sys.modules |= {
    f"{__name__}.{module.__name__.rpartition('.')[2]}": module
    for module in (cause, certainty, contradictions, copies, fixes, gains, reading, shares, signals)
}
sys.modules[f"{__name__}.case"] = analysis
