"""Canonical JSON is RFC 8785's, whichever encoder writes it."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from proctor.domain.canonical import canonical_json


class Colour(StrEnum):
    RED = "red"


_TEXT = st.text(st.characters(exclude_categories=["Cs"]))
_NUMBERS = st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(allow_nan=False, allow_infinity=False)
_PLAIN = st.recursive(
    st.none() | st.booleans() | _NUMBERS | _TEXT | st.just(Colour.RED),
    lambda inner: st.lists(inner) | st.dictionaries(_TEXT, inner) | st.tuples(inner, inner),
)


@given(_PLAIN)
def test_any_plain_data_has_the_bytes_of_the_reference_implementation(value: Any) -> None:
    assert canonical_json(value) == rfc8785.dumps(value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_float_is_written_as_ecmascript_writes_it(value: float) -> None:
    assert canonical_json(value) == rfc8785.dumps(value)
    assert float(json.loads(canonical_json(value))) == value


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ([1.0, -0.0, 1e21, 1e-7, 1e16, 0.0001, 123456.5], b"[1,0,1e+21,1e-7,10000000000000000,0.0001,123456.5]"),
        ({"\U0001f600": 1, "\ufb33": 2, "b": 3}, '{"b":3,"\U0001f600":1,"\ufb33":2}'.encode()),
        ({"text": '\x00\x1f\x7f\u2028\\"/\n'}, b'{"text":"\\u0000\\u001f\x7f\xe2\x80\xa8\\\\\\"/\\n"}'),
        ({Colour.RED: [Colour.RED, "\u20ac"]}, '{"red":["red","\u20ac"]}'.encode()),
        ({"colour": Colour.RED, "of": (True, None)}, b'{"colour":"red","of":[true,null]}'),
    ],
)
def test_values_that_encoders_differ_on_are_written_as_the_rfc_says(value: Any, written: bytes) -> None:
    assert canonical_json(value) == written


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 2**53, -(2**53), "\ud800", {"\udfff": 1}, [{1, 2}]])
def test_what_the_form_cannot_hold_is_refused(value: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        canonical_json({"deep": [value]})
