"""Numbers in any notation."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.text.numerals import numerals


def _values(*texts: str) -> Counter[Decimal]:
    return Counter(Decimal(text) for text in texts)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1,000 or one thousand or 1000", ("1000", "1000", "1000")),
        ("$3.50 and 3.5", ("3.5", "3.5")),
        ("50% of it, fifty percent, half", ("0.5", "0.5", "0.5")),
        ("25 cents is $0.25 is a quarter of a dollar", ("0.25", "0.25", "0.25")),
        ("twenty-five, one hundred and five, two million", ("25", "105", "2000000")),
        ("a dozen, half a dozen, 3 dozen", ("12", "6", "36")),
        ("1/2, 2 1/2, 2½, two and a half", ("0.5", "2.5", "2.5", "2.5")),
        ("three-quarters, one-fourth, 1 out of every 4", ("0.75", "0.25", "0.25")),
        ("twice, double, triple, sevenfold", ("2", "2", "3", "7")),
        ("the 3rd and the fifth of 96 fourth graders", ("3", "5", "96", "4")),
        ("half an hour, 30 minutes, a half-hour break", ("30", "30", "30")),
        ("-5 degrees, pages 5-6", ("-5", "5", "6")),
        ("two three-foot boards at 5:00", ("2", "3", "5")),
        ("5k, four decades, H2O, COVID-19", ("5000", "40")),
        ("dozens and hundreds of them, first and second", ()),
        ("13 of the 82, 13 out of 82", ("13", "82", "13", "82")),
        ("it is -5, minus signs: \u22125, 7-8", ("-5", "-5", "7", "8")),
        ("32 quarters, 3 quarters, 1 quarter", ("32", "0.75", "0.25")),
        ("1/2 a dozen, 1/2 of a dozen, half a dozen", ("6", "6", "6")),
        ("ten twenties, in her thirties", ("10", "20", "30")),
        ("4 times fewer, 4 times as many", ("0.25", "4")),
        ("1 percentage point, 2 percentage-points", ("0.01", "0.02")),
    ],
)
def test_every_notation_of_a_number_is_the_same_number(text: str, values: tuple[str, ...]) -> None:
    assert numerals(text) == _values(*values)


def test_thirds_are_equal_however_they_are_written() -> None:
    assert len(numerals("1/3, one third, a third of them, one in every three")) == 1


@given(st.integers(0, 10**9))
def test_grouping_digits_changes_no_number(number: int) -> None:
    assert numerals(f"{number:,} apples") == numerals(f"{number} apples") == Counter([Decimal(number)])


_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_TENS = "zero ten twenty thirty forty fifty sixty seventy eighty ninety"


def _spell(number: int) -> str:
    """English cardinals, written independently of the reader: from the top, largest scale first."""
    for scale, name in ((10**6, "million"), (1000, "thousand"), (100, "hundred")):
        if number >= scale:
            rest = f" {'and ' if scale == 100 else ''}{_spell(number % scale)}" if number % scale else ""
            return f"{_spell(number // scale)} {name}{rest}"
    if number < 20:
        return _ONES.split()[number]
    return _TENS.split()[number // 10] + (f"-{_ONES.split()[number % 10]}" if number % 10 else "")


@given(st.integers(0, 999_999_999))
def test_a_spelt_number_is_its_digits(number: int) -> None:
    assert numerals(f"she has {_spell(number)} shells") == Counter([Decimal(number)])


@given(st.text(max_size=200))
def test_no_text_stops_the_reader(text: str) -> None:
    numerals(text)
