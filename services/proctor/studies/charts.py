"""One form for all charts outside of the report: SVG documents that stand alone, drawn by matplotlib.

matplotlib is the extra `plots` and is loaded by the first chart. Sizes are CSS pixels, at 96 to an inch.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html import escape
from io import StringIO
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len, set_cell_size

from proctor.domain.errors import BadInputError
from proctor.scorer.page.visible import visible

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.container import Container
    from matplotlib.figure import Figure

WIDTH_PX: Final = 760
INK, FAINT, GRID = "#1f2328", "#57606a", "#d0d7de"
#: Okabe and Ito's colours, which every common form of colour vision tells apart.
ORANGE, BLUE, GREEN = "#d55e00", "#0072b2", "#009e73"

_PX_PER_INCH: Final = 96
#: Of a point, in which matplotlib takes the sizes of letters.
_PT_PER_PX: Final = 72 / _PX_PER_INCH
SMALL_PT: Final = 11 * _PT_PER_PX
_LEFT_PX: Final = 16
_LEGEND_DOWN_PX: Final = 48
_STYLE: Final = {
    # Ids follow from what is drawn, and not from chance: the same numbers give the same bytes.
    "svg.hashsalt": "proctor",
    # Words stay words, for search, screen readers and comparing two versions.
    "svg.fonttype": "none",
    # A model may be called `$\frac$`.
    "text.parse_math": False,
    # It comes with matplotlib and is wide: where a reader has another, the words take less room than was kept.
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 12 * _PT_PER_PX,
    "legend.fontsize": SMALL_PT,
    "legend.frameon": False,
    "legend.borderpad": 0.0,
    "legend.borderaxespad": 0.0,
    "text.color": INK,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": FAINT,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.major.size": 0.0,
    "ytick.major.size": 0.0,
    "xtick.major.pad": 5.0,
    "ytick.major.pad": 5.0,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.linewidth": 0.75,
    "grid.color": GRID,
    "grid.linewidth": 0.75,
    "lines.linewidth": 1.5,
    "lines.markersize": 5.0,
    "axes.spines.left": False,
    "axes.spines.right": False,
    "axes.spines.top": False,
    # Both ends of an axis are ticks.
    "axes.autolimit_mode": "round_numbers",
    "axes.xmargin": 0.0,
    "axes.ymargin": 0.0,
}


@contextmanager
def chart_style() -> Iterator[None]:
    """What is drawn within has Proctor's form, whatever the settings of matplotlib on this machine.

    Raises:
        BadInputError: where matplotlib is not installed.
    """
    log = logging.getLogger("matplotlib")
    level = log.level
    # It tells of its caches: of fonts, and of folders that it may not write to.
    log.setLevel(logging.ERROR)
    try:
        try:
            from matplotlib import style
        except ImportError as error:
            raise BadInputError(f"charts need {error.name}: pip install 'proctor[plots]'") from None
        with style.context(_STYLE, after_reset=True), warnings.catch_warnings():
            # A letter that its font lacks stands in the document all the same, and the reader's fonts have it.
            warnings.filterwarnings("ignore", message="Glyph .* missing from font")
            yield
    finally:
        log.setLevel(level)


def chart_axes(
    height_px: float,
    *,
    width_px: float = WIDTH_PX,
    left_px: float = 62,
    right_px: float = 24,
    top_px: float = 64,
    below_px: float = 50,
) -> Axes:
    """Axes of this height in a figure of this width, with room around them; the upper 48 px are the title's."""
    from matplotlib.figure import Figure

    whole_px = top_px + height_px + below_px
    figure = Figure(figsize=(width_px / _PX_PER_INCH, whole_px / _PX_PER_INCH))
    across = (width_px - left_px - right_px) / width_px
    return figure.add_axes((left_px / width_px, below_px / whole_px, across, height_px / whole_px))


def legend_below(axes: Axes, drawn: Sequence[Artist | Container], *, columns: int = 2) -> None:
    """Name what was drawn below the axes' own title, column by column."""
    height_px = axes.bbox.height / _figure(axes).dpi * _PX_PER_INCH
    place = (0, -_LEGEND_DOWN_PX / height_px)
    axes.legend(handles=drawn, loc="upper left", bbox_to_anchor=place, ncols=columns, columnspacing=3, handlelength=2.8)


def as_svg(axes: Axes, title: str, reading: str) -> str:
    """The figure of some axes with its title, and under it how it is read; both are for screen readers as well."""
    figure = _figure(axes)
    width_px, height_px = figure.get_size_inches() * _PX_PER_INCH
    for down_px, words, size_px, colour in ((22, title, 15, INK), (40, reading, 11, FAINT)):
        place = (_LEFT_PX / width_px, 1 - down_px / height_px)
        figure.text(*place, words, fontsize=size_px * _PT_PER_PX, color=colour)
    sheet = StringIO()
    # Neither a date nor matplotlib's version: what is drawn alike is alike.
    about = {"Title": title, "Date": None, "Creator": None, "Format": None, "Type": None}
    figure.savefig(sheet, format="svg", metadata=about)
    described = sheet.getvalue().replace("</title>", f"</title>\n <desc>{escape(reading)}</desc>", 1)
    return described.replace("<svg ", '<svg role="img" ', 1)


def _figure(axes: Axes) -> Figure:
    figure = axes.get_figure(root=True)
    assert figure is not None, "axes that were removed"
    return figure


def short_name(name: str, cells: int) -> str:
    """A foreign name in one line that is at most so many letters wide, what cannot be seen in it spelled out."""
    # By letters as well: marks that stand on the letter before them take no width, and a name may consist of them.
    shown = " ".join(visible(name[: cells + 1]).split())
    if len(name) <= cells and cell_len(shown) <= cells:
        return shown
    return f"{set_cell_size(shown, cells - 1).rstrip()}…"
