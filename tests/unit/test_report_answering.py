"""What a report shows of an answering check, and that one without a check is as it was."""

from __future__ import annotations

import pytest

from proctor.domain.answering_check import AnswerCount, AnsweringCheck, HeldVariant, SolverAnswers, SolverFacts
from proctor.scorer.page.html import render
from proctor.scorer.report.answering import check_limitations
from proctor.scorer.report.document import Report, to_json
from tests.report_samples import blocked

SOLVER = SolverFacts(model="org/solver<b>", digests=(), calls=900, failed=3, items=60, known=55, skill=0.9, heard=True)
HELD = HeldVariant(
    item_id="facts-0001",
    variant_id="0123456789abcdef",
    finding="answers_disagree",
    question="What is <script>alert(1)</script> governed from?",
    p=2 / 252,
    answers=(
        SolverAnswers(
            solver="org/solver<b>",
            item=(AnswerCount(answer="Orvane", n=5),),
            rewording=(AnswerCount(answer="<i>Teluria", n=4), AnswerCount(answer=None, n=1)),
        ),
    ),
)
CHECK = AnsweringCheck(
    solvers=(SOLVER,), samples=5, alpha=0.05, findings={"agree": 170, "answers_disagree": 1}, held=1, listed=(HELD,)
)


@pytest.fixture(scope="module")
def report() -> Report:
    solvers = [{"model": "org/solver", "endpoint": "solver"}]
    return blocked(
        n_items=60, leaked=0.3, knows=0.5, changes={"perturbation_config": {"answering_check": {"solvers": solvers}}}
    ).report()


def with_check(report: Report, check: AnsweringCheck) -> Report:
    return report.model_copy(update={"variants": report.variants.model_copy(update={"answering_check": check})})


def test_the_page_shows_solvers_and_what_is_held_with_its_answers_as_text(report: Report) -> None:
    page = render(with_check(report, CHECK))
    for words in (
        "Answering check", "1 rewording was held for reading", "170 agree, 1 answers disagree", "55 of 60",
        "5× <bdi>Orvane</bdi>", "4× <bdi>&lt;i&gt;Teluria</bdi>", "unreadable", "p 0.0079", "0123456789abcdef",
    ):  # fmt: skip
        assert words in page, words
    assert "<script>alert" not in page
    assert "solver<b>" not in page


def test_a_held_rewording_that_is_asked_all_the_same_is_called_so(report: Report) -> None:
    kept = CHECK.model_copy(update={"listed": (HELD.model_copy(update={"kept": True, "p": None}),), "held": 0})
    page = render(with_check(report, kept))
    assert "asked all the same" in page
    assert "0 rewordings were held" in page


def test_without_a_check_nothing_of_it_stands_in_document_or_page(report: Report) -> None:
    assert b"answering_check" not in to_json(blocked(n_items=60, leaked=0.3, knows=0.5).report())
    assert "Answering check" not in render(report)


def test_what_a_check_cannot_say_is_among_the_limits() -> None:
    assert check_limitations(None) == ()
    assert [one.code for one in check_limitations(CHECK)] == ["rewordings_held"]
    unheard = CHECK.model_copy(update={"solvers": (SOLVER.model_copy(update={"heard": False}),), "held": 0})
    assert [one.code for one in check_limitations(unheard)] == ["answering_check_silent"]
    assert check_limitations(CHECK.model_copy(update={"held": 0})) == ()
