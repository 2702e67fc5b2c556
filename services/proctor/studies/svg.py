"""The few SVG elements that drawn figures are made of: documents that stand alone, readable without a style sheet."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final

WIDTH: Final = 760
INK, FAINT, GRID = "#1f2328", "#57606a", "#d0d7de"
#: Okabe and Ito's colours, which every common form of colour vision tells apart.
ORANGE, BLUE, GREEN = "#d55e00", "#0072b2", "#009e73"


def text(x: float, y: float, words: str, anchor: str = "start", colour: str = INK, *, size: int = 12) -> str:
    """Words at a place; `anchor` says which end of them stands there: start, middle or end."""
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text {place} fill="{colour}" font-size="{size}">{escape(words)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, colour: str, *, dashed: bool = False) -> str:
    """A straight line."""
    dash = ' stroke-dasharray="5 4"' if dashed else ""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"{dash}/>'


def box(x: float, y: float, width: float, height: float, colour: str, *, opacity: float = 1.0) -> str:
    """A filled rectangle."""
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}" '
        f'fill-opacity="{opacity:g}"/>'
    )


def path(points: Sequence[tuple[float, float]], colour: str) -> str:
    """A line through points."""
    places = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{places}" fill="none" stroke="{colour}" stroke-width="2"/>'


def document(height: float, title: str, reading: str, parts: Sequence[str]) -> str:
    """A figure with its title, and under it how it is read; an element a line, so that versions can be compared."""
    head = [text(16, 22, title, size=15), text(16, 40, reading, colour=FAINT, size=11)]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" width="{WIDTH}" '
        f'height="{height:g}" role="img" font-family="system-ui, sans-serif"><title>{escape(title)}</title>'
        f'<desc>{escape(reading)}</desc><rect width="100%" height="100%" fill="#ffffff"/>\n'
        f"{chr(10).join([*head, *parts])}\n</svg>\n"
    )
