"""The form in which items and corpora are compared, and its compiled twin."""

from __future__ import annotations

import unicodedata

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from proctor.exposure import kernel
from proctor.exposure.letters import letters
from proctor.text.overlap_words import overlap_words, without_markup

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=80) | st.text(
    st.sampled_from("aB9 ,.-\n½ﬁé\u0301\u200b\u00adßİΣ漢かガ한\u1112각㎏Ⅳ²\u0915\u093fא\u05b8🙂_'’"), max_size=60
)


def forms(text: str) -> list[str]:
    return [word.form for word in overlap_words(text)]


def compiled(encoded: bytes) -> tuple[list[int], list[tuple[int, int]]]:
    room = len(encoded) + 1
    keys, firsts, lasts = np.empty(room, np.uint64), np.empty(room, np.int64), np.empty(room, np.int64)
    data = np.frombuffer(bytearray(encoded or b" "), dtype=np.uint8)
    count = kernel.read_words(data, 0, len(encoded), letters(), keys, firsts, lasts)
    return keys[:count].tolist(), list(zip(firsts[:count].tolist(), lasts[:count].tolist(), strict=True))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Janet’s ducks lay 16 eggs.", "janet's  DUCKS\nlay 16 eggs"),
        ("naïve café", "nai\u0308ve cafe\u0301"),
        ("zero\u200bwidth soft\u00adhyphen", "zerowidth softhyphen"),
        ("**bold** _and_ `code`", "bold and code"),
        ("ﬁne ２０ Ⅳ", "fine 20 iv"),
        ("STRASSE", "straße"),
        ("한국", "\u1112\u1161\u11ab\u1100\u116e\u11a8"),
    ],
)
def test_texts_that_differ_in_wrapping_case_marks_and_signs_have_the_same_words(one: str, other: str) -> None:
    assert forms(one) == forms(other)


def test_digits_are_kept_and_signs_part_words() -> None:
    words = ["3", "50", "for", "2", "4", "re", "wrapped", "eggs", "don", "t"]
    assert forms("$3.50 for 2-4 re-wrapped eggs, don't") == words


def test_a_script_without_spaces_has_a_word_a_character() -> None:
    assert forms("漢字 kana かな") == ["漢", "字", "kana", "か", "な"]


def test_markup_is_taken_out_where_that_is_asked() -> None:
    text = "See [the ducks](https://x.org/a_b) in <b>bold</b>\n```python\n$\\frac{1}{2}$ of \\textbf{them}"
    assert forms(without_markup(text)) == ["see", "the", "ducks", "in", "bold", "1", "2", "of", "them"]


@given(TEXTS)
def test_composed_and_decomposed_texts_have_the_same_words(text: str) -> None:
    wanted = forms(text)
    assert forms(unicodedata.normalize("NFC", text)) == wanted
    assert forms(unicodedata.normalize("NFKD", text)) == wanted


@given(TEXTS)
@example("a½b")
@example("\u0301")
def test_the_compiled_reader_finds_the_same_words_at_the_same_places(text: str) -> None:
    keys, places = compiled(text.encode())
    words = overlap_words(text)
    ends = [len(text[:place].encode()) for place in range(len(text) + 1)]
    assert places == [(ends[word.start], ends[word.end]) for word in words]
    by_form = {word.form: compiled(word.form.encode())[0] for word in words}
    assert all(by_form[word.form] == [key] for word, key in zip(words, keys, strict=True))
    assert len(set(keys)) == len({word.form for word in words})


@given(st.binary(max_size=60))
def test_bytes_that_are_no_text_are_read_without_going_past_their_end(data: bytes) -> None:
    _, places = compiled(data)
    assert all(0 <= first < last <= len(data) for first, last in places)
    assert [first for first, _ in places] == sorted(first for first, _ in places)
