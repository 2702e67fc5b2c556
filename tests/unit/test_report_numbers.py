"""Numbers on the report's page, as words and as pictures."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.domain.evidence import Estimate
from proctor.scorer.page import phrases
from proctor.scorer.page.phrases import Side
from proctor.scorer.page.plots import Axis, Interval, Limit, interval_plot, nice_axis, rank_plot


def _estimate(value: float | None, low: float | None, high: float | None) -> Estimate:
    return Estimate(value=value, low=low, high=high, level=0.95, method="test")


def test_a_number_is_never_rounded_onto_a_limit_that_it_is_not() -> None:
    assert phrases.rounded(4.96, 1, apart_from=(5.0,)) == "4.96"
    assert phrases.rounded(5.004, 1, apart_from=(5.0,)) == "5.004"
    assert phrases.rounded(5.0, 1, apart_from=(5.0,)) == "5.0"
    assert phrases.p_value(0.04996, apart_from=(0.05,)) == "0.04996"


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6))
def test_rounding_keeps_to_its_side_of_the_limit(value: float, limit: float) -> None:
    shown = float(phrases.rounded(value, 1, apart_from=(limit,)).replace(phrases.MINUS, "-"))
    assert abs(shown - value) <= 0.05 + 1e-9


def test_signs_units_and_tiny_numbers_read_well() -> None:
    assert phrases.rounded(-0.04, 1) == "0.0"
    assert phrases.points(-5.53) == "−5.5\N{NO-BREAK SPACE}points"
    assert phrases.points(1.0) == "1.0\N{NO-BREAK SPACE}point"
    assert phrases.points(None) == "undefined"
    assert phrases.percent(0.8125) == "81.2\N{NO-BREAK SPACE}%"
    assert phrases.p_value(0.0) == "<\N{NO-BREAK SPACE}0.0001"
    assert phrases.p_value(0.00123) == "0.0012"
    assert phrases.p_value(1.0) == "1.00"
    assert phrases.counted(1, "item", "items") == "1 item"
    assert phrases.counted(1500, "item", "items") == "1,500 items"


def test_a_sentence_is_typeset() -> None:
    assert phrases.sentence("it is -5.5 points (95 % interval -6 to 2e-3)") == (
        "It is −5.5\N{NO-BREAK SPACE}points (95\N{NO-BREAK SPACE}% interval −6 to 2e-3)."
    )
    assert phrases.sentence("the model-7 did x-1") == "The model-7 did x-1."
    assert phrases.sentence("") == ""


@pytest.mark.parametrize(
    ("estimate", "words"),
    [
        (_estimate(1.0, 0.5, 1.5), "0.5 to 1.5 points"),
        (_estimate(1.0, None, 1.5), "1.5 points or less"),
        (_estimate(1.0, 0.5, None), "0.5 points or more"),
        (_estimate(None, None, None), "unbounded"),
    ],
)
def test_an_interval_says_where_it_has_no_bound(estimate: Estimate, words: str) -> None:
    assert phrases.interval(estimate, digits=1, unit="points").replace(phrases.NBSP, " ") == words


@pytest.mark.parametrize(
    ("estimate", "side"),
    [
        (_estimate(1, -1, 5), Side.WITHIN),
        (_estimate(12, 10.1, 14), Side.PAST),
        (_estimate(12, 10, 14), Side.ACROSS),
        (_estimate(7, 6, 8), Side.ACROSS),
        (_estimate(1, None, 4), Side.WITHIN),
        (_estimate(12, 11, None), Side.PAST),
        (_estimate(12, None, None), Side.ACROSS),
        (_estimate(None, 0, 1), Side.UNKNOWN),
    ],
)
def test_the_side_of_the_limits_is_read_from_the_bounds(estimate: Estimate, side: Side) -> None:
    assert phrases.side(estimate, allowed=5, blocked=10) is side


@given(st.lists(st.floats(-1e9, 1e9), max_size=8))
def test_an_axis_covers_its_values_with_a_few_round_ticks(values: list[float]) -> None:
    axis = nice_axis(values)
    assert axis.low < axis.high
    slack = 1e-6 * (axis.high - axis.low)
    assert all(axis.low - slack <= value <= axis.high + slack for value in values)
    assert 2 <= len(axis.ticks) <= 8
    assert list(axis.ticks) == sorted(set(axis.ticks))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_position_is_inside_the_picture_whatever_the_value(value: float) -> None:
    assert 0 < Axis(-3, 7, (-3, 7)).percent(value) < 100


def test_an_interval_plot_is_well_formed_and_draws_what_it_is_given() -> None:
    plot = interval_plot(
        "p",
        title="<b>Title</b>",
        description="\u202eoverride",
        rows=[
            Interval("<script>", 3.0, 1.0, 6.0, "3 (1 to 6)"),
            Interval("open", 2.0, None, 4.0, "2", "square"),
            Interval("none", None, None, None, "undefined", "diamond"),
        ],
        axis=nice_axis([0, 10]),
        limits=[Limit(5, "limit 5", "block"), Limit(50, "off the picture", "review")],
    )
    root = ElementTree.fromstring(str(plot))
    classes = [element.get("class") for element in root.iter()]
    assert root.get("role") == "img"
    assert root.get("aria-labelledby") == "p-title p-desc"
    assert root.findtext("title") == "<b>Title</b>"
    assert root.findtext("desc") == "⟦U+202E⟧override"
    assert classes.count("interval circle") == classes.count("interval square") == 1
    assert (classes.count("cap circle"), classes.count("cap square")) == (2, 1)
    assert "off the picture" not in str(plot)
    assert "undefined" in str(plot)


def test_a_plots_positions_are_to_scale() -> None:
    plot = interval_plot(
        "p", title="t", description="d", rows=[Interval("r", 5.0, 2.5, 7.5, "")], axis=nice_axis([0, 10]), compact=True
    )
    drawn = re.search(r'class="interval circle" x1="([\d.]+)%" x2="([\d.]+)%"', str(plot))
    marker = re.search(r'class="marker circle" x="([\d.]+)%"', str(plot))
    assert drawn is not None
    assert marker is not None
    assert [float(drawn[1]), float(marker[1]), float(drawn[2])] == pytest.approx([25.75, 50.0, 74.25])


@pytest.mark.parametrize("n", [1, 2, 599, 601, 100_000])
def test_a_rank_plot_stays_small_and_well_formed_whatever_the_number_of_items(n: int) -> None:
    falling = [1 - i / n for i in range(n)]
    plot = rank_plot("r", title="t", description="d", suspicions=falling, n_flagged=n // 2, n_detailed=min(n, 50))
    ElementTree.fromstring(str(plot))
    assert len(plot) < 40_000
    assert rank_plot("r", title="t", description="d", suspicions=[], n_flagged=0, n_detailed=0) == ""
