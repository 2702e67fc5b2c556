"""Items that share a passage, a table or a template: which are found, and which are left alone."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.text.shared_context import CONTEXT_WORDS, TEMPLATE_WORDS, Wording, related_items
from tests.support import missing, shared_data

WORDS = [f"{first}{last}" for first in ("bra", "ke", "lo", "mi", "nu", "ta") for last in ("der", "lin", "mos", "vek")]


def prose(words: int, seed: int) -> str:
    """Sentences of eight words, the last of what is left."""
    rng = random.Random(seed)
    drawn = [rng.choice(WORDS) for _ in range(words)]
    return " ".join(" ".join(drawn[start : start + 8]).capitalize() + "." for start in range(0, words, 8))


def grouped(questions: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    return related_items([Wording(question) for question in questions])


def test_questions_on_one_passage_are_a_group_wherever_it_stands() -> None:
    passage, other = prose(60, 1), prose(60, 2)
    questions = [
        f"{passage} Who wrote this?",
        f"Read this first.\n{passage}\nWhen was it written?",
        f"What does the last sentence say?\n\n{passage}",
        f"{other} Who wrote this?",
        f"Who wrote this? {other}",
        f"{prose(60, 3)} Who wrote this?",
    ]
    assert grouped(questions) == ((0, 1, 2), (3, 4))


def test_questions_on_one_table_are_a_group() -> None:
    rows = "\n".join(f"| row {place} | {place * 7} | {place * 11} |" for place in range(12))
    assert grouped([f"{rows}\nWhich is the largest?", f"Which is the smallest?\n{rows}", "Which is best?"]) == ((0, 1),)


def test_a_passage_that_runs_into_the_question_is_found_by_how_they_begin() -> None:
    start = " ".join(WORDS * 2)
    assert len(start.split()) > CONTEXT_WORDS
    assert grouped([f"{start} when the sun rose?", f"{start} and why not?", "why?"]) == ((0, 1),)


def test_items_of_one_template_are_a_group() -> None:
    def question(name: str, first: int, pronoun: str) -> str:
        return (
            f"{name} walks to school along the river every morning with {first} friends, and {pronoun} comes home by "
            f"bus after the last lesson. How many friends does {name} have?"
        )

    assert grouped([question("Ann", 3, "she"), question("José Luis", 1_200, "he"), question("Bo", 7, "they")]) == (
        (0, 1, 2),
    )


def test_short_questions_that_begin_alike_are_not_related() -> None:
    countries = [f"Country{place}" for place in range(400)]
    questions = [f"What is the capital of {name}, and on which river does it lie?" for name in countries]
    questions += [f"Which of the following statements about {word} is true?" for word in WORDS]
    assert grouped(questions) == ()


def test_options_tell_questions_apart_whose_words_are_the_same() -> None:
    stem = " ".join(WORDS[:20])
    wordings = [Wording(stem, ("yes", "no")), Wording(stem, ("never", "always")), Wording(stem, ("no", "yes"))]
    assert related_items(wordings) == ((0, 2),)


def test_the_instruction_above_every_question_is_no_context() -> None:
    instruction = prose(50, 9)
    questions = [f"{instruction}\n{prose(12, 100 + place)}?" for place in range(60)]
    assert grouped(questions) == ()
    passages = [f"{instruction}\n{prose(40, 200 + place // 3)}\n{prose(6, 300 + place)}?" for place in range(60)]
    assert [len(group) for group in grouped(passages)] == [3] * 20


def test_an_item_that_shares_with_two_groups_makes_them_one() -> None:
    one, two = prose(40, 1), prose(40, 2)
    assert grouped([f"{one} A?", f"{two} B?", f"{one} C?", f"{two} D?"]) == ((0, 2), (1, 3))
    assert grouped([f"{one} A?", f"{two} B?", f"{one} {two} C?", "D?"]) == ((0, 1, 2),)


def test_copies_are_related_however_short() -> None:
    assert related_items([Wording("2 + 2?", ("3", "4")), Wording("2  + 2?", ("4", "3")), Wording("2 + 3?")]) == (
        (0, 1),
    )


@given(st.lists(st.integers(0, 5), min_size=25, max_size=60), st.randoms(use_true_random=False))
def test_groups_are_the_passages_in_any_order(passages: list[int], rng: random.Random) -> None:
    """Of more than twenty items none with more than half is taken for an instruction."""
    counts = Counter(passages)
    common = {passage for passage, n in counts.items() if n > max(20, len(passages) / 2)}
    order = list(range(len(passages)))
    rng.shuffle(order)
    found = grouped([f"{prose(30, passages[place])} {prose(5, 50 + place)}?" for place in order])
    shared = [[at for at, place in enumerate(order) if passages[place] == one] for one in counts if one not in common]
    assert sorted(found) == sorted(tuple(places) for places in shared if len(places) > 1)


def test_ten_thousand_items_take_a_second_or_two() -> None:
    questions = [f"{prose(100, place // 5)} {prose(12, 20_000 + place)}?" for place in range(10_000)]
    started = time.process_time()
    found = grouped(questions)
    assert time.process_time() - started < 8
    assert [len(group) for group in found] == [5] * 2_000


def test_twice_the_items_take_no_more_than_some_three_times_as_long() -> None:
    def seconds(n: int) -> float:
        questions = [f"{prose(40, place // 5)} {prose(5, 20_000 + place)}?" for place in range(n)]
        taken = []
        for _ in range(3):
            started = time.process_time()
            grouped(questions)
            taken.append(time.process_time() - started)
        return min(taken)

    assert seconds(6_000) < 3.5 * seconds(3_000) + 0.1


@pytest.mark.parametrize(
    ("file", "items", "groups", "largest"),
    [
        ("high_school_us_history", 201, 63, 6),
        ("sociology", 0, 0, 0),
        ("abstract_algebra", 2, 1, 2),
    ],
)
def test_the_passages_of_mmlu_are_found(file: str, items: int, groups: int, largest: int) -> None:
    path = shared_data() / "mmlu_rephrased" / f"{file}.jsonl"
    if not path.is_file():
        missing(f"{path.name} of mmlu_rephrased is not among the data of the tests")
    rows = [json.loads(line) for line in path.read_text("utf-8").split("\n") if line.strip()]
    found = related_items([Wording(row["question"], row["choices"]) for row in rows])
    assert (sum(map(len, found)), len(found), max(map(len, found), default=0)) == (items, groups, largest)


def test_no_two_items_of_gsm8k_are_related() -> None:
    path = shared_data() / "gsm8k" / "test.jsonl"
    rows = [json.loads(line) for line in path.read_text("utf-8").split("\n") if line.strip()]
    assert len(rows) == 1_319
    assert grouped([row["question"] for row in rows]) == ()


@pytest.mark.parametrize("text", [" " * 200_000, "\n" * 200_000, "a. " * 70_000, "A" * 200_000, "1 " * 100_000])
def test_one_long_text_takes_no_longer_than_many_short_ones(text: str) -> None:
    started = time.process_time()
    assert grouped([text, "why?"]) == ()
    assert time.process_time() - started < 5


def test_nobody_falls_over_text_without_words() -> None:
    assert TEMPLATE_WORDS < CONTEXT_WORDS
    assert grouped(["", "…", "??", "\n\n", "\ud83d"]) == ((0, 3),)
