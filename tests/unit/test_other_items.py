"""The benchmark's questions to which a rewording keeps its margin, against their definition."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.domain.errors import EncoderError
from proctor.perturbation.encoder import Vectors, distances
from proctor.perturbation.encoder.rough import ObservedErrors
from proctor.perturbation.kept_vectors import KeptVectors
from proctor.perturbation.other_items import OtherItems
from proctor.text.same_question import asked, asked_of_options
from tests.unit.variant_samples import HashedEncoder

ENCODER = HashedEncoder()
_QUESTIONS = st.lists(st.sampled_from([f"Which {word} is meant?" for word in "abcdefghijkl"]), min_size=2, unique=True)


def _others(*questions: str) -> OtherItems:
    return OtherItems(questions, ENCODER.encode)


def _nearest(others: OtherItems, question: str, rewording: str) -> float:
    return others.nearest([(question, rewording)], ENCODER.encode([rewording]))[0]


def _distance(left: str, right: str) -> float:
    return float(distances(ENCODER.encode([left]), ENCODER.encode([right]))[0])


@given(_QUESTIONS, st.text(alphabet="mnopq ", min_size=1, max_size=20))
def test_the_nearest_other_question_is_the_nearest_of_all_but_the_own(questions: list[str], rewording: str) -> None:
    expected = min(_distance(rewording, other) for other in questions[1:])
    assert _nearest(_others(*questions), questions[0], rewording) == pytest.approx(expected, abs=1e-6)


@given(_QUESTIONS, st.randoms(), st.integers(1, 4))
def test_neither_order_nor_repetition_changes_anything(questions: list[str], random: Random, times: int) -> None:
    shuffled = questions * times
    random.shuffle(shuffled)
    assert _others(*shuffled).digest == _others(*questions).digest
    assert _others(*shuffled).questions == _others(*questions).questions
    assert _others(*shuffled) == _others(*questions)


def test_what_differs_in_case_spaces_or_the_mark_at_its_end_is_one_question() -> None:
    one = _others("A cell is:", "a cell  is", "A cell is ___", "A cell is…")
    assert len(one.questions) == 1
    assert _nearest(one, "A cell is:", "What is a cell?") == 2.0


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("Which of these is a mammal?", "Which of the following is a mammal?"),
        ("Which one of the following is correct?", "Which of those is correct:"),
        ("Which of the following statements is true?", "Which of these is true?"),
    ],
)
def test_items_that_differ_in_how_they_point_at_their_options_are_told_apart_by_these(left: str, right: str) -> None:
    assert asked_of_options(left) == asked_of_options(right)
    others = _others(left, right, "Why is the sky blue?")
    rewording = "What is true of the options?"
    assert _nearest(others, left, rewording) == pytest.approx(_distance(rewording, "Why is the sky blue?"), abs=1e-6)


def test_another_items_question_word_for_word_is_that_item_however_alike_they_are() -> None:
    others = _others("Which of these is a mammal?", "Which of the following is a mammal?", "Why?")
    assert _nearest(others, "Which of these is a mammal?", "Which of the following is a mammal?") == 0.0
    assert _nearest(others, "Which of these is a mammal?", "why") == 0.0
    assert _nearest(others, "Which of these is a mammal?", "Which of these is a mammal") > 0.0


@pytest.mark.parametrize(
    ("left", "right"), [("x^2 + 1 in Z_2", "x^2 - 1 in Z_2"), ("Which is a solid?", "Which is not a solid?")]
)
def test_signs_and_small_words_tell_questions_apart(left: str, right: str) -> None:
    assert asked(left) != asked(right)
    assert asked_of_options(left) != asked_of_options(right)


def test_nothing_is_embedded_before_it_is_needed_and_then_each_question_once() -> None:
    asked_for: list[str] = []

    def encode(texts: Sequence[str]) -> Vectors:
        asked_for.extend(texts)
        return ENCODER.encode(texts)

    others = OtherItems(["a", "b", "a"], encode)
    assert others.digest
    assert others.nearest([], np.zeros((0, 0), dtype=np.float32)) == []
    assert asked_for == []
    others.nearest([("a", "c")], ENCODER.encode(["c"]))
    others.nearest([("b", "c")], ENCODER.encode(["c"]))
    assert asked_for == ["a", "b"]


@given(_QUESTIONS, st.floats(0.05, 1.5))
def test_near_pairs_are_all_pairs_below_a_distance(questions: list[str], below: float) -> None:
    others = _others(*questions)
    rows = range(len(others.questions))
    expected = {
        (left, right)
        for left in rows
        for right in rows
        if left < right and _distance(others.questions[left], others.questions[right]) < below
    }
    found = others.near_pairs(below)
    assert {(left, right) for _, left, right in found} == expected
    assert [pair[0] for pair in found] == sorted(pair[0] for pair in found)


class _Counting(HashedEncoder):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def encode(self, texts: Sequence[str]) -> Vectors:
        self.calls += 1
        return super().encode(texts)


def test_vectors_are_kept_for_the_next_build_and_made_again_where_they_are_damaged(tmp_path: Path) -> None:
    encoder = _Counting()
    texts = ["one", "two", "three"]
    made = KeptVectors(tmp_path, encoder).encode(texts)
    assert np.array_equal(KeptVectors(tmp_path, encoder).encode(texts), made)
    assert encoder.calls == 1
    (file,) = tmp_path.iterdir()
    for damaged in (b"", b"no array", file.read_bytes()[:-9]):
        file.write_bytes(damaged)
        assert np.array_equal(KeptVectors(tmp_path, encoder).encode(texts), made)
    assert encoder.calls == 4
    np.save(file, np.zeros((3, 4), dtype=np.float32))
    assert np.array_equal(KeptVectors(tmp_path, encoder).encode(texts), made)
    KeptVectors(tmp_path, encoder).encode(texts[:2])
    assert len(list(tmp_path.iterdir())) == 2


def test_vectors_of_another_encoder_are_others_and_those_of_a_rough_one_the_exact_ones(tmp_path: Path) -> None:
    encoder, other = _Counting(), _Counting()
    other.fingerprint = "sha256:other"
    KeptVectors(tmp_path, encoder).encode(["one"])
    KeptVectors(tmp_path, other).encode(["one"])
    assert other.calls == 1

    class Rough(HashedEncoder):
        exact, errors = encoder, ObservedErrors()

        def encode_roughly(self, texts: Sequence[str]) -> Vectors:
            raise EncoderError("never asked")

    KeptVectors(tmp_path, Rough()).encode(["one"])
    assert encoder.calls == 1


def test_a_folder_that_cannot_be_written_costs_time_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert KeptVectors(tmp_path / "file" / "vectors", ENCODER).encode(["one"]).shape[0] == 1
