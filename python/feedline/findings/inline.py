# SPDX-License-Identifier: Apache-2.0
"""Formats findings as a block of HTML in a notebook, without scripts or links; its styles apply only to this block."""

from __future__ import annotations

from collections.abc import Iterable

from .finding import Finding
from .markup import Element, add, make, text_of

CLASS = "feedline-block"
# Uses the notebook's text and background colours; only severities have our own.
_STYLE = """
.feedline-block { font: 14px/1.45 system-ui, sans-serif; max-width: 860px; }
.feedline-block h4 { font-size: 15px; margin: 10px 0 2px; }
.feedline-block ul { margin: 2px 0; padding-left: 20px; }
.feedline-block p { margin: 4px 0; }
.feedline-block code { font-size: 13px; }
.feedline-block .feedline-finding { border-left: 4px solid #8a94a0; padding: 0 0 0 12px; margin: 10px 0; }
.feedline-block .feedline-warning { border-color: #d9822b; }
.feedline-block .feedline-critical, .feedline-block .feedline-error { border-color: #c9302c; }
.feedline-block .feedline-fix { font-weight: 600; }
.feedline-block .feedline-quiet { opacity: .75; font-size: 13px; }
"""


def block(*content: Element | str | None, style: str = "") -> str:
    """Returns the HTML of a block with this content; `style`: additional CSS rules."""
    return text_of(make("div", make("style", _STYLE + style), *content, class_=CLASS))


def element(finding: Finding) -> Element:
    """Formats a finding: its share, name, evidence and fix."""
    takes = f"{finding.share:.0%} of the time: " if finding.share else ""
    sure = f" ({finding.confidence_text})" if finding.share else ""
    heading = make("h4", takes, make("code", finding.code), f"{sure}, {finding.severity}")
    made = make("div", heading, class_=f"feedline-finding feedline-{finding.severity}")
    if finding.sentences:
        add(made, make("ul", *(make("li", sentence) for sentence in finding.sentences)))
    if finding.fix:
        add(made, make("p", finding.fix, class_="feedline-fix"))
    gain = finding.gain_text("batches")
    if gain:
        add(made, make("p", f"Predicted gain: {gain}"))
    return made


def html(findings: Iterable[Finding]) -> str:
    """Formats findings in order for a notebook."""
    return block(*(element(finding) for finding in findings))
