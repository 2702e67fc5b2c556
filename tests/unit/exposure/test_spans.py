"""Where an item's words stand in a document: what is called a match is one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from proctor.exposure.spans import matches
from tests.unit.exposure.scans import plain_words

WORDS = st.lists(st.sampled_from(("one", "two", "three", "four", "five")), max_size=25).map(" ".join)


@given(WORDS, WORDS, st.integers(1, 5))
def test_every_match_is_the_same_words_in_both_and_no_fewer_than_n(text: str, document: str, n: int) -> None:
    for match in matches(text, document.encode(), n):
        assert match.words >= n
        mine = plain_words(text[match.start : match.end])
        assert mine == plain_words(document[match.document_start : match.document_end])
        assert len(mine) == match.words


def test_a_text_that_goes_on_past_what_was_found_has_no_match_there() -> None:
    text = "how many eggs do the ducks lay in May? count those of June and of July, too, and of August"
    (match,) = matches(text, b"he asked how many eggs do the ducks lay in spring, and left", 4)
    assert (match.words, match.document_text) == (8, "how many eggs do the ducks lay in")
