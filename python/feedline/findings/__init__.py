# SPDX-License-Identifier: Apache-2.0
"""The findings of all subcommands: their types, their catalogue, and their output formats."""

from .catalogue import Entry, Named, Threshold, thresholds_of
from .finding import CERTAIN, SEVERITIES, Abstention, Finding, gain_words, severity_of
from .registry import modules_in, rules_in

__all__ = [
    "CERTAIN",
    "SEVERITIES",
    "Abstention",
    "Entry",
    "Finding",
    "Named",
    "Threshold",
    "gain_words",
    "modules_in",
    "rules_in",
    "severity_of",
    "thresholds_of",
]
