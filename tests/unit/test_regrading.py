"""Grading a log's texts again: by which extractor, and what counts as having read something."""

from __future__ import annotations

import pytest

from proctor.domain.errors import BadInputError
from proctor.domain.run_log import LoggedAnswer, RunLog
from proctor.grading import EXTRACTORS
from proctor.grading.regrading import applicable_extractors, extractor_of_texts, regrade, why_not_regraded

NUMERIC, EXACT = EXTRACTORS["numeric"], EXTRACTORS["exact"]


def log(*rows: tuple[str | None, str | None], error: bool = False) -> RunLog:
    """A run of (text, expected), every answer wrong as logged; with an error row at its end."""
    answers = [LoggedAnswer(f"i{n}", False, n + 2, text=text, expected=want) for n, (text, want) in enumerate(rows)]
    if error:
        answers.append(LoggedAnswer("broken", None, 99, error="no answer came"))
    return RunLog("log.csv", "csv", "as logged", tuple(answers))


def test_texts_are_graded_again_and_named_so_that_nobody_takes_the_grades_for_the_logs() -> None:
    run = regrade(log(("so it is 18.", "18"), ("it is 19", "18"), ("I do not know", "18")), NUMERIC)
    assert (run.extractor, run.regraded, run.source) == ("proctor:numeric", True, "log.csv")
    assert [answer.correct for answer in run.answers] == [True, False, False]
    assert [answer.answer for answer in run.answers] == ["18", "19", ""]
    assert [answer.unread for answer in run.answers] == [False, False, True]


def test_an_error_row_stays_one_and_needs_neither_text_nor_target() -> None:
    run = regrade(log(("18", "18"), error=True), NUMERIC)
    assert [(answer.correct, answer.error) for answer in run.answers] == [(True, None), (None, "no answer came")]


def test_a_worked_solution_is_a_target_by_the_answer_it_ends_in() -> None:
    solution = "He buys 9 and then 9 more, which makes\n#### 18"
    for extractor in (NUMERIC, EXACT):
        assert [a.correct for a in regrade(log(("18", solution), ("17", solution)), extractor).answers] == [True, False]


def test_exact_reads_only_texts_that_are_no_longer_than_the_longest_target() -> None:
    run = regrade(log(("Paris.", "paris"), ("It is New York", "New York"), ("", "Rome")), EXACT)
    assert [answer.correct for answer in run.answers] == [True, False, False]
    assert [answer.unread for answer in run.answers] == [False, True, True]


def test_numeric_applies_where_every_target_of_both_runs_is_a_number() -> None:
    numbers, words = log(("it is 18", "18")), log(("it is red", "red"))
    assert [extractor.name for extractor in applicable_extractors([numbers, numbers])] == ["numeric", "exact"]
    assert [extractor.name for extractor in applicable_extractors([numbers, words])] == ["exact"]


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (log(("18", "18"), (None, "18")), r"^log\.csv:3: the item 'i1' has no text"),
        (log(("18", "18"), ("18", None)), r"^log\.csv:3: the item 'i1' has no expected answer"),
        (log(("18", "18"), ("18", "red")), r"^log\.csv:3: the expected answer 'red' of the item 'i1' is not a number"),
    ],
)
def test_texts_that_cannot_be_graded_again_are_refused_with_file_and_line(run: RunLog, words: str) -> None:
    assert why_not_regraded(run, NUMERIC) is not None
    with pytest.raises(BadInputError, match=words):
        regrade(run, NUMERIC)


@pytest.mark.parametrize("name", ["choice_letter", "strict-match", ""])
def test_an_extractor_that_cannot_grade_texts_alone_is_refused(name: str) -> None:
    with pytest.raises(BadInputError, match="use numeric or exact"):
        extractor_of_texts(name)
