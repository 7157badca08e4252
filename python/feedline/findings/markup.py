# SPDX-License-Identifier: Apache-2.0
"""Elements of HTML and SVG. All text and all attributes go through ElementTree's writer, which escapes them."""

from __future__ import annotations

import re
import xml.etree.ElementTree as tree
from typing import TypeAlias

Element: TypeAlias = tree.Element
Content: TypeAlias = "Element | str | None"

# what XML and HTML have no character for; a path may hold it
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


def make(tag: str, *content: Content, **attributes: str | float | None) -> Element:
    """``make("p", "text", make("b", "more"), class_="note")``: a trailing underscore goes, others become hyphens."""
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
    """The same with a replacement character for what cannot stand in a page."""
    return _FORBIDDEN.sub("\ufffd", text)


def text_of(element: Element) -> str:
    """The HTML of an element."""
    return tree.tostring(element, encoding="unicode", method="html")
