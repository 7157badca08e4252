# SPDX-License-Identifier: Apache-2.0
"""A terminal's screens as one SVG that loads nothing: text as text, and moving where there are several screens.

Screens are lines with ANSI escapes of colours alone, as `tmux capture-pane -e` gives them. A row that stays the same
from one screen to the next is written once. Without motion, or before it begins, the last screen is shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import accumulate, groupby, pairwise

from rich.cells import cell_len
from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from rich.terminal_theme import SVG_EXPORT_THEME as THEME
from rich.text import Text

CHARACTER, ROW, SIZE = 8.4, 18, 14  # pixels: a column, a row, the font
MARGIN, BAR = 14, 34
PIECE = re.compile(r"\S+(?: \S+)*")


@dataclass(frozen=True)
class Screen:
    seconds: float  # that it is shown
    lines: tuple[str, ...]


def drawn(screens: Sequence[Screen], columns: int, title: str, alternative: str) -> str:
    """The picture. `title` stands in the window's bar; `alternative` is for those who cannot see it."""
    rows = max(len(screen.lines) for screen in screens)
    width, height = round(columns * CHARACTER) + 2 * MARGIN, BAR + rows * ROW + MARGIN
    styles: dict[str, str] = {}
    shown = _rows_by_time(screens, rows, styles)
    ends = [0.0, *accumulate(screen.seconds for screen in screens)]
    kinds = [f".{name}{{{css}}}" for css, name in styles.items()]
    motion = list(_motion([times for times in shown if times != (0, len(screens))], ends))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="{escape(alternative)}">',
        f"<style>text{{font:{SIZE}px 'DejaVu Sans Mono',Menlo,Consolas,monospace;fill:{_hex(None, False)}}}",
        *kinds,
        *motion,
        "</style>",
        f'<rect width="{width}" height="{height}" rx="8" fill="{THEME.background_color.hex}"/>',
        *(
            f'<circle cx="{20 + 18 * i}" cy="18" r="6" fill="{c}"/>'
            for i, c in enumerate(("#ff5f57", "#febc2e", "#28c840"))
        ),
        f'<text x="{width / 2:g}" y="23" text-anchor="middle" opacity=".7">{escape(title)}</text>',
    ]
    for times, written in shown.items():
        ends_it = " last" if times[1] == len(screens) else " gone"
        moving = "" if times == (0, len(screens)) else f' class="{_name(times)}{ends_it}"'
        parts += [f"<g{moving}>", *written, "</g>"]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _rows_by_time(screens: Sequence[Screen], rows: int, styles: dict[str, str]) -> dict[tuple[int, int], list[str]]:
    """What is written, by the first screen that has it and the one behind the last."""
    shown: dict[tuple[int, int], list[str]] = {}
    for row in range(rows):
        first = 0
        lines = (screen.lines[row] if row < len(screen.lines) else "" for screen in screens)
        for line, same in groupby(lines):
            last = first + len(list(same))
            if written := list(_row(line, BAR + row * ROW, styles)):
                shown.setdefault((first, last), []).extend(written)
            first = last
    return shown


def _row(line: str, top: int, styles: dict[str, str]) -> Iterator[str]:
    column = 0
    for segment in _segments(line):
        style = segment.style or Style()
        if style.bgcolor is not None or style.reverse:
            back = _hex(style.color, False) if style.reverse else _hex(style.bgcolor, True)
            width = segment.cell_length * CHARACTER
            yield f'<rect x="{_x(column)}" y="{top}" width="{width:g}" height="{ROW}" fill="{back}"/>'
        kind = _kind(style, styles)
        for piece in PIECE.finditer(segment.text):
            x = _x(column + cell_len(segment.text[: piece.start()]))
            length = round(cell_len(piece[0]) * CHARACTER, 1)
            yield f'<text{kind} x="{x}" y="{top + SIZE}" textLength="{length:g}">{escape(piece[0], quote=False)}</text>'
        column += segment.cell_length


def _segments(line: str) -> Iterator[Segment]:
    """Neighbours of one style as one."""
    text = Text.from_ansi(line, no_wrap=True, end="")
    cuts = sorted({0, len(text), *(edge for span in text.spans for edge in (span.start, span.end))})
    for start, end in pairwise(cuts):
        styles = [Style.parse(str(span.style)) for span in text.spans if span.start <= start < span.end]
        yield Segment(text.plain[start:end], Style.combine(styles) if styles else None)


def _kind(style: Style, styles: dict[str, str]) -> str:
    """The class of a style, as an attribute; nothing for plain text."""
    css = []
    if style.reverse:
        css.append(f"fill:{_hex(style.bgcolor, True)}")
    elif style.color is not None and not style.color.is_default:
        css.append(f"fill:{_hex(style.color, False)}")
    css += ["font-weight:700"] if style.bold else []
    css += ["opacity:.6"] if style.dim else []
    css += ["font-style:italic"] if style.italic else []
    css += ["text-decoration:underline"] if style.underline else []
    if not css:
        return ""
    return f' class="{styles.setdefault(";".join(css), f"c{len(styles)}")}"'


def _motion(times: Sequence[tuple[int, int]], ends: Sequence[float]) -> Iterator[str]:
    if not times:
        return
    yield ".gone{visibility:hidden}"
    yield "@media (prefers-reduced-motion:no-preference){"
    for first, last in times:
        name = _name((first, last))
        # it begins with the last screen, which viewers without animation show
        yield f".{name}{{animation:{name} {ends[-1]:g}s step-end -{ends[-2]:g}s infinite}}"
        begins = ["0%{visibility:hidden}"] if first else []
        stops = [f"{100 * ends[last] / ends[-1]:.2f}%{{visibility:hidden}}"] if last < len(ends) - 1 else []
        seen = f"{100 * ends[first] / ends[-1]:.2f}%{{visibility:visible}}"
        yield f"@keyframes {name}{{{''.join([*begins, seen, *stops])}}}"
    yield "}"


def _name(times: tuple[int, int]) -> str:
    return f"t{times[0]}-{times[1]}"


def _x(column: int) -> str:
    return f"{MARGIN + column * CHARACTER:.1f}".removesuffix(".0")


def _hex(color: Color | None, is_background: bool) -> str:
    plain = THEME.background_color if is_background else THEME.foreground_color
    return (plain if color is None or color.is_default else color.get_truecolor(THEME, not is_background)).hex
