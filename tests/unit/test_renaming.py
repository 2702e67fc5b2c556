"""A renaming in one pass, against the pattern that defines it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from proctor.perturbation.admission.renaming import renamed, undone


def _by_pattern(text: str, names: Mapping[str, str]) -> str:
    """The definition: an alternation of the names, the longest first, each bounded where it begins or ends a word."""

    def bounded(name: str) -> str:
        before = r"(?<!\w)" if name[0].isalnum() else ""
        after = r"(?!\w)" if name[-1].isalnum() else ""
        return before + re.escape(name) + after

    if not names:
        return text
    longest_first = sorted(names, key=len, reverse=True)
    return re.sub("|".join(map(bounded, longest_first)), lambda match: names[match.group()], text)


_LETTERS = st.sampled_from(["a", "b", "A", "_", "$", " ", ".", "é", "5", "²", "'"])
_TEXTS = st.lists(_LETTERS, max_size=30).map("".join)
_NAMES = st.dictionaries(
    st.lists(_LETTERS, min_size=1, max_size=4).map("".join), st.text(max_size=3), min_size=0, max_size=5
)


@given(_TEXTS, _NAMES)
def test_names_are_replaced_as_by_one_pattern_of_them_all(text: str, names: dict[str, str]) -> None:
    assert renamed(text, names) == _by_pattern(text, names)


def test_of_names_that_begin_together_the_longer_is_meant() -> None:
    assert renamed("New York and New Yorkers, New", {"New": "Old", "New York": "Rome"}) == ("Rome and Old Yorkers, Old")


def test_what_was_put_in_is_not_replaced_again() -> None:
    assert renamed("Ann and Bob", {"Ann": "Bob", "Bob": "Ann"}) == "Bob and Ann"


def test_a_renaming_that_cannot_be_read_changes_nothing() -> None:
    for provenance in ({}, {"entity_rename": 3}, {"entity_rename": {"renamed": ["Ann"]}}):
        assert undone("Ann", provenance) == "Ann"
    assert undone("Bob pays", {"entity_rename": {"renamed": {"Ann": "Bob", "x": "", "y": 3}}}) == "Ann pays"
