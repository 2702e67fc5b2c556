"""Charts outside of the report: the same bytes each time, words that can be read, and hostile names that do nothing."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import matplotlib
import pytest
from rich.cells import cell_len

from proctor.domain.errors import BadInputError
from proctor.evidence.noise.summary import noise_summary
from proctor.studies import calibration_plots, noise_plots
from proctor.studies.charts import as_svg, chart_axes, chart_style, short_name
from tests.support import REPOSITORY
from tests.unit.test_gate_calibration import _calibrate, _pairs
from tests.unit.test_noise import setting

SVG = "{http://www.w3.org/2000/svg}"
DRAW = """
import sys
from proctor.studies.charts import as_svg, chart_axes, chart_style
with chart_style():
    axes = chart_axes(100)
    axes.plot([0, 1], [1, 0], "o-", label="down")
    axes.legend()
    sys.stdout.write(as_svg(axes, "Title", "reading"))
assert "matplotlib.pyplot" not in sys.modules, "pyplot keeps figures, and looks for a screen"
"""


def drawn(title: str = "Title", reading: str = "reading") -> str:
    with chart_style():
        axes = chart_axes(100)
        axes.plot([0, 1], [1, 0], "o-", label="down")
        axes.legend()
        return as_svg(axes, title, reading)


def words(document: str) -> list[str]:
    """All that is to be read in a document."""
    return [one.text or "" for one in ET.fromstring(document).iter(f"{SVG}text")]


def charts_of(name: str) -> Iterator[str]:
    """Every chart that can show a foreign name, with this one."""
    yield from noise_plots.figures(noise_summary([setting(name, 1, 10, 9), setting("other", 1, 9, 9)])).values()
    calibration = _calibrate(_pairs()).model_copy(update={"benchmark": name, "encoder": name})
    yield from calibration_plots.figures(calibration).values()


def test_a_chart_has_a_title_a_description_and_words_that_stay_words() -> None:
    document = drawn("Gain & loss", "points <of> 100")
    root = ET.fromstring(document)
    assert root.get("role") == "img"
    assert root.findtext(f"{SVG}title") == "Gain & loss"
    assert root.findtext(f"{SVG}desc") == "points <of> 100"
    assert {"Gain & loss", "points <of> 100", "down", "0.50"} <= set(words(document))


def test_every_axis_says_what_it_shows_and_in_what_unit() -> None:
    pictures = noise_plots.figures(noise_summary([setting("m", 1, 10, 9), setting("m", 2, 9, 9, invalid=100)]))
    pictures |= calibration_plots.figures(_calibrate(_pairs()))
    for name, titles in {
        "figure-2-gains.svg": {"router count", "m", "+1", "invalid"},
        "figure-3-models.svg": {"positive excess, points", "mean of those above", "largest", "1 of 1 above"},
        "figure-4-router-counts.svg": {"positive excess, points", "router count", "1 of 1"},
        "figure-5-transitions.svg": {"questions, sum over models", "router count", "improve", "degrade", "net"},
        "distances.svg": {"share of the pairs of a kind, %", "semantic distance", "article window, 0.15 to 0.45"},
        "roc.svg": {"equivalent pairs admitted, %", "different pairs admitted, %", "chance: area 0.5"},
    }.items():
        assert titles <= set(words(pictures.pop(name))), name
    assert not pictures


def test_the_same_numbers_give_the_same_bytes_whatever_matplotlib_is_set_to(tmp_path: Path) -> None:
    (tmp_path / "matplotlibrc").write_text("lines.linewidth: 9\nsvg.fonttype: path\nfont.family: serif\n")
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "services"), "MPLBACKEND": "pdf"}
    run = subprocess.run(
        [sys.executable, "-c", DRAW], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert run.stdout == drawn() == drawn()
    assert not run.stderr


def test_a_home_that_cannot_be_written_to_is_no_matter(tmp_path: Path) -> None:
    settled = {name: text for name, text in os.environ.items() if not name.startswith(("XDG_", "MPL"))}
    environment = {**settled, "PYTHONPATH": str(REPOSITORY / "services"), "HOME": "/proc/none"}
    run = subprocess.run([sys.executable, "-c", DRAW], env=environment, capture_output=True, text=True, check=True)
    assert (run.stdout, run.stderr) == (drawn(), "")


def test_drawing_leaves_matplotlib_as_it_was() -> None:
    before = dict(matplotlib.rcParams)
    level = logging.getLogger("matplotlib").level
    drawn()
    assert dict(matplotlib.rcParams) == before
    assert logging.getLogger("matplotlib").level == level


@pytest.mark.parametrize(
    "name",
    [
        "$\\frac$",
        "$x^2$ \\$",
        "<script>alert(1)</script>",
        "]]>--&amp;<!--",
        "_hidden from legends",
        "x" * 10_000,
        "日本語" * 3_000,
        "e" + "\u0301" * 10_000,
        "two\nlines \x1b[31m \u202e \ud800 \ufffe",
    ],
    ids=["command", "mathtext", "markup", "comment", "underscore", "long", "wide", "marks", "invisible"],
)
def test_a_hostile_name_is_shown_and_not_obeyed(name: str) -> None:
    for document in charts_of(name):
        root = ET.fromstring(document)
        assert not list(root.iter(f"{SVG}script"))
        assert max(map(cell_len, words(document))) < 140
        assert len(document) < 60_000
    shown = [text for document in charts_of(name) for text in words(document)]
    assert any(short_name(name, 26) in text for text in shown)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("short", "short"),
        ("just as long", "just as long"),
        ("a letter more", "a letter mo…"),
        ("日本語日本語", "日本語日本語"),
        ("日本語日本語日", "日本語日本…"),
        ("a\n b\u200b", "a b⟦U+200B⟧"),
    ],
)
def test_a_name_that_is_too_wide_is_cut(name: str, shown: str) -> None:
    assert short_name(name, 12) == shown


def test_without_matplotlib_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(BadInputError, match=r"^charts need matplotlib: pip install 'proctor\[plots\]'$"):
        drawn()
