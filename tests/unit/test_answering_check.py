"""What is made of solvers' answers: which rewordings are left out, what is kept of that, and whom it costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from proctor.domain.answering_check import AnsweringCheck
from proctor.domain.canonical import canonical_json
from proctor.domain.errors import BadInputError
from proctor.domain.item import Item, Variant
from proctor.domain.labels import LabelScheme
from proctor.domain.manifest import ItemSet, RewriteSet, VariantSet
from proctor.domain.messages import VariantsToCheck
from proctor.domain.suite import PerturbationSection
from proctor.domain.trial import Trial
from proctor.perturbation.answering.check import check_variants
from proctor.perturbation.library.store import VariantLibrary
from proctor.runtime.artifacts.chunks import StoredVariants, put_items, put_variants
from proctor.runtime.artifacts.store import get_model, put_model
from tests.scored_audits import MemoryArtifacts
from tests.solved_wordings import Solves, asked_solver, knows, rewordings, solved

N_ITEMS = 30
BAD = frozenset({"q3", "q17"})
ITEMS = tuple(Item(item_id=f"q{n}", question=f"What is {n} plus one?", target=str(n + 1)) for n in range(N_ITEMS))
VARIANTS = tuple(variant for item in ITEMS for variant in rewordings(item, bad=item.item_id in BAD))
BAD_IDS = {variant.variant_id for variant in VARIANTS if "plus two" in variant.question}


class Rows:
    """The library's rows, in memory."""

    def __init__(self) -> None:
        self.rows: dict[str, str] = {}

    def library_get(self, keys: Sequence[str]) -> dict[str, str]:
        return {key: self.rows[key] for key in keys if key in self.rows}

    def library_put(self, rows: Mapping[str, Mapping[str, Any]], origin: Mapping[str, str] | None = None) -> int:
        new = {key: canonical_json(dict(row)).decode() for key, row in rows.items() if key not in self.rows}
        self.rows |= new
        return len(new)

    def library_origins(self, keys: Sequence[str]) -> dict[str, dict[str, str]]:
        return {}


class Checked:
    """A check of `VARIANTS` by solvers whose answers are known."""

    def __init__(
        self,
        *solvers: Solves,
        items: Sequence[Item] = ITEMS,
        variants: Sequence[Variant] = VARIANTS,
        extractor: str = "auto",
        min_yield: float = 0.5,
        **check: Any,
    ) -> None:
        named = [{"model": f"org/solver-{n}", "endpoint": f"solver-{n}"} for n in range(len(solvers))]
        self.section = PerturbationSection.model_validate(
            {"min_yield": min_yield, "answering_check": {"solvers": named, **check}}
        )
        assert self.section.answering_check is not None
        self.check = self.section.answering_check
        self.store, self.rows = MemoryArtifacts(), Rows()
        self.items = put_items(self.store, ItemSet(items=tuple(items)))
        made = VariantSet(variants=tuple(variants), rejections=(), encoder="none")
        self.asked = VariantsToCheck(
            variants=put_variants(self.store, self.items, made),
            answers=tuple(
                asked_solver(self.store, items, variants, one, samples=self.check.samples, solver=number)
                for number, one in enumerate(solvers)
            ),
            extractor=extractor,
        )

    def digest(self) -> str:
        return check_variants(self.store, self.items, self.asked, self.section, VariantLibrary(self.rows))

    @property
    def kept(self) -> StoredVariants:
        return StoredVariants(self.store, self.digest())

    @property
    def left_out(self) -> set[str]:
        return {one.variant_id for one in StoredVariants(self.store, self.asked.variants)} - {
            one.variant_id for one in self.kept
        }

    @property
    def found(self) -> AnsweringCheck:
        found = self.kept.summary().check
        assert found is not None
        return found


def test_the_rewordings_that_ask_something_else_are_left_out_and_no_other() -> None:
    checked = Checked(knows)
    assert checked.left_out == BAD_IDS
    assert checked.found.findings == {"agree": len(VARIANTS) - 2, "answers_disagree": 2}
    assert checked.found.held == 2
    assert [one.item_id for one in checked.found.listed] == ["q3", "q17"]


