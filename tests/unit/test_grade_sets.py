"""Grading a shard, the grades that are there before an audit ends, and the targets that are kept for it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.domain.errors import StoreError
from proctor.domain.item import Item
from proctor.domain.manifest import AnsweredShard, CompletionSet, ItemSet
from proctor.domain.trial import Completion, Outcome
from proctor.grading import EXTRACTORS, grade
from proctor.router.plan import shard_of
from proctor.runtime.artifacts.chunks import put_items
from proctor.scorer.grading.ahead import RecentGrades
from proctor.scorer.grading.grade_sets import fits, grade_shard
from proctor.scorer.grading.targets import TargetsCache, load_targets
from tests.scored_audits import MemoryArtifacts
from tests.unit.grading_samples import ANSWERED, NUMERIC, graded, said, trial


def test_every_column_has_a_row_a_trial_in_the_shards_order() -> None:
    first, second, third = trial(variant_id="v"), trial("b", replicate=3), trial("b")
    grades = graded(
        (first, said(first, "4", finish_reason="length")), (second, said(second, "no idea")), (third, said(third, "4"))
    )
    assert grades.trial_ids == (first.trial_id, second.trial_id, third.trial_id)
    assert grades.item_ids == ("a", "b", "b")
    assert grades.variant_ids == ("v", None, None)
    assert grades.replicates == (0, 3, 0)
    assert grades.outcomes == (Outcome.CORRECT, Outcome.INVALID, Outcome.INCORRECT)
    assert grades.truncated == (True, False, False)
    assert (grades.shard, grades.completions, grades.extractor) == (ANSWERED.shard, ANSWERED.completions, "numeric")


def test_an_error_row_has_no_grade_and_is_not_truncated() -> None:
    asked = trial()
    grades = graded((asked, said(asked, "", error="timed out", finish_reason="length")))
    assert (grades.outcomes, grades.truncated) == ((None,), (False,))


def test_an_answer_is_cut_short_where_it_is_not_right_and_did_not_stand_before_the_cut() -> None:
    texts = ("#### 5\nQuestion: How", "there are 5 and", "", "there are 4")
    asked = [trial(replicate=place) for place in range(len(texts))]
    rows = [(one, said(one, text, finish_reason="length")) for one, text in zip(asked, texts, strict=True)]
    stopped = trial("b")
    grades = graded(*rows, (stopped, said(stopped, "there are 4 and")))
    assert grades.truncated == (True, True, True, True, False)
    assert grades.cut_short == (False, True, True, False, False)


def test_grades_of_before_cuts_were_looked_into_are_made_anew_where_there_were_any() -> None:
    asked = trial()
    cut, whole = (graded((asked, said(asked, "5", finish_reason=how))) for how in ("length", "stop"))
    assert cut.cut_short == (True,)
    assert fits(cut, ANSWERED, NUMERIC.extractor)
    assert not fits(cut.model_copy(update={"cut_short": ()}), ANSWERED, NUMERIC.extractor)
    assert "cut_short" not in whole.plain()
    assert fits(whole, ANSWERED, NUMERIC.extractor)


@given(st.lists(st.sampled_from(["4", "5", "", "four", "it is 4.0", "4 or 5", "#### 4"]), min_size=1, max_size=9))
def test_a_shard_is_worth_what_its_answers_are_worth_one_by_one(texts: list[str]) -> None:
    asked = [trial(replicate=place) for place in range(len(texts))]
    rows = [(one, said(one, text)) for one, text in zip(asked, texts, strict=True)]
    alone = [grade(one, answer, "4", NUMERIC.extractor).outcome for one, answer in rows]
    assert list(graded(*rows).outcomes) == alone


def test_a_shard_whose_id_is_no_digest_of_its_trials_is_compared_trial_by_trial() -> None:
    asked = trial()
    assert graded((asked, said(asked)), shard_id="another").outcomes == (Outcome.CORRECT,)


@pytest.mark.parametrize("shard_id", [None, "another"])
@pytest.mark.parametrize(
    "change",
    [
        lambda completions: completions[::-1],
        lambda completions: completions[:1],
        lambda completions: (*completions, completions[0]),
        lambda completions: (completions[0], completions[0]),
    ],
    ids=["order", "missing", "too many", "twice"],
)
def test_completions_of_other_trials_are_refused(
    change: Callable[[tuple[Completion, ...]], tuple[Completion, ...]], shard_id: str | None
) -> None:
    asked = [trial("a"), trial("b")]
    shard = shard_of(asked)
    shard = shard if shard_id is None else shard.model_copy(update={"shard_id": shard_id})
    completions = change(tuple(said(one) for one in asked))
    with pytest.raises(StoreError, match="are not those of the shard sha256:1"):
        grade_shard(ANSWERED, shard, CompletionSet(completions=completions), NUMERIC)


def test_an_item_of_another_audit_is_refused_by_name() -> None:
    asked = trial("c")
    with pytest.raises(StoreError, match="asks item 'c', which is none of the audit's"):
        graded((asked, said(asked)))


def test_grades_of_other_completions_or_by_another_extractor_do_not_fit() -> None:
    asked = trial()
    grades = graded((asked, said(asked)))
    assert fits(grades, ANSWERED, NUMERIC.extractor)
    assert not fits(grades, ANSWERED.model_copy(update={"completions": "x"}), NUMERIC.extractor)
    assert not fits(grades, ANSWERED.model_copy(update={"shard": "x"}), NUMERIC.extractor)
    assert not fits(grades, ANSWERED, EXTRACTORS["exact"])


class BusyArtifacts(MemoryArtifacts):
    """Counts what is read."""

    reads = 0

    def get(self, digest: str) -> bytes:
        self.reads += 1
        return super().get(digest)


def stored_items(store: MemoryArtifacts, n: int, start: int = 0) -> str:
    made = (Item(item_id=str(place), question="?", target=str(place)) for place in range(start, start + n))
    return put_items(store, ItemSet(items=tuple(made)))


def test_targets_are_those_of_all_items_in_their_order() -> None:
    store = MemoryArtifacts()
    targets = load_targets(store, stored_items(store, 3), "auto")
    assert list(targets.by_item.items()) == [("0", "0"), ("1", "1"), ("2", "2")]
    assert targets.extractor.name == "numeric"


def test_the_targets_of_the_last_audits_are_kept_within_their_bounds() -> None:
    store = BusyArtifacts()
    cache = TargetsCache(max_audits=2, max_items=10)
    first, second, third, large = (stored_items(store, n, start) for n, start in ((3, 0), (3, 10), (3, 20), (50, 30)))

    def reads(digest: str, extractor: str = "auto") -> bool:
        before = store.reads
        cache.get(store, digest, extractor)
        return store.reads > before

    assert [reads(digest) for digest in (first, second, first, third, first, second)] == [
        True, True, False, True, False, True,
    ]  # fmt: skip
    assert reads(second, "exact")
    assert reads(large)
    assert not reads(large)
    assert reads(second)


def test_the_grades_of_the_last_shards_are_remembered_and_others_left_as_they_are() -> None:
    first, second, third = (AnsweredShard(shard=str(n), completions="c", grades=f"g{n}") for n in range(3))
    recent = RecentGrades(max_shards=2)
    recent.note([first, second, third])
    bare = [one.model_copy(update={"grades": None}) for one in (first, second, third)]
    other = third.model_copy(update={"completions": "d", "grades": None})
    known = second.model_copy(update={"grades": "told"})
    assert recent.filled_in([*bare, other, known]) == (bare[0], second, third, other, known)
