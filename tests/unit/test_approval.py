"""Simulated gates against the real one, and against the figures that design.md promises."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from proctor.domain.decision import DecisionOutcome
from proctor.domain.evidence import Evidence, ProtocolEvidence, Verdict
from proctor.domain.suite import Suite
from proctor.evidence.answers import PairedAnswers
from proctor.evidence.perturbation.channel import perturbation_evidence
from proctor.evidence.perturbation.control_items import weigh_control_items
from proctor.evidence.perturbation.exchangeability import exchangeability_test
from proctor.evidence.perturbation.studentised import studentised_test
from proctor.evidence.planning.approval import (
    GateRates,
    approval_chance,
    detectable_share,
    gate_rates,
    items_for_approval,
)
from proctor.evidence.planning.controlled_audits import ControlledAudits
from proctor.evidence.planning.families import FAMILIES, KNOWN, Family
from proctor.evidence.planning.pattern_chances import largest_leaked_share, pattern_chances
from proctor.evidence.planning.simulated_audits import Limits, SimulatedAudits
from proctor.scorer.policy import decide
from tests.unit.test_control_items import as_answers

COMPARABLE = ProtocolEvidence(verdict=Verdict.CLEAN, reasons=("Alike.",), arms=())
LIMITS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "lenient": {
        "scoring_config": {"max_allowed_contaminated_items_pct": 30.0, "contamination_threshold": 0.4},
        "governance": {"block_deployment_above_contaminated_pct": 40.0, "review_required_above_cs": 0.3},
    },
    "strict": {
        "scoring_config": {"significance_alpha": 0.001, "contamination_threshold": 0.01, "confidence_level": 0.5},
        "governance": {"block_deployment_above_contaminated_pct": 5.0},
    },
    "article": {"scoring_config": {"method": "per_item_t_test", "max_allowed_contaminated_items_pct": 5.0}},
}


@pytest.fixture(params=FAMILIES.values(), ids=list(FAMILIES))
def family(request: pytest.FixtureRequest) -> Family:
    one: Family = request.param
    return one


def suite(sections: dict[str, Any]) -> Suite:
    return Suite.model_validate(
        {
            "audit_suite_id": "facts",
            "model_config": {"model_id": "m", "model_version": "sha256:a1b2c3d4e5f6", "endpoint": "local"},
            "dataset_config": {"benchmark_name": "facts"},
            **sections,
        }
    )


def answers_of(counts: npt.NDArray[np.int64]) -> PairedAnswers:
    """The items of one simulated audit, written out."""
    variants = counts.shape[1] - 1
    canonical, right = np.divmod(np.repeat(np.arange(counts.size), counts.ravel()), variants + 1)
    names = [str(place) for place in range(canonical.size)]
    return PairedAnswers.of(names, canonical.astype(np.bool_), right, np.full(right.shape, variants))


def drawn(family: Family, items: int, variants: int, audits: int, *, share: float = 0.0, seed: int) -> SimulatedAudits:
    chances = pattern_chances(family, variants, leaked_share=min(share, largest_leaked_share(family)))
    return SimulatedAudits.draw(chances, items=items, audits=audits, rng=np.random.default_rng(seed))


@pytest.mark.parametrize(("share", "cost"), [(0.0, 0.0), (0.2, 0.0), (0.1, 0.03)])
def test_pattern_chances_are_those_of_the_familys_own_draws(family: Family, share: float, cost: float) -> None:
    audits, items, variants = 100, 2000, 3
    answers = family.draw(
        np.random.default_rng(1), audits=audits, items=items, variants=variants, leaked_share=share, cost=cost
    )
    seen = np.bincount((answers.canonical * (variants + 1) + answers.right).ravel(), minlength=2 * (variants + 1))
    chances = pattern_chances(family, variants, leaked_share=share, cost=cost).ravel()
    errors = np.sqrt(chances * (1 - chances) / (audits * items))
    assert (np.abs(seen / (audits * items) - chances) <= 5 * errors + 1e-12).all()


@pytest.mark.parametrize("variants", [1, 3, 9, 100])
@pytest.mark.parametrize("name", ["beta_1_1", "beta_4_1", "beta_half_quarter"])
def test_coins_of_their_own_have_beta_binomial_totals(name: str, variants: int) -> None:
    """Canonical and reworded answers to an item are V + 1 tosses of one coin."""
    chances = pattern_chances(FAMILIES[name], variants)
    wordings = variants + 1
    totals = np.zeros(wordings + 1)
    totals[:-1] += chances[0]
    totals[1:] += chances[1]
    beta = FAMILIES[name].beta
    assert beta is not None
    np.testing.assert_allclose(totals, stats.betabinom.pmf(np.arange(wordings + 1), wordings, *beta), rtol=1e-8)
    # Given the total, which wordings are right is chance alone.
    share = np.arange(1, wordings) / wordings
    np.testing.assert_allclose(chances[1, :-1] / totals[1:-1], share, rtol=1e-8)


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("chance", [None, 0.5])
def test_every_simulated_decision_is_the_gates_own(family: Family, limits: str, chance: float | None) -> None:
    of = suite(LIMITS[limits])
    for seed, (items, variants, share) in enumerate([(1, 1, 0.0), (9, 2, 0.3), (40, 3, 0.25), (150, 5, 0.1)]):
        simulated = drawn(family, items, variants, 12, share=share, seed=seed)
        approved, blocked = simulated.decisions(Limits.of(of, chance))
        for counts, approve, block in zip(simulated.counts, approved, blocked, strict=True):
            result = perturbation_evidence(answers_of(counts), of.scoring, of.governance, chance)
            decision = decide(Evidence(perturbation=result, protocol=COMPARABLE, not_audited={}), of).outcome
            assert approve == (decision is DecisionOutcome.APPROVE)
            assert block == (decision is DecisionOutcome.BLOCK)


@pytest.mark.parametrize("alpha", [0.001, 0.05, 0.5])
def test_simulated_significance_is_that_of_the_two_tests(family: Family, alpha: float) -> None:
    for seed, (items, variants, share) in enumerate([(2, 1, 0.2), (6, 3, 0.0), (60, 3, 0.08), (300, 4, 0.05)]):
        simulated = drawn(family, items, variants, 25, share=share, seed=seed)
        expected = [
            max(exchangeability_test(answers).p_value, studentised_test(answers)) < alpha
            for answers in map(answers_of, simulated.counts)
        ]
        assert simulated.significant(alpha).tolist() == expected


@pytest.mark.parametrize("limits", LIMITS)
def test_every_simulated_decision_beside_control_items_is_the_gates_own(family: Family, limits: str) -> None:
    of = suite(LIMITS[limits])
    for seed, (items, beside, share) in enumerate([(9, 5, 0.3), (40, 25, 0.25), (150, 150, 0.1), (400, 300, 0.0)]):
        simulated = ControlledAudits(
            drawn(family, items, 3, 12, share=share, seed=seed), drawn(family, beside, 3, 12, seed=seed + 100)
        )
        approved, blocked = simulated.decisions(Limits.of(of, 0.5))
        counts = zip(simulated.benchmark.counts, simulated.control.counts, strict=True)
        for (benchmark, control), approve, block in zip(counts, approved, blocked, strict=True):
            paired = answers_of(benchmark)
            other = answers_of(control)
            weighed = weigh_control_items(
                paired, other, as_answers(other), of.scoring, n_selected=other.n, n_reworded=other.n
            )
            result = perturbation_evidence(paired, of.scoring, of.governance, 0.5, control_items=weighed)
            decision = decide(Evidence(perturbation=result, protocol=COMPARABLE, not_audited={}), of).outcome
            assert approve == (decision is DecisionOutcome.APPROVE)
            assert block == (decision is DecisionOutcome.BLOCK)


def test_control_items_cost_approval_where_rewording_costs_nothing_and_save_it_where_it_does() -> None:
    def rates(cost: float, control: float | None) -> GateRates:
        rng = np.random.default_rng(3)
        return gate_rates(FAMILIES["consistent"], 500, 3, 0.0, Limits(), 1_000, rng, cost=cost, control=control)

    assert rates(0.0, 1.0).approve <= rates(0.0, None).approve
    assert rates(0.1, None).block > 0.9
    assert rates(0.1, 1.0).block < 0.02
    assert rates(0.1, 1.0).approve > rates(0.1, None).approve
    assert rates(0.0, 0.03) == GateRates(0.0, 1.0, 0.0), "fifteen control items tell nothing"


def test_a_share_is_found_the_later_the_fewer_control_items_there_are() -> None:
    def share(control: float | None) -> float:
        rng = np.random.default_rng(4)
        found = detectable_share(FAMILIES["consistent"], 500, 3, rng, audits=1_000, control=control)
        assert found is not None
        return found

    assert share(None) < share(1.0) < share(0.2)


def test_estimates_are_those_of_the_intervals() -> None:
    simulated = drawn(FAMILIES["beta_1_1"], 30, 3, 20, share=0.1, seed=1)
    inflation, score = simulated.inflation(0.9), simulated.contamination_score(0.9)
    for place, counts in enumerate(simulated.counts):
        result = perturbation_evidence(
            answers_of(counts), suite({"scoring_config": {"confidence_level": 0.9}}).scoring, suite({}).governance, None
        )
        for bounds, estimate in ((inflation, result.score_inflation), (score, result.contamination_score)):
            assert [array[place] for array in bounds] == pytest.approx([estimate.value, estimate.low, estimate.high])


def test_no_right_canonical_answer_leaves_the_score_unbounded_and_finds_nothing() -> None:
    counts = np.zeros((1, 2, 4), dtype=np.int64)
    counts[0, 0, 0] = 5
    simulated = SimulatedAudits(counts)
    assert simulated.contamination_score(0.95).high[0] == math.inf
    assert not simulated.decisions(Limits()).approved[0]
    assert not simulated.significant(0.5)[0]


@pytest.mark.parametrize(
    ("name", "items", "expected"),
    [("consistent", 100, 0.93), ("guessers", 400, 0.95), ("beta_1_1", 500, 0.66), ("beta_1_1", 1000, 0.92)],
)
def test_clean_models_are_approved_as_often_as_promised(name: str, items: int, expected: float) -> None:
    chance = approval_chance(FAMILIES[name], items, 3, Limits(), np.random.default_rng(1))
    assert chance == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize(
    ("name", "expected"), [("consistent", 93), ("guessers", 325), ("beta_4_1", 735), ("beta_1_1", 930)]
)
def test_the_items_at_which_nine_clean_models_in_ten_are_approved(name: str, expected: int) -> None:
    needed = items_for_approval(FAMILIES[name], 3, Limits(), np.random.default_rng(1))
    assert needed == pytest.approx(expected, rel=0.05)
    assert needed is not None
    assert approval_chance(FAMILIES[name], needed, 3, Limits(), np.random.default_rng(2)) == pytest.approx(
        0.9, abs=0.02
    )


def test_no_number_of_items_approves_where_nothing_is_allowed() -> None:
    nothing = Limits.of(suite({"scoring_config": {"max_allowed_contaminated_items_pct": 0.0}}))
    assert items_for_approval(FAMILIES["beta_1_1"], 3, nothing, np.random.default_rng(1), audits=200) is None


@pytest.mark.parametrize(
    ("name", "expected"), [("consistent", 0.020), ("guessers", 0.0455), ("beta_1_1", 0.114), ("beta_4_1", 0.259)]
)
def test_the_smallest_leaked_share_is_found_four_times_in_five_by_the_tests_themselves(
    name: str, expected: float
) -> None:
    share = detectable_share(FAMILIES[name], 500, 3, np.random.default_rng(1))
    assert share == pytest.approx(expected, rel=0.04)
    assert share is not None
    answers = FAMILIES[name].draw(np.random.default_rng(2), audits=600, items=500, variants=3, leaked_share=share)
    ids = tuple(map(str, range(500)))
    found = 0
    for canonical, right in zip(answers.canonical, answers.right, strict=True):
        sample = PairedAnswers(ids, canonical, right, np.full(500, 3))
        found += max(exchangeability_test(sample).p_value, studentised_test(sample)) < 0.05
    # Four standard errors.
    assert found / 600 == pytest.approx(0.8, abs=0.066)


def test_more_rewordings_find_smaller_shares() -> None:
    shares = [detectable_share(FAMILIES["beta_1_1"], 300, v, np.random.default_rng(1)) for v in (2, 3, 4, 9)]
    found = [share for share in shares if share is not None]
    assert len(found) == len(shares)
    assert found == sorted(found, reverse=True)


def test_a_handful_of_items_finds_no_share_at_all() -> None:
    assert detectable_share(FAMILIES["beta_4_1"], 5, 3, np.random.default_rng(1)) is None


def test_a_leaked_model_is_blocked_and_rates_add_up_to_one(family: Family) -> None:
    rates = gate_rates(family, 1000, 3, largest_leaked_share(family), Limits(), 200, np.random.default_rng(1))
    assert sum(rates) == pytest.approx(1.0)
    assert rates.block > 0.95


def test_a_rewording_that_is_harder_makes_approval_rarer() -> None:
    rates = [
        gate_rates(FAMILIES["guessers"], 400, 3, 0.0, Limits(), 2000, np.random.default_rng(1), cost=cost).approve
        for cost in (0.0, 0.01, 0.03)
    ]
    assert rates == sorted(rates, reverse=True)


def test_equal_seeds_give_equal_figures() -> None:
    def figures() -> tuple[object, ...]:
        rng = np.random.default_rng(3)
        guessers = FAMILIES["guessers"]
        return (
            gate_rates(guessers, 300, 3, 0.05, Limits(), 500, rng),
            items_for_approval(guessers, 3, Limits(), rng, audits=500),
            detectable_share(guessers, 300, 3, rng, audits=500),
        )

    assert figures() == figures()


def test_what_cannot_be_simulated_is_refused() -> None:
    rng = np.random.default_rng(1)
    for items, variants, share, why in (
        (0, 3, 0.0, "nothing to decide on"),
        (10, 0, 0.0, "nothing to compare"),
        (10, 3, 1.01 - KNOWN, "not between 0 and"),
    ):
        with pytest.raises(ValueError, match=why):
            gate_rates(FAMILIES["guessers"], items, variants, share, Limits(), 10, rng)
    with pytest.raises(ValueError, match="cannot cost"):
        gate_rates(FAMILIES["guessers"], 10, 3, 0.0, Limits(), 10, rng, cost=0.9)