def test_what_was_answered_stands_beside_what_is_held() -> None:
    checked = Checked(knows)
    held = checked.found.listed[0]
    assert held.question == "Tell me now. What is 3 plus two?"
    assert held.p == pytest.approx(2 / 252)
    (said,) = held.answers
    assert (said.solver, [(one.answer, one.n) for one in said.item]) == ("org/solver-0", [("4", 5)])
    assert [(one.answer, one.n) for one in said.rewording] == [("5", 5)]
    (rejection, _) = checked.kept.summary().rejections
    assert (rejection.item_id, rejection.reason) == ("q3", "answers_disagree")
    assert rejection.detail == f"{held.variant_id} (p 0.0079): org/solver-0: item 5× 4, rewording 5× 5"


def test_an_item_all_of_whose_rewordings_are_held_has_none() -> None:
    item = ITEMS[3]
    bad = [variant for variant in rewordings(item, bad=True) if "plus two" in variant.question]
    others = [variant for variant in VARIANTS if variant.item_id not in ("q3", "q17")]
    kept = Checked(knows, variants=[*others, *bad]).kept
    assert "q3" not in {one.item_id for one in kept}
    assert kept.index.n_items_with_variants == N_ITEMS - 2


def test_the_same_answers_give_the_same_bytes_in_whatever_order_they_came() -> None:
    checked = Checked(knows, knows)
    before = checked.digest()
    turned = [get_model(checked.store, said, RewriteSet).answered[::-1] for said in checked.asked.answers]
    checked.asked = checked.asked.model_copy(
        update={"answers": tuple(put_model(checked.store, RewriteSet(answered=one)) for one in turned)}
    )
    assert checked.digest() == before


def random_guess(trial: Trial) -> str:
    return str(hash_of(trial) % 7)


def hash_of(trial: Trial) -> int:
    return int(trial.trial_id, 16)


def by_wording(trial: Trial) -> str:
    """Always the same answer to a wording, and another to each."""
    return str(sum(map(ord, trial.prompt)) % 9 + 100)


@pytest.mark.parametrize("solver", [random_guess, by_wording, lambda trial: "I do not know"])
def test_a_solver_that_cannot_answer_is_not_heard_and_holds_nothing(solver: Solves) -> None:
    checked = Checked(solver)
    assert checked.left_out == set()
    (facts,) = checked.found.solvers
    assert (facts.heard, facts.items) == (False, N_ITEMS)
    assert checked.found.findings == {"no_solver_knows": len(VARIANTS)}


def test_it_does_not_silence_another_that_can() -> None:
    checked = Checked(random_guess, knows)
    assert [one.heard for one in checked.found.solvers] == [False, True]
    assert checked.left_out == BAD_IDS


def test_with_options_guessing_is_taken_off_what_a_solver_knows() -> None:
    items = [
        Item(item_id=f"q{n}", question=f"{n} plus one?", choices=("yes", "no"), target=("yes", "no")[n % 2])
        for n in range(20)
    ]
    variants = [variant for item in items for variant in rewordings(item, bad=False)]
    variants = [variant.model_copy(update={"choices": ("no", "yes")}) for variant in variants]
    checked = Checked(lambda trial: "A", items=items, variants=variants)
    (facts,) = checked.found.solvers
    assert (facts.known, facts.skill, facts.heard) == (10, 0.0, False)
    assert checked.left_out == set()


def test_options_are_compared_by_what_they_say_whatever_their_order_and_labels() -> None:
    items = [Item(item_id=f"q{n}", question=f"{n} plus one?", choices=("a", "b", "c"), target="b") for n in range(20)]
    variants = [
        rewordings(item, bad=False)[0].model_copy(
            update={"choices": ("c", "a", "b"), "labels": None if n % 2 else LabelScheme.NUMBERS}
        )
        for n, item in enumerate(items)
    ]

    def picks_b(trial: Trial) -> str:
        place = trial.choices.index("b")
        return str(place + 1) if trial.labels is LabelScheme.NUMBERS else "ABC"[place]

    checked = Checked(picks_b, items=items, variants=variants)
    assert checked.found.findings == {"agree": 20}
    assert checked.found.solvers[0].known == 20


