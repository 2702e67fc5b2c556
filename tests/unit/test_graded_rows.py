"""The columns of an audit's graded trials: what is counted, and what a trial that came twice counts as."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from proctor.domain.errors import StoreError
from proctor.domain.manifest import GradeSet
from proctor.domain.trial import Arm, Outcome, Shard
from proctor.evidence.answers import Answer
from proctor.router.plan import shard_of
from proctor.scorer.grading.rows import Rows, RowsBuilder
from tests.unit.grading_samples import graded, said, trial


def rows_of(*sets: GradeSet, given_up: Sequence[Shard] = ()) -> Rows:
    builder = RowsBuilder(["a", "b"])
    for grades in sets:
        builder.add(grades)
    for shard in given_up:
        builder.add_given_up(shard)
    return builder.rows()


def test_rows_are_counted_by_what_became_of_them() -> None:
    right, wrong, failed, lost = (trial(replicate=place) for place in range(4))
    grades = graded(
        (right, said(right, finish_reason="length")), (wrong, said(wrong, "5")), (failed, said(failed, error="no"))
    )
    tally = rows_of(grades, given_up=[shard_of([lost])]).tally()
    assert tally.outcomes == {Outcome.CORRECT: 1, Outcome.INCORRECT: 1, Outcome.INVALID: 0}
    assert (tally.failed, tally.given_up, tally.truncated) == (1, 1, 1)


def test_answers_that_were_cut_short_are_told_apart_from_those_that_stood_before_the_cut() -> None:
    short, settled = trial(), trial("b")
    rows = rows_of(
        graded((short, said(short, "5 and", finish_reason="length"))),
        graded((settled, said(settled, "#### 4\nand", finish_reason="length"))),
    )
    assert [(one.truncated, one.cut_short) for one in rows.answers(direct=True)] == [(True, True), (True, False)]


def test_direct_answers_and_those_behind_routers_are_told_apart() -> None:
    asked, routed = trial(), trial("b", arm=Arm.NOISY_ROUTER_2)
    rows = rows_of(graded((asked, said(asked))), graded((routed, said(routed, "5"))))
    assert list(rows.answers(direct=True)) == [Answer(Arm.PERTURBED, "a", Outcome.CORRECT, False)]
    assert list(rows.answers(direct=False)) == [Answer(Arm.NOISY_ROUTER_2, "b", Outcome.CORRECT, False)]
    assert rows.graded_items(Arm.PERTURBED) == {"a"}
    assert rows.shards_that_ask({"a", "b"}) == [0]


def test_a_trial_that_came_twice_counts_once_with_its_grade() -> None:
    asked = trial()
    good, bad = graded((asked, said(asked))), graded((asked, said(asked, error="lost")))
    lost = shard_of([asked])
    for order in ([good, bad, good], [bad, good]):
        rows = rows_of(*order, given_up=[lost])
        assert [answer.outcome for answer in rows.answers(direct=True)] == [Outcome.CORRECT]


def test_an_audit_without_one_answer_has_no_rows() -> None:
    rows = rows_of()
    assert list(rows.answers(direct=True)) == []
    assert rows.tally().given_up == 0
    assert rows.shards_that_ask({"a"}) == []


def test_rows_of_an_item_of_another_audit_are_refused() -> None:
    with pytest.raises(StoreError, match="item 'c'"):
        rows_of(given_up=[shard_of([trial("c")])])
