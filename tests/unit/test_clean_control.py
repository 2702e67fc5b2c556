"""A clean model as the control: which one is chosen, and what it does to verdict and decision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.domain.decision import Decision, DecisionOutcome
from proctor.domain.evidence import CleanControl, Evidence, PerturbationEvidence, ProtocolEvidence, Verdict
from proctor.domain.fidelity import Fidelity
from proctor.domain.suite import Suite
from proctor.evidence.answers import PairedAnswers
from proctor.evidence.perturbation.channel import perturbation_evidence
from proctor.evidence.perturbation.clean_control import NO_CONTROL, ChosenControl, OnRecord, choose_control
from proctor.evidence.perturbation.control import controlled_inflation
from proctor.perturbation.library.fidelity import CleanModel, measure_fidelity
from proctor.scorer.policy import decide
from tests.installed_plugins import Plugins
from tests.unit.samples import consistent, paired, samples

SAME = "sha256:" + "5" * 64
AUDITED = "sha256:" + "a" * 64
SEVERITY = [DecisionOutcome.APPROVE, DecisionOutcome.REVIEW, DecisionOutcome.BLOCK]
COMPARABLE = ProtocolEvidence(verdict=Verdict.CLEAN, reasons=(), arms=())


def suite(**scoring: Any) -> Suite:
    return Suite.model_validate(
        {
            "audit_suite_id": "facts",
            "model_config": {"model_id": "m", "model_version": "sha256:a1b2c3d4e5f6", "endpoint": "local"},
            "dataset_config": {"benchmark_name": "facts"},
            "scoring_config": scoring,
        }
    )


def clean(answers: PairedAnswers, digit: str = "c", *, variants: str = SAME, strategy: str = "wordings") -> Fidelity:
    """A clean model on record, named by the digit that its digest is made of."""
    model = CleanModel(f"clean-{digit}", "sha256:" + digit * 64, "made for this test")
    return measure_fidelity(answers, strategy=strategy, benchmark="b", variants=variants, model=model)


def knows(share: float, *, n: int = 100) -> PairedAnswers:
    """Answers of a model that knows a share of the items in any wording."""
    known = round(share * n)
    return paired([1] * known + [0] * (n - known), [3] * known + [0] * (n - known), [3] * n)


def model(rng: np.random.Generator, n: int = 500, *, cost: float = 0.0, leaked: float = 0.0) -> PairedAnswers:
    """A model that knows three quarters of the items; rewording takes `cost` of its points, memory adds `leaked`."""
    kind = rng.random(n)
    known, memorised = kind < 0.75, (kind >= 0.75) & (kind < 0.75 + leaked)
    canonical = rng.random(n) < np.where(known | memorised, 0.99, 0.01)
    reworded = np.where(known, 0.99 * (1 - cost / 0.75), 0.01)
    return paired(canonical.tolist(), rng.binomial(3, reworded).tolist(), [3] * n)


def weigh(answers: PairedAnswers, control: Fidelity | None, of: Suite) -> tuple[PerturbationEvidence, Decision]:
    chosen = NO_CONTROL if control is None else ChosenControl(control, same_rewordings=True)
    found = perturbation_evidence(answers, of.scoring, of.governance, None, chosen)
    return found, decide(Evidence(perturbation=found, protocol=COMPARABLE, not_audited={}), of)


def chosen(answers: PairedAnswers, *measured: Fidelity) -> ChosenControl:
    return choose_control(answers, OnRecord(measured, AUDITED, SAME))


def control_of(found: PerturbationEvidence) -> CleanControl:
    assert found.control is not None
    return found.control


def test_the_clean_model_whose_reworded_accuracy_is_nearest_is_chosen() -> None:
    """The audited model reaches 90 % canonically by memory and can do 60 %: 60 % is its ability, not 90 %."""
    audited = paired([1] * 90 + [0] * 10, [3] * 60 + [0] * 40, [3] * 100)
    found = chosen(audited, clean(knows(0.9), "b"), clean(knows(0.62), "c"), clean(knows(0.3), "d"))
    assert found.fidelity is not None
    assert (found.fidelity.model_id, found.same_rewordings, found.notes) == ("clean-c", True, ())


def test_a_model_that_was_asked_the_same_rewordings_goes_before_a_nearer_one() -> None:
    nearer = clean(knows(0.6), "b", variants="sha256:other")
    found = chosen(knows(0.6), nearer, clean(knows(0.2), "c"))
    assert found.fidelity is not None
    assert (found.fidelity.model_id, found.same_rewordings) == ("clean-c", True)
    alone = chosen(knows(0.6), nearer)
    assert (alone.fidelity, alone.same_rewordings) == (nearer, False)


@pytest.mark.parametrize("strategy", ["imported", "paraphrase_llm+option_shuffle"])
def test_other_rewordings_by_a_strategy_that_names_no_maker_control_nothing_and_it_is_said(strategy: str) -> None:
    found = chosen(knows(0.6), clean(knows(0.6), variants="sha256:other", strategy=strategy))
    assert found.fidelity is None
    assert "1 clean model on record for this strategy and benchmark took no part" in found.notes[0]
    same = clean(knows(0.6), strategy=strategy)
    assert chosen(knows(0.6), same).fidelity == same


def test_other_rewordings_by_a_plug_in_control_nothing_because_its_next_version_may_reword_otherwise(
    plugins: Plugins,
) -> None:
    other = clean(knows(0.6), variants="sha256:other", strategy="typo+shout")
    assert chosen(knows(0.6), other).fidelity == other
    plugins.install({}, {"proctor.strategies": {"shout": "toy_shout:Shout"}})
    assert chosen(knows(0.6), other).fidelity is None


@pytest.mark.parametrize("digest", [AUDITED, AUDITED[:19]])
def test_no_model_is_its_own_control_and_it_is_said(digest: str) -> None:
    itself = clean(knows(0.6)).model_copy(update={"digest": digest})
    found = chosen(knows(0.6), itself)
    assert found.fidelity is None
    assert "no model is its own control" in found.notes[0]
    other = clean(knows(0.1), "b")
    both = chosen(knows(0.6), itself, other)
    assert (both.fidelity, both.notes) == (other, found.notes)


def test_between_equals_the_larger_sample_is_chosen_in_any_order() -> None:
    small, large = clean(knows(0.5, n=100), "b"), clean(knows(0.5, n=200), "c")
    assert chosen(knows(0.5), small, large).fidelity == chosen(knows(0.5), large, small).fidelity == large


def test_with_nothing_on_record_or_nothing_asked_there_is_no_control() -> None:
    assert chosen(knows(0.5)) == NO_CONTROL
    assert chosen(paired([], [], []), clean(knows(0.5))).fidelity is None
    assert chosen(knows(0.5), clean(paired([], [], []))).fidelity is None


def test_without_a_control_the_evidence_is_written_as_before() -> None:
    found, _ = weigh(knows(0.5), None, suite())
    assert "control" not in found.plain()


def test_the_control_is_difference_in_differences_at_the_suites_level_and_says_who_it_is() -> None:
    rng = np.random.default_rng(1)
    audited, other = model(rng, leaked=0.13), model(rng, 300)
    control = control_of(weigh(audited, clean(other), suite(confidence_level=0.9))[0])
    direct = controlled_inflation(audited, other, level=0.9, alpha=0.05)
    assert control.excess.model_copy(update={"null_hypothesis": direct.null_hypothesis}) == direct
    assert (control.model_id, control.grounds, control.digest_verified) == ("clean-c", "made for this test", False)
    assert control.accuracy.level == 0.9
    assert "Over 300 items in the same rewordings, rewording cost the clean model" in control.conclusion
    assert PerturbationEvidence.model_validate_json(weigh(audited, clean(other), suite())[0].model_dump_json()).control


def test_a_clean_model_is_not_blocked_for_rewordings_that_cost_the_control_as_much() -> None:
    """Eight points: without the control nearly every clean model is blocked."""
    rng = np.random.default_rng(2)
    blocked = withheld = 0
    for _ in range(40):
        audited = model(rng, cost=0.08)
        blocked += weigh(audited, None, suite())[1].outcome is DecisionOutcome.BLOCK
        found, decision = weigh(audited, clean(model(rng, cost=0.08)), suite())
        assert (found.verdict, decision.outcome) == (Verdict.INCONCLUSIVE, DecisionOutcome.REVIEW)
        assert not any(item.flagged for item in found.items)
        withheld += decision.reasons[0].code == "not_beyond_clean_control"
    assert blocked == withheld > 30


def test_a_control_that_rewording_costs_a_little_less_does_not_convict_a_clean_model() -> None:
    """No two models are quite alike: an excess of two points over the control is below the limit of five."""
    rng = np.random.default_rng(3)
    decided = [weigh(model(rng, 1300, cost=0.08), clean(model(rng, 1300, cost=0.06)), suite())[1] for _ in range(25)]
    assert {decision.outcome for decision in decided} == {DecisionOutcome.REVIEW}


def test_a_leaked_model_stays_blocked_beside_a_control_that_rewording_costs_nothing() -> None:
    rng = np.random.default_rng(4)
    decided = [weigh(model(rng, leaked=0.13), clean(model(rng)), suite()) for _ in range(25)]
    blocked = [(found, decision) for found, decision in decided if decision.outcome is DecisionOutcome.BLOCK]
    assert len(blocked) >= 23
    for found, decision in blocked:
        codes = [reason.code for reason in decision.reasons]
        assert codes[0].removesuffix("_past_limit") in ("score_inflation", "contamination_score")
        assert {"excess_inflation_past_limit", "excess_score_past_limit"} & set(codes)
        low = control_of(found).excess.excess_inflation.low
        assert found.score_inflation.low is not None
        assert low is not None
        flagged = sum(item.flagged for item in found.items)
        assert flagged == int(max(0.0, min(low, found.score_inflation.low)) * 5)


def test_a_leak_beyond_hard_rewordings_is_still_blocked() -> None:
    rng = np.random.default_rng(5)
    decided = [weigh(model(rng, cost=0.04, leaked=0.15), clean(model(rng, cost=0.04)), suite())[1] for _ in range(25)]
    assert sum(decision.outcome is DecisionOutcome.BLOCK for decision in decided) >= 23


def test_a_withheld_block_says_both_costs_and_what_would_settle_it() -> None:
    rng = np.random.default_rng(6)
    decision = weigh(model(rng, cost=0.09), clean(model(rng, cost=0.09)), suite())[1]
    first, *_, last = decision.reasons
    assert first.code == "not_beyond_clean_control"
    assert "rewording cost the clean model clean-c" in first.text
    assert "limits of 5 points and 0.1" in first.text
    assert last.code == "rewording_costs_clean_models"


def test_what_the_control_alone_makes_suspicious_is_reviewed_and_not_approved() -> None:
    """Rewordings that help every other model, and leave this one where it was."""
    audited = knows(0.6, n=600)
    helped = paired([1] * 300 + [0] * 300, [3] * 360 + [0] * 240, [3] * 600)
    assert weigh(audited, None, suite())[1].outcome is DecisionOutcome.APPROVE
    found, decision = weigh(audited, clean(helped), suite())
    assert (found.verdict, decision.outcome) == (Verdict.INCONCLUSIVE, DecisionOutcome.REVIEW)
    assert decision.reasons[0].code == "excess_inflation_past_limit"


def test_the_articles_rule_blocks_whatever_the_control_says() -> None:
    lucky = paired([1] * 60 + [0] * 60 + [1] * 480, [0] * 60 + [3] * 60 + [3] * 480, [3] * 600)
    of = suite(method="per_item_t_test")
    assert weigh(lucky, clean(lucky), of)[1].outcome is DecisionOutcome.BLOCK


@settings(max_examples=30)
@given(samples(max_items=40), samples(min_items=1, max_items=40))
def test_a_control_never_approves_or_blocks_what_would_not_be_without_it(
    audited: PairedAnswers, other: PairedAnswers
) -> None:
    of = suite()
    alone, held = (weigh(audited, control, of)[1].outcome for control in (None, clean(other)))
    assert held in (alone, DecisionOutcome.REVIEW)
    assert weigh(audited, clean(other), of)[0].plain()


@settings(max_examples=30)
@given(st.integers(0, 600), st.integers(0, 600))
def test_one_more_leaked_item_never_leads_to_a_milder_decision_beside_a_control(first: int, second: int) -> None:
    control = clean(consistent(np.random.default_rng(7), 500, variants=3))

    def decided(leaked: int) -> int:
        answers = paired([1] * 600, [3] * (600 - leaked) + [0] * leaked, [3] * 600)
        return SEVERITY.index(weigh(answers, control, suite())[1].outcome)

    fewer, more = sorted((first, second))
    assert decided(fewer) <= decided(more)
