"""What an audit may use: when its ceilings stop it, and what a person is told then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.domain.errors import BadInputError
from proctor.domain.operator_endpoint import OperatorEndpoint
from proctor.domain.prices import Prices
from proctor.domain.suite import Suite
from proctor.domain.suite_budget import BudgetSection
from proctor.router.budget import cost_of, exceeded
from proctor.router.ledger.types import Spent
from proctor.router.submit.terms import terms_of
from proctor.router.terms import Terms
from proctor.runtime.settings import Settings
from tests.suites.examples import with_changes

DEAR, CHEAP = Prices(input_per_million=10, output_per_million=30), Prices(input_per_million=1, output_per_million=0)
STAGES = {"paraphrase-1": Spent(2, 100, 200), "paraphrase-2": Spent(1, 50, 50), "answer": Spent(10, 1_000, 600)}


def terms(**ceilings: Any) -> Terms:
    return Terms(budget=BudgetSection(**ceilings), answer=DEAR, paraphrase=CHEAP)


def test_without_a_ceiling_nothing_is_exceeded() -> None:
    assert exceeded(terms(), STAGES, planned_trials=10**12) is None


@pytest.mark.parametrize(("ceiling", "stopped"), [(12, True), (13, True), (14, False)])
def test_the_trials_of_all_stages_count_together(ceiling: int, stopped: bool) -> None:
    assert (exceeded(terms(max_trials=ceiling), STAGES) is not None) is stopped


@pytest.mark.parametrize(("ceiling", "stopped"), [(99, True), (100, False)])
def test_a_plan_may_come_to_the_ceiling_and_no_further(ceiling: int, stopped: bool) -> None:
    assert (exceeded(terms(max_trials=ceiling), {}, planned_trials=100) is not None) is stopped


@pytest.mark.parametrize(("ceiling", "stopped"), [(1_999, True), (2_000, True), (2_001, False)])
def test_tokens_of_prompts_and_answers_count_together(ceiling: int, stopped: bool) -> None:
    assert (exceeded(terms(max_tokens=ceiling), STAGES) is not None) is stopped


def test_each_stage_is_priced_by_its_own_endpoint() -> None:
    assert cost_of(terms(), STAGES) == pytest.approx((1_000 * 10 + 600 * 30 + 150 * 1) / 1e6)
    assert exceeded(terms(max_cost=0.0281), STAGES) is not None
    assert exceeded(terms(max_cost=0.0282), STAGES) is None


def test_the_cause_says_the_ceiling_the_use_and_the_mend() -> None:
    assert exceeded(terms(max_tokens=1_500), STAGES) == (
        "the budget stops the audit: budget_config.max_tokens is 1,500, and 2,000 tokens were used and more are to "
        "come; raise it in the suite and start the audit again: it goes on where it stopped"
    )
    cause = exceeded(terms(max_trials=1_000), STAGES, planned_trials=20_000)
    assert cause is not None
    assert "budget_config.max_trials is 1,000, and it comes to 20,000 trials" in cause


counts = st.builds(Spent, *(st.integers(0, 10**9) for _ in range(3)))
ceilings = st.builds(
    BudgetSection,
    max_trials=st.none() | st.integers(1, 10**9),
    max_tokens=st.none() | st.integers(1, 10**9),
    max_cost=st.none() | st.floats(1e-6, 1e9),
)


@given(ceilings, counts, counts)
def test_what_stops_an_audit_stops_it_after_it_used_more_too(budget: BudgetSection, used: Spent, more: Spent) -> None:
    limit = Terms(budget=budget, answer=DEAR)
    if exceeded(limit, {"answer": used}) is not None:
        assert exceeded(limit, {"answer": used + more}) is not None


@given(ceilings, counts)
def test_a_budget_above_what_was_used_lets_it_go_on(budget: BudgetSection, used: Spent) -> None:
    raised = BudgetSection(
        max_trials=used.trials + 1, max_tokens=used.input_tokens + used.output_tokens + 1, max_cost=1e12
    )
    assert exceeded(Terms(budget=raised, answer=DEAR), {"answer": used}) is None


def suite(**changes: Any) -> Suite:
    return Suite.model_validate(with_changes({name.replace("__", "."): value for name, value in changes.items()}))


PRICED = OperatorEndpoint(url="https://host/v1", input_price_per_million=10, output_price_per_million=30)


def settings(**endpoints: OperatorEndpoint) -> Settings:
    return Settings(home=Path(), endpoints=endpoints)


def test_terms_are_the_suite_s_budget_and_the_operator_s_prices() -> None:
    named = settings(priced=PRICED, free=OperatorEndpoint(url="grpc://b"))
    found = terms_of(
        suite(
            model_config__endpoint="priced",
            perturbation_config__perturbation_strategy="paraphrase_llm",
            perturbation_config__paraphrase_model="org/rewriter",
            perturbation_config__paraphraser__endpoint="free",
            budget_config__max_trials=7,
        ),
        named,
    )
    assert found == Terms(budget=BudgetSection(max_trials=7), answer=DEAR)


def test_a_suite_without_a_ceiling_of_cost_needs_no_prices() -> None:
    unpriced = suite(
        model_config__endpoint="http://127.0.0.1:8000/v1", perturbation_config__perturbation_strategy="wordings"
    )
    assert terms_of(unpriced, settings()) == Terms()


@pytest.mark.parametrize("role", ["audited", "rewording", "router"])
def test_a_ceiling_of_cost_needs_the_prices_of_every_endpoint(role: str) -> None:
    named = settings(priced=PRICED, unpriced=OperatorEndpoint(url="grpc://b"))
    changes = {
        "audited": {"model_config__endpoint": "unpriced"},
        "rewording": {
            "perturbation_config__perturbation_strategy": "paraphrase_llm",
            "perturbation_config__paraphrase_model": "org/rewriter",
            "perturbation_config__paraphraser__endpoint": "unpriced",
        },
        "router": {"protocol_config__protocol": "router_worker", "protocol_config__router__endpoint": "unpriced"},
    }[role]
    plain = {"perturbation_config__perturbation_strategy": "wordings", "model_config__endpoint": "priced"}
    with pytest.raises(BadInputError, match=r"max_cost is 5, but the endpoint 'unpriced' has no prices; give it"):
        terms_of(suite(**{**plain, **changes, "budget_config__max_cost": 5}), named)


def test_terms_survive_the_record_that_they_are_kept_on() -> None:
    kept = terms(max_cost=2.5)
    assert Terms.model_validate(kept.plain()) == kept