def test_a_wording_to_which_no_answer_came_is_held_as_not_checked() -> None:
    lost = next(variant for variant in VARIANTS if variant.item_id == "q5")

    def loses(trial: Trial) -> str | None:
        return None if trial.variant_id == lost.variant_id and trial.replicate > 1 else knows(trial)

    checked = Checked(loses)
    assert checked.left_out == BAD_IDS | {lost.variant_id}
    assert checked.found.findings["not_checked"] == 1
    assert checked.found.solvers[0].failed == 3
    assert {one.reason for one in checked.kept.summary().rejections} == {"answers_disagree", "not_checked"}


def test_an_item_that_lacks_answers_has_none_of_its_rewordings_checked() -> None:
    checked = Checked(lambda trial: None if (trial.item_id, trial.variant_id) == ("q5", None) else knows(trial))
    assert checked.left_out == BAD_IDS | {one.variant_id for one in VARIANTS if one.item_id == "q5"}


def test_few_missing_answers_keep_nothing_from_being_checked() -> None:
    checked = Checked(lambda trial: None if trial.replicate == 4 else knows(trial), alpha=0.1)
    assert checked.left_out == BAD_IDS
    assert checked.found.findings == {"agree": len(VARIANTS) - 2, "answers_disagree": 2}


def test_another_solver_checks_what_one_does_not_answer() -> None:
    checked = Checked(lambda trial: None if trial.item_id == "q5" else knows(trial), knows)
    assert checked.left_out == BAD_IDS


def test_a_person_s_word_keeps_a_rewording_in_the_audit_and_it_stays_listed() -> None:
    (allowed, other) = sorted(BAD_IDS)
    checked = Checked(knows, allowed=[allowed])
    assert checked.left_out == {other}
    assert {one.variant_id: one.kept for one in checked.found.listed} == {allowed: True, other: False}
    assert checked.found.held == 1


def test_a_check_that_only_lists_leaves_nothing_out() -> None:
    checked = Checked(knows, disagreeing="listed")
    assert checked.left_out == set()
    assert {one.variant_id for one in checked.found.listed} == BAD_IDS
    assert checked.kept.summary().rejections == ()


def test_too_few_items_with_a_rewording_stop_the_audit_and_what_is_held_can_be_read_all_the_same() -> None:
    variants = [rewordings(item, bad=n < 20)[1] for n, item in enumerate(ITEMS)]
    checked = Checked(knows, variants=variants)
    with pytest.raises(BadInputError, match=r"only 10 of 30 items keep a variant after the answering check.*min_yield"):
        checked.digest()
    library = VariantLibrary(checked.rows)
    assert len(library.held({one.variant_id for one in variants}, checked.check.rule_digest)) == 20


def test_the_library_finds_what_is_held_by_the_rule_that_held_it() -> None:
    checked = Checked(knows)
    checked.digest()
    library = VariantLibrary(checked.rows)
    ids = {one.variant_id for one in VARIANTS}
    assert set(library.held(ids, checked.check.rule_digest)) == BAD_IDS
    assert library.held(ids, Checked(knows, samples=6).check.rule_digest) == {}
    assert set(library.held(ids, Checked(knows, allowed=sorted(BAD_IDS)).check.rule_digest)) == BAD_IDS


def test_nothing_of_what_a_solver_says_is_repeated_at_length() -> None:
    items = [Item(item_id=f"q{n}", question=f"What is {n} plus one?", target="x" * 3000) for n in range(20)]
    variants = [rewordings(item, bad=n == 4)[1] for n, item in enumerate(items)]
    # They differ in their last letter alone.
    checked = Checked(
        lambda trial: "x" * 2999 + ("x" if "plus one" in trial.prompt else "y"),
        items=items, variants=variants, extractor="exact",
    )  # fmt: skip
    (held,) = checked.found.listed
    assert len(held.answers[0].item[0].answer or "") == 120
    assert checked.found.solvers[0].known == 20
    assert held.finding == "answers_disagree"


def test_a_check_of_nothing_but_the_solvers_that_were_asked_is_an_error() -> None:
    checked = Checked(knows, knows)
    checked.asked = checked.asked.model_copy(update={"answers": checked.asked.answers[:1]})
    with pytest.raises(ValueError, match="zip"):
        checked.digest()


def test_the_table_of_answers_answers_what_its_wording_asks() -> None:
    assert (solved("What is 3 plus one?"), solved("Tell me now. What is 3 plus two?")) == (4, 5)
