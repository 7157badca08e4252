# SPDX-License-Identifier: Apache-2.0
"""Builds HTML and SVG elements. All text and attributes are escaped by ElementTree's writer."""

from __future__ import annotations

import re
import xml.etree.ElementTree as tree
from typing import TypeAlias

Element: TypeAlias = tree.Element
Content: TypeAlias = "Element | str | None"

# characters that XML and HTML do not allow, but paths may contain
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


def make(tag: str, *content: Content, **attributes: str | float | None) -> Element:
    """Makes an element: ``make("p", "text", make("b", "more"), class_="note")``.

    Underscores in attribute names become hyphens; a trailing underscore is removed.
    """
    element = tree.Element(tag)
    for name, value in attributes.items():
        if value is not None:
            text = f"{value:.6g}" if isinstance(value, float) else str(value)
            key = name.rstrip("_")
            element.set(key if key == "viewBox" else key.replace("_", "-"), printable(text))
    for part in content:
        add(element, part)
    return element


def add(parent: Element, part: Content) -> None:
    if part is None:
        return
    if not isinstance(part, str):
        parent.append(part)
    elif len(parent):
        parent[-1].tail = (parent[-1].tail or "") + printable(part)
    else:
        parent.text = (parent.text or "") + printable(part)


def printable(text: str) -> str:
    """Replaces characters that HTML cannot contain with replacement characters."""
    return _FORBIDDEN.sub("\ufffd", text)


def text_of(element: Element) -> str:
    """Returns the HTML of an element."""
    return tree.tostring(element, encoding="unicode", method="html")
